// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package redact knows which kinds have content that must not be logged,
// and removes it from errors of the API server, which repeat invalid values,
// and of decoders.
package redact

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

const notShown = "the reason is not shown, since it may repeat what the object holds"

// Kind reports whether objects of a kind, or the content of its subresource,
// are confidential: Secrets, also by resource name, and token reviews and
// requests.
func Kind(kind schema.GroupKind, sub string) bool {
	switch kind.Group {
	case "":
		return kind.Kind == "Secret" || kind.Kind == "secrets" || kind.Kind == "ServiceAccount" && sub == "token"
	case "authentication.k8s.io":
		return kind.Kind == "TokenReview" || kind.Kind == "TokenRequest"
	}
	return false
}

// Error returns err, which concerns a confidential object. If err contains an
// answer of the API server, only that is returned, with all fields that
// programs evaluate, and a message with names and fields but without values.
func Error(err error) error {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		return err
	}
	return &apierrors.StatusError{ErrStatus: cleaned(status.ErrStatus)}
}

// sized is implemented by errors about too large answers, which contain only
// sizes.
type sized interface {
	error
	TooLarge() (limit, decoded int64)
}

// Decoding returns an error of decoding an object with the field, but without
// the value.
func Decoding(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("field %s.%s is not a %s", wrong.Struct, wrong.Field, wrong.Type)
	}
	if heavy, ok := errors.AsType[sized](err); ok {
		return heavy
	}
	if wrong, ok := errors.AsType[base64.CorruptInputError](err); ok {
		return wrong // it has only the position
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		if is, at := kjson.SyntaxErrorOffset(e); is {
			return fmt.Errorf("not JSON from byte %d on", at)
		}
	}
	return errors.New("it is malformed; " + notShown)
}

// Config returns err, from reading a kubeconfig, without the parts of the file
// that YAML takes for names.
func Config(err error) error {
	if text := err.Error(); yamlName.MatchString(text) {
		return errors.New(yamlName.ReplaceAllString(text, "$1 (its name is not shown)"))
	}
	return err
}

var yamlName = regexp.MustCompile(`(unknown anchor|unknown tag|undefined tag handle|cannot unmarshal|cannot decode) [` + "`" + `'"!][^\n]*`)

// cleaned returns an answer of the API server without values in its texts.
func cleaned(s metav1.Status) metav1.Status {
	message := s.Message
	if !harmless(s) {
		message = summary(s)
	}
	if s.Details != nil {
		details := *s.Details
		details.Causes = slices.Clone(details.Causes)
		for i := range details.Causes {
			if details.Causes[i].Type != metav1.CauseTypeFieldManagerConflict {
				details.Causes[i].Message = ""
			}
		}
		s.Details = &details
	}
	s.Message = message
	return s
}

// harmless reports whether the server's message contains only names. Messages
// of webhooks, policies and proxies can contain anything.
func harmless(s metav1.Status) bool {
	if strings.Contains(s.Message, "denied the request") || strings.Contains(s.Message, "denied request") {
		return false
	}
	if s.Details != nil && slices.ContainsFunc(s.Details.Causes, func(c metav1.StatusCause) bool { return c.Type == metav1.CauseTypeUnexpectedServerResponse }) {
		return false
	}
	switch s.Reason {
	case metav1.StatusReasonNotFound, metav1.StatusReasonAlreadyExists, metav1.StatusReasonConflict, metav1.StatusReasonGone,
		metav1.StatusReasonExpired, metav1.StatusReasonUnauthorized, metav1.StatusReasonTooManyRequests, metav1.StatusReasonServerTimeout,
		metav1.StatusReasonServiceUnavailable, metav1.StatusReasonMethodNotAllowed, metav1.StatusReasonNotAcceptable,
		metav1.StatusReasonUnsupportedMediaType, metav1.StatusReasonRequestEntityTooLarge:
		return true
	case metav1.StatusReasonForbidden: // by RBAC, in the server's own words
		return strings.Contains(s.Message, `is forbidden: User "`)
	}
	return false
}

// Field names and webhooks in messages.
var (
	typedField   = regexp.MustCompile(`(?m)^[^"]{0,200}?(\.[A-Za-z0-9_.\[\]-]+): expected ([a-z]+)`)
	goField      = regexp.MustCompile(`Go struct field ([A-Za-z0-9_.-]+) of type ([A-Za-z0-9_.\[\]*]+)`)
	unknownField = regexp.MustCompile(`(?:unknown|duplicate) field "([A-Za-z0-9_.\[\]-]+)"`)
	byWebhook    = regexp.MustCompile(`^admission webhook "([a-z0-9.-]+)" denied`)
)

// summary describes an answer without its values: who refused, why, and which
// fields it names.
func summary(s metav1.Status) string {
	var said []string
	say := func(text string) {
		if !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	if m := byWebhook.FindStringSubmatch(s.Message); m != nil {
		say(fmt.Sprintf("admission webhook %q denied the request", m[1]))
	} else {
		for _, m := range typedField.FindAllStringSubmatch(s.Message, -1) {
			say(m[1] + ": expected " + m[2])
		}
		for _, m := range goField.FindAllStringSubmatch(s.Message, -1) {
			say(m[1] + ": expected " + m[2])
		}
		for _, m := range unknownField.FindAllStringSubmatch(s.Message, -1) {
			say(m[0])
		}
	}
	if s.Details != nil {
		for _, cause := range s.Details.Causes {
			if cause.Field != "" {
				say(cause.Field + ": " + string(cause.Type))
			}
		}
	}
	const most = 16
	if len(said) > most {
		said = append(said[:most], "…")
	}
	text := string(cmp.Or(s.Reason, "refused"))
	if s.Code != 0 {
		text = fmt.Sprintf("%s (%d)", text, s.Code)
	}
	if len(said) > 0 {
		text += ": " + strings.Join(said, ", ")
	}
	return text + "; " + notShown
}
