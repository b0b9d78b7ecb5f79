// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package listwatch

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/kube"
)

// ListerWatcher makes the two calls that a Reflector needs, for one kind in one
// Scope. Errors of the server are *apierrors.StatusError; for a kind that
// is not served, a *NotServedError. Safe for concurrent use.
type ListerWatcher[T kube.Object] interface {
	// List reads one page. It blocks until the page is read or ctx ends.
	List(ctx context.Context, opts ListOptions) (Page[T], error)
	// Watch opens a stream that ends with ctx. It blocks until the server
	// answers.
	Watch(ctx context.Context, opts WatchOptions) (Stream[T], error)
}

// ListOptions select one page, by the rules of the Kubernetes list API.
type ListOptions struct {
	// Limit is the most objects in the page; 0: the server decides.
	Limit int64
	// Continue is the token of the previous page; empty: the first page.
	Continue string
	// ResourceVersion is empty for the newest (consistent) state, "0" for any.
	ResourceVersion string
	// ResourceVersionMatch is empty, "NotOlderThan" or "Exact".
	ResourceVersionMatch string
}

// Page is one page of a list.
type Page[T kube.Object] struct {
	Items []Item[T]
	// ResourceVersion of the whole list, the same on all pages.
	ResourceVersion string
	// Continue is the token of the next page; empty: this is the last.
	Continue string
	// Remaining is about how many objects follow on later pages; 0: unknown, or
	// none.
	Remaining int64
	// Unreadable counts items whose names could not even be read; they are not
	// in Items. The list then cannot show that an object is gone.
	Unreadable int
	// UnreadableErr is the error of the first one.
	UnreadableErr error
	// Foreign counts objects of shards that are not held, which are not in Items.
	Foreign int
	// ShardSelector that the server has applied, as the list says. Empty: none.
	ShardSelector string
}

// Item is one object, decoded separately. An undecodable object has Err and
// metadata, and does not affect the others.
type Item[T kube.Object] struct {
	Key             kube.Key
	UID             types.UID
	ResourceVersion string
	Object          T
	// Bytes is the size of the object as sent, without dropped managed fields;
	// 0: unknown.
	Bytes uint32
	// Heap is the memory allocated for this object alone, without what it shares
	// with others, in bytes; 0: unknown.
	Heap uint32
	Err  error
	// Metadata of an object with an Err, if it could be decoded in full; else
	// nil.
	Metadata *metav1.PartialObjectMetadata

	// Notes of the informer about the item: leave them zero.
	base.Notes[T]
}

// WatchOptions describe one stream, by the rules of the Kubernetes watch API.
type WatchOptions struct {
	// ResourceVersion is where to start. With SendInitialEvents it is the
	// minimum; empty is the newest.
	ResourceVersion string
	// SendInitialEvents requests a streaming list (KEP-3157): the present
	// objects as Added, then a Bookmark with InitialEventsEnd.
	SendInitialEvents bool
	// Timeout after which the server must end the stream.
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
type Frame[T kube.Object] struct {
	Type FrameType
	// Item of Added, Modified, Deleted; of a Bookmark only ResourceVersion. An
	// Item with Err but no Key.Name has unreadable metadata.
	Item Item[T]
	// InitialEventsEnd: this Bookmark ends a streaming list.
	InitialEventsEnd bool
	// Err of an Error frame, an *apierrors.StatusError.
	Err error
}

// Stream is an open watch, read by one goroutine.
type Stream[T kube.Object] interface {
	// Next blocks until the next frame. io.EOF is a clean end.
	Next() (Frame[T], error)
	// Close ends the stream and frees its connection. Further calls of Next
	// fail.
	Close() error
}
