// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
)

const (
	// largestBody is what the server reads of a request.
	largestBody = 3 << 20

	longestManager = 128
)

// writing reads the body and the options of a request that writes.
func (c *call) writing() (*writing, error) {
	q := &writing{call: c, media: mediaOf(c.Header.Get("Content-Type"))}
	if err := q.checkMedia(); err != nil {
		return nil, err
	}
	var err error
	if q.body, err = readBody(c.Body); err != nil {
		return nil, err
	}
	return q, q.options(c.URL.Query())
}

// mediaOf is a content type without its parameters. None: JSON.
func mediaOf(header string) string {
	if header == "" {
		return encode.ContentJSON
	}
	media, _, err := mime.ParseMediaType(header)
	if err != nil {
		media, _, _ = strings.Cut(header, ";")
	}
	return strings.TrimSpace(media)
}

func readBody(r io.Reader) ([]byte, error) {
	if r == nil {
		return nil, nil
	}
	body, err := io.ReadAll(io.LimitReader(r, largestBody+1))
	if err != nil {
		return nil, refusal.Plain(err) // a real server does not look whose fault it is
	}
	if len(body) > largestBody {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", largestBody))
	}
	return body, nil
}

// accepted are the media types that a request of q's verb may have.
func (q *writing) accepted() []string {
	if q.verb == "patch" {
		accepted := []string{string(types.JSONPatchType), string(types.MergePatchType)}
		if q.kind.Builtin {
			accepted = append(accepted, string(types.StrategicMergePatchType))
		}
		return append(accepted, string(types.ApplyYAMLPatchType))
	}
	accepted := []string{encode.ContentJSON, encode.ContentYAML}
	if q.kind.Builtin {
		accepted = append(accepted, encode.ContentProtobuf)
	}
	return accepted
}

func (q *writing) checkMedia() error {
	accepted := q.accepted()
	if slices.Contains(accepted, q.media) {
		return nil
	}
	if q.verb == "patch" && q.kind.Builtin {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
			Message: "415: Unsupported Media Type", Details: &metav1.StatusDetails{},
		}}
	}
	return refusal.Media(accepted...)
}

// options reads dryRun, fieldManager, fieldValidation and force.
func (q *writing) options(query url.Values) error {
	var errs field.ErrorList
	errs = append(errs, metav1validation.ValidateDryRun(field.NewPath("dryRun"), query["dryRun"])...)
	q.dryRun = len(query["dryRun"]) > 0
	q.manager = query.Get("fieldManager")
	q.named = q.manager != ""
	errs = append(errs, metav1validation.ValidateFieldManager(q.manager, field.NewPath("fieldManager"))...)
	q.validation = query.Get("fieldValidation")
	errs = append(errs, metav1validation.ValidateFieldValidation(field.NewPath("fieldValidation"), q.validation)...)
	if q.validation == "" {
		q.validation = metav1.FieldValidationWarn
	}
	if force := strings.ToLower(query.Get("force")); force != "" && q.verb == "patch" {
		q.force = force != "false" && force != "0"
		if !q.applies() {
			errs = append(errs, field.Forbidden(field.NewPath("force"), "may not be specified for non-apply patch"))
		}
	}
	if q.applies() && !q.named {
		errs = append(errs, field.Required(field.NewPath("fieldManager"), "is required for apply patch"))
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: optionsKind(q.verb)}, "", errs)
	}
	if !q.named {
		q.manager = managerOf(q.UserAgent())
	}
	return nil
}

func optionsKind(verb string) string {
	return strings.ToUpper(verb[:1]) + verb[1:] + "Options"
}

// applies reports whether q is a server-side apply.
func (q *writing) applies() bool {
	return q.verb == "patch" && q.media == string(types.ApplyYAMLPatchType)
}

// managerOf is what a client that does not say who it is is called: the
// printable beginning of its user agent, up to the first slash.
func managerOf(agent string) string {
	name, _, _ := strings.Cut(agent, "/")
	end := 0
	for i, r := range name {
		if !unicode.IsPrint(r) || i+utf8.RuneLen(r) > longestManager {
			break
		}
		end = i + utf8.RuneLen(r)
	}
	return name[:end]
}
