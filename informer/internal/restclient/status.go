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
	"github.com/flyball-dev/flyball/internal/decodelimit"
)

// maxErrorBody limits how much of an error answer is read, shownBody how much
// of it an error text repeats.
const (
	maxErrorBody = 1 << 20
	shownBody    = 200
)

// ErrorOf returns the *apierrors.StatusError in answer, or one made from the
// status code, as for the page of a proxy.
func ErrorOf(answer *http.Response, verb string, resource schema.GroupResource) error {
	// Use what is readable of a broken body.
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
		fits := encoding.Small(e.Raw) || decodelimit.Alone().Protobuf(decodelimit.Of(encoding.StatusType), e.Raw) == nil
		return status, fits && encoding.Guard(func() error { return status.Unmarshal(e.Raw) }) == nil
	}
	if !encoding.Small(body) && decodelimit.Alone().JSON(decodelimit.Of(encoding.StatusType), body) != nil {
		return metav1.Status{}, false
	}
	if err := json.Unmarshal(body, &status); err != nil || status.Kind != "Status" {
		return metav1.Status{}, false
	}
	return status, true
}

// statusError returns the error in the object of an ERROR frame.
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

// shorten returns the start of body as one line of text.
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
