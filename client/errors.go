// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/answers"
)

// ConflictError: the write named a resourceVersion, and the object has changed
// since. Nothing was written; read the object anew and decide again. The
// server's Status is wrapped, so apierrors.IsConflict holds.
//
// Conflicts with another field owner, or with an object of the same name and
// another UID, are not of this type: trying again does not resolve them.
type ConflictError struct {
	Kind schema.GroupVersionKind
	Key  informer.Key
	// Version that was sent.
	Version informer.Version

	err      error
	observer Observer
}

func (e *ConflictError) Error() string { return e.err.Error() }

// TooLargeError: the server's answer is larger than what is read into memory, after it
// has been decompressed. A List has asked for smaller pages before it returns one.
type TooLargeError = answers.TooLargeError

// SharedObjectError: the object that was passed is the one in the cache of an
// informer, which all readers share, and the call would fill it with the server's
// answer. Nothing was sent.
type SharedObjectError struct {
	Kind schema.GroupVersionKind
	Key  informer.Key
}

func (e *SharedObjectError) Error() string {
	return "the object is the one in the cache, which all readers share; change and pass a copy: obj = informer.Copy(obj)"
}

func (e *ConflictError) Unwrap() error { return e.err }

// WhenPassed calls do, once, when the informers hold a version newer than the
// one that was refused, or the object is gone. Without an Observer, or where
// versions cannot be compared, it never does. stop ends the waiting; it may be
// called more than once.
func (e *ConflictError) WhenPassed(do func()) (stop func()) {
	if e.observer == nil || e.Version == 0 || do == nil {
		return func() {}
	}
	return e.observer.WhenPassed(e.Kind, e.Key, e.Version, do)
}

// fault words an error of the server.
func (c *Client) fault(ctx context.Context, at *call, err error) error {
	switch {
	case unknownPath(err):
		c.mapper.forget(at.kind.GroupVersion())
		return at.wrap(noSuchPath(at))
	case at.sub != "" && apierrors.IsNotFound(err) && !c.serves(ctx, at):
		return at.wrap(noSuchPath(at))
	case stale(at, err):
		return &ConflictError{
			Kind:     at.kind,
			Key:      at.key,
			Version:  informer.ParseVersion(at.version),
			err:      at.wrap(err),
			observer: c.opts.Observer,
		}
	}
	return at.wrap(err)
}

// unknownPath tells a 404 for the path from one for the object: the API has
// not answered with a Status of its own.
func unknownPath(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// serves says whether discovery has the call's subresource. For a custom
// resource the answer to a write does not tell: the server says of a missing
// subresource that the object is not found.
func (c *Client) serves(ctx context.Context, at *call) bool {
	if slices.Contains(at.resource.subresources, at.sub) {
		return true
	}
	c.mapper.forget(at.kind.GroupVersion())
	now, err := c.mapper.find(ctx, at.kind)
	return err != nil || slices.Contains(now.subresources, at.sub)
}

// noSuchPath wraps no StatusError, like notServed: it must not pass for a
// missing object.
func noSuchPath(at *call) error {
	if at.sub == "" {
		return notServed(at.kind)
	}
	gvr := at.kind.GroupVersion().WithResource(at.resource.name + "/" + at.sub)
	return fmt.Errorf("the API server serves no subresource %q of %s; a CustomResourceDefinition declares it under spec.versions[].subresources: %w",
		at.sub, at.kind.Kind, &meta.NoResourceMatchError{PartialResource: gvr})
}

// stale says whether err is a conflict about the resourceVersion that the call
// named, and about nothing else.
func stale(at *call, err error) bool {
	if at.version == "" || !apierrors.IsConflict(err) {
		return false
	}
	if apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) {
		return false
	}
	// The server has no cause for this one; these are its words.
	return !strings.Contains(err.Error(), "Precondition failed: UID")
}
