// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/bodylimit"
	"github.com/flyball-dev/flyball/kube"
)

// ConflictError reports that a write named a resourceVersion and the object has changed
// since. Nothing was written; read the object and decide again. It wraps the server's
// Status, so apierrors.IsConflict holds.
//
// A retry does not resolve conflicts with another field owner, or with an object of the
// same name and another UID, so these are not of this type.
type ConflictError struct {
	Kind schema.GroupVersionKind
	Key  kube.Key
	// Version is the resourceVersion that was sent.
	Version kube.Version

	err      error
	observer Observer
}

func (e *ConflictError) Error() string { return e.err.Error() }

// TooLargeError reports that the answer to Request, a method and path, has more than
// Limit bytes after decompression (Compressed: it was compressed), or that to decode it
// would allocate at least Decoded bytes, if that is not 0, and Limit is what is allowed.
// List retries with smaller pages before it returns one.
type TooLargeError = bodylimit.TooLargeError

// SharedObjectError reports that the call would store the server's answer in an object
// of an informer's cache, which all readers share. Nothing was sent.
type SharedObjectError struct {
	Kind schema.GroupVersionKind
	Key  kube.Key
}

func (e *SharedObjectError) Error() string {
	return "the object is the one in the cache, which all readers share; change and pass a copy: obj = kube.Copy(obj)"
}

func (e *ConflictError) Unwrap() error { return e.err }

// WhenPassed calls do once, when the informers hold a version newer than the refused
// one, or the object is gone. It never calls do without an Observer, or if versions
// cannot be compared. stop cancels the wait and may be called more than once.
func (e *ConflictError) WhenPassed(do func()) (stop func()) {
	if e.observer == nil || e.Version == 0 || do == nil {
		return func() {}
	}
	return e.observer.WhenPassed(e.Kind, e.Key, e.Version, do)
}

// fault converts an error of the server to one that describes the call.
func (c *Client) fault(ctx context.Context, at *call, err error) error {
	switch {
	case unknownPath(err):
		c.mapper.forget(at.kind.GroupVersion())
		return at.wrap(noSuchPath(at))
	case at.sub != "" && apierrors.IsNotFound(err) && !c.mapper.serves(ctx, at):
		return at.wrap(noSuchPath(at))
	case stale(at, err):
		return &ConflictError{
			Kind:     at.kind,
			Key:      at.key,
			Version:  kube.ParseVersion(at.version),
			err:      at.wrap(err),
			observer: c.opts.Observer,
		}
	}
	return at.wrap(err)
}

// unknownPath distinguishes a 404 for the path from a 404 for the object: the former
// has no Status of the API.
func unknownPath(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// askAgain is how long what discovery said of a subresource is believed when a write to it is
// answered "not found", which mostly means that the object is gone.
const askAgain = time.Minute

// serves reports whether discovery lists the call's subresource. For custom resources
// the answer to a write does not show it: the server answers a missing subresource with
// "not found", as it does a missing object.
func (m *mapper) serves(ctx context.Context, at *call) bool {
	if known, ok := m.known(at.kind); ok && slices.Contains(known.subresources, at.sub) && time.Since(known.found) < askAgain {
		return true
	}
	now, err := m.ask(ctx, at.kind)
	return err != nil || slices.Contains(now.subresources, at.sub)
}

// noSuchPath returns an error that wraps no StatusError, as notServed does: it must not
// look like a missing object.
func noSuchPath(at *call) error {
	if at.sub == "" {
		return notServed(at.kind)
	}
	gvr := at.kind.GroupVersion().WithResource(at.resource.name + "/" + at.sub)
	return fmt.Errorf("the API server serves no subresource %q of %s; a CustomResourceDefinition declares it under spec.versions[].subresources: %w",
		at.sub, at.kind.Kind, &meta.NoResourceMatchError{PartialResource: gvr})
}

// stale reports whether err is a conflict about the resourceVersion that the call
// named, and about nothing else.
func stale(at *call, err error) bool {
	if at.version == "" || !apierrors.IsConflict(err) {
		return false
	}
	if apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
		return false
	}
	// The server gives no cause for this one; this is its message.
	return !strings.Contains(err.Error(), "Precondition failed: UID")
}
