// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/internal/encoding"
	"github.com/flyball-dev/flyball/internal/ration"
)

// maxErrorBody bounds what is read of an answer that is an error, and
// shownBody what an error text repeats of it.
const (
	maxErrorBody = 1 << 20
	shownBody    = 200
)

// UnexpectedAnswerError: something answered, but not as the Kubernetes API
// does: a proxy's page, or an object of another kind.
type UnexpectedAnswerError struct {
	URL         string
	Code        int
	ContentType string
	Body        string // its beginning
	Err         error  // what is wrong with it; may be nil
}

func (e *UnexpectedAnswerError) Error() string {
	text := fmt.Sprintf("unexpected answer from %s (%d, content type %q): %q", e.URL, e.Code, e.ContentType, e.Body)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *UnexpectedAnswerError) Unwrap() error { return e.Err }

// ErrorOf is the *apierrors.StatusError that answer carries, or that is made
// of its code where it carries none, as a proxy's page does.
func ErrorOf(answer *http.Response, verb string, resource schema.GroupResource) error {
	// What can be read of a broken body still says more than none.
	body, _ := io.ReadAll(io.LimitReader(answer.Body, maxErrorBody))
	retryAfter, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
	retryAfter = max(retryAfter, 0)
	if status, ok := decodeStatus(body); ok && status.Status != metav1.StatusSuccess {
		if status.Code == 0 {
			status.Code = int32(answer.StatusCode)
		}
		if retryAfter > 0 {
			if status.Details == nil {
				status.Details = &metav1.StatusDetails{}
			}
			if status.Details.RetryAfterSeconds == 0 {
				status.Details.RetryAfterSeconds = int32(min(retryAfter, 1<<30))
			}
		}
		return &apierrors.StatusError{ErrStatus: status}
	}
	err := apierrors.NewGenericServerResponse(answer.StatusCode, verb, resource, "", shorten(body), retryAfter, true)
	err.ErrStatus.Message = fmt.Sprintf("%d %s: %q", answer.StatusCode, http.StatusText(answer.StatusCode), shorten(body))
	return err
}

// decodeStatus reads a Status, protobuf or JSON.
func decodeStatus(body []byte) (status metav1.Status, ok bool) {
	if encoding.IsProtobuf(body) {
		e, err := encoding.OpenEnvelope(body)
		if err != nil || string(e.Kind) != "Status" {
			return status, false
		}
		fits := encoding.Small(e.Raw) || ration.Alone().Protobuf(ration.Of(encoding.StatusType), e.Raw) == nil
		return status, fits && encoding.Guard(func() error { return status.Unmarshal(e.Raw) }) == nil
	}
	if !encoding.Small(body) && ration.Alone().JSON(ration.Of(encoding.StatusType), body) != nil {
		return metav1.Status{}, false
	}
	if err := json.Unmarshal(body, &status); err != nil || status.Kind != "Status" {
		return metav1.Status{}, false
	}
	return status, true
}

// statusError is the error that the object of an ERROR frame carries.
func statusError(object []byte) error {
	if status, ok := decodeStatus(object); ok {
		return &apierrors.StatusError{ErrStatus: status}
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusInternalServerError,
		Reason:  metav1.StatusReasonInternalError,
		Message: fmt.Sprintf("error frame of a watch without a Status (%d bytes)", len(object)),
	}}
}

// shorten is the beginning of body in one line of text.
func shorten(body []byte) string {
	long := len(body) > shownBody
	if long {
		body = body[:shownBody]
		for len(body) > 0 && !utf8.Valid(body[max(0, len(body)-utf8.UTFMax):]) && !utf8.RuneStart(body[len(body)-1]) {
			body = body[:len(body)-1]
		}
	}
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(body), "?")), " ")
	if long {
		text += " …"
	}
	return text
}
