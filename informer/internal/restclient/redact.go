// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/redact"
	"github.com/flyball-dev/flyball/kube"
)

// undecoded returns a decoding error for d's kind; for a Secret without the
// value. nil stays nil.
func (d *Decoder) undecoded(err error) error {
	if err == nil || !redact.Kind(d.kind.GroupKind(), "") {
		return err
	}
	return redact.Decoding(err)
}

// discreet removes from a server's error about objects of kind what it may
// repeat of a Secret.
func discreet(kind schema.GroupVersionKind, err error) error {
	if !redact.Kind(kind.GroupKind(), "") {
		return err
	}
	if _, ok := err.(*apierrors.StatusError); ok {
		return redact.Error(err)
	}
	if odd, ok := errors.AsType[*kube.UnexpectedAnswerError](err); ok {
		return &kube.UnexpectedAnswerError{URL: odd.URL, Code: odd.Code, ContentType: odd.ContentType, Body: "not shown", Err: redact.Decoding(odd.Err)}
	}
	return err
}
