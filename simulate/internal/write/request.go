// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package write

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/simulate/internal/access"
	"github.com/flyball-dev/flyball/simulate/internal/decode"
	"github.com/flyball-dev/flyball/simulate/internal/fieldmanager"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
)

// maxManager is how long the name of a field manager may be.
const maxManager = 128

// Request is a write of one object as a client asks for it. Its methods add to its
// Warnings, so it must not be used by several goroutines.
type Request struct {
	Verb            string // create, update, patch, delete or deletecollection
	User            access.User
	Kind            *kinds.Kind
	Namespace, Name string
	Subresource     string
	URL             *url.URL // for the options that webhooks receive; nil: there are none
	Media           string   // of the body
	Body            []byte

	DryRun     bool
	Manager    string // the owner of what is written
	Force      bool   // an apply takes fields from other managers
	Validation string // of fields: Ignore, Warn or Strict

	// Sound: no fault harms the request.
	Sound bool
	// Warnings for the client so far.
	Warnings []string

	deleting *metav1.DeleteOptions // of a delete
}

// as returns a Request for another subresource of the same object, without body and options.
func (q *Request) as(subresource string) *Request {
	return &Request{Verb: q.Verb, User: q.User, Kind: q.Kind, Namespace: q.Namespace, Name: q.Name, Subresource: subresource, URL: q.URL, Sound: q.Sound}
}

// writer returns the writer of what q asks for.
func (q *Request) writer() fieldmanager.Writer {
	return fieldmanager.Writer{Kind: q.Kind, Subresource: q.Subresource, Manager: q.Manager, Force: q.Force}
}

// Own sets the managed fields of obj. old is nil for a create.
func (q *Request) Own(old, obj *object.Object) error { return q.writer().Own(old, obj) }

// Warn adds a warning, unless the client gets the same one already. An error of a YAML
// reader is a heading and a line for each fault.
func (q *Request) Warn(text string) {
	if faults, ok := strings.CutPrefix(text, "yaml: unmarshal errors:\n"); ok {
		for fault := range strings.Lines(faults) {
			q.Warn(strings.TrimSpace(fault))
		}
		return
	}
	for _, known := range q.Warnings {
		if known == text {
			return
		}
	}
	q.Warnings = append(q.Warnings, text)
}

// decode reads the object of the body, with its defaults.
func (q *Request) decode() (*object.Object, error) {
	obj, problems, err := decode.Object(q.Kind, q.Media, q.Body)
	if problem := q.report(problems); problem != nil {
		return nil, decode.Unreadable(q.Kind, problem)
	}
	if err != nil {
		return nil, err
	}
	return obj, q.check(obj)
}

// report handles problems with the fields of a body as q asks for: it ignores them, adds
// warnings, or returns an error.
func (q *Request) report(problems []error) error {
	switch {
	case len(problems) == 0 || q.Validation == metav1.FieldValidationIgnore:
	case q.Validation == metav1.FieldValidationStrict:
		return runtime.NewStrictDecodingError(problems)
	default:
		for _, p := range problems {
			q.Warn(p.Error())
		}
	}
	return nil
}

// check compares the object of the body with what the request addresses.
func (q *Request) check(obj *object.Object) error {
	m := obj.Meta()
	if m.GetNamespace() == "" || !q.Kind.Namespaced {
		m.SetNamespace(q.key().Namespace)
	}
	switch {
	case m.GetNamespace() != q.key().Namespace:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	case q.Name != "" && m.GetName() == "":
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name must be provided", q.Name))
	case q.Name != "" && m.GetName() != q.Name:
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", m.GetName(), q.Name))
	}
	return nil
}

// key returns the key under which the object is stored.
func (q *Request) key() types.NamespacedName {
	if !q.Kind.Namespaced {
		return types.NamespacedName{Name: q.Name}
	}
	return types.NamespacedName{Namespace: q.Namespace, Name: q.Name}
}

// accepted returns the media types that a body of q's verb may have.
func (q *Request) accepted() []string {
	if q.Verb == "patch" {
		accepted := []string{string(types.JSONPatchType), string(types.MergePatchType)}
		if q.Kind.Builtin {
			accepted = append(accepted, string(types.StrategicMergePatchType))
		}
		return append(accepted, string(types.ApplyYAMLPatchType))
	}
	accepted := []string{runtime.ContentTypeJSON, runtime.ContentTypeYAML}
	if q.Kind.Builtin {
		accepted = append(accepted, runtime.ContentTypeProtobuf)
	}
	return accepted
}

// CheckMedia refuses a body of a media type that the verb does not take.
func (q *Request) CheckMedia() error {
	accepted := q.accepted()
	if slices.Contains(accepted, q.Media) {
		return nil
	}
	if q.Verb == "patch" && q.Kind.Builtin {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
			Message: "415: Unsupported Media Type", Details: &metav1.StatusDetails{},
		}}
	}
	return refusal.Media(accepted...)
}

// ReadOptions reads dryRun, fieldManager, fieldValidation and force. Without a fieldManager
// it is the name of the client's user agent.
func (q *Request) ReadOptions(query url.Values, userAgent string) error {
	var errs field.ErrorList
	errs = append(errs, metav1validation.ValidateDryRun(field.NewPath("dryRun"), query["dryRun"])...)
	q.DryRun = len(query["dryRun"]) > 0
	q.Manager = query.Get("fieldManager")
	named := q.Manager != ""
	errs = append(errs, metav1validation.ValidateFieldManager(q.Manager, field.NewPath("fieldManager"))...)
	q.Validation = query.Get("fieldValidation")
	errs = append(errs, metav1validation.ValidateFieldValidation(field.NewPath("fieldValidation"), q.Validation)...)
	q.Validation = cmp.Or(q.Validation, metav1.FieldValidationWarn)
	if force := strings.ToLower(query.Get("force")); force != "" && q.Verb == "patch" {
		q.Force = force != "false" && force != "0"
		if !q.applies() {
			errs = append(errs, field.Forbidden(field.NewPath("force"), "may not be specified for non-apply patch"))
		}
	}
	if q.applies() && !named {
		errs = append(errs, field.Required(field.NewPath("fieldManager"), "is required for apply patch"))
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: optionsKind(q.Verb)}, "", errs)
	}
	if !named {
		q.Manager = managerOf(userAgent)
	}
	return nil
}

func optionsKind(verb string) string {
	return strings.ToUpper(verb[:1]) + verb[1:] + "Options"
}

// applies reports whether q is a server-side apply.
func (q *Request) applies() bool {
	return q.Verb == "patch" && q.Media == string(types.ApplyYAMLPatchType)
}

// managerOf returns the field manager of a client that does not name one: the printable
// beginning of its user agent, up to the first slash.
func managerOf(agent string) string {
	name, _, _ := strings.Cut(agent, "/")
	end := 0
	for i, r := range name {
		if !unicode.IsPrint(r) || i+utf8.RuneLen(r) > maxManager {
			break
		}
		end = i + utf8.RuneLen(r)
	}
	return name[:end]
}
