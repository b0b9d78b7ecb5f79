// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package listwatch

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/base"
)

// ListerWatcher makes the two calls that a Reflector needs, for one kind in
// one WatchScope. Errors of the server are *apierrors.StatusError; a kind that
// is not served is a *NotServedError. Safe for concurrent use.
type ListerWatcher[T base.Object] interface {
	// List gets one page. It blocks until the page is read or ctx ends.
	List(ctx context.Context, opts ListOptions) (Page[T], error)
	// Watch opens a stream. It returns when the server has answered; the stream
	// ends with ctx.
	Watch(ctx context.Context, opts WatchOptions) (Stream[T], error)
}

// ListOptions of one page, by the rules of the Kubernetes list API.
type ListOptions struct {
	// Limit of objects in the page; 0: the server decides.
	Limit int64
	// Continue is the token of the page before; empty: the first page.
	Continue string
	// ResourceVersion: empty is the newest (consistent) state, "0" any.
	ResourceVersion string
	// ResourceVersionMatch is empty, "NotOlderThan" or "Exact".
	ResourceVersionMatch string
}

// Page is a part of a list.
type Page[T base.Object] struct {
	Items []Item[T]
	// ResourceVersion of the whole list, the same on each of its pages.
	ResourceVersion string
	// Continue is the token for the next page; empty: this is the last.
	Continue string
	// Unreadable items are not in Items: not even their names could be read, so
	// what the list lacks cannot be told from what is gone.
	Unreadable int
	// UnreadableErr of the first of them.
	UnreadableErr error
}

// Item is one object, decoded alone: an object that cannot be decoded has its
// metadata and Err, and does not harm the others.
type Item[T base.Object] struct {
	Key             base.Key
	UID             types.UID
	ResourceVersion string
	Object          T
	// Bytes of the object as the server sent it, without managed fields that are
	// dropped; 0: unknown. It is measured, and nothing is decided by it.
	Bytes uint32
	Err   error
	// Metadata of an object with an Err, where at least that could be decoded in
	// full; else nil.
	Metadata *metav1.PartialObjectMetadata

	// stranger says why the item is not of what was asked for.
	Anomaly base.Anomaly
	// raw is what the object was decoded from, until it is transformed.
	Raw []byte
	// original is the object that the transform has refused; nil: it has not.
	Refused T
}

// WatchOptions of one stream, by the rules of the Kubernetes watch API.
type WatchOptions struct {
	// ResourceVersion to start after; with SendInitialEvents the state must not
	// be older, and empty is the newest.
	ResourceVersion string
	// SendInitialEvents asks for a streaming list (KEP-3157): the present
	// objects as Added, then a Bookmark with InitialEventsEnd.
	SendInitialEvents bool
	// Timeout after which the server ends the stream.
	Timeout time.Duration
}

// FrameType is the type of one frame of a watch.
type FrameType string

const (
	FrameAdded    FrameType = "ADDED"
	FrameModified FrameType = "MODIFIED"
	FrameDeleted  FrameType = "DELETED"
	FrameBookmark FrameType = "BOOKMARK"
	FrameError    FrameType = "ERROR"
)

// Frame is one event of a watch.
type Frame[T base.Object] struct {
	Type FrameType
	// Item of Added, Modified, Deleted; of a Bookmark only ResourceVersion. An
	// Item with Err and without a Key.Name is one whose metadata cannot be read.
	Item Item[T]
	// InitialEventsEnd: a Bookmark that ends a streaming list.
	InitialEventsEnd bool
	// Err of an Error frame, an *apierrors.StatusError.
	Err error
}

// Stream is an open watch. One goroutine reads it.
type Stream[T base.Object] interface {
	// Next blocks for the next frame. io.EOF is a clean end.
	Next() (Frame[T], error)
	// Close ends the stream and frees its connection. Next then fails.
	Close() error
}
