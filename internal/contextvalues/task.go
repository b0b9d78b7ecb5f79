// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package contextvalues

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/recording"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/kube"
)

// TaskKey is the context key of a Task.
type TaskKey struct{}

// Task is a running reconcile. Its methods are safe for concurrent use and do not block.
type Task interface {
	// Moved counts a sign of progress, such as the answer to a request.
	Moved()
	// Name returns the name of the controller, and the key as text.
	Name() (controller, key string)
	// Records reports whether requests are recorded.
	Records() bool
	// Sent records that the request r is being sent, and returns its number for Answered.
	// Negative: it is not recorded.
	Sent(r Request) (number int)
	// Answered records the answer to a request so far. The last call counts.
	Answered(number int, a Answer)
	// Effected records the effect of a write, after the cache has it. from is the version that
	// the request named as a precondition; 0: none.
	Effected(w kube.Written, from kube.Version)
}

// Request is a request to the API server. Strings may be parts of larger ones; a Task copies what
// it keeps.
type Request struct {
	// Verb as in rules of RBAC, or apply.
	Verb string
	// Path is that of the URL, without what is before /api or /apis, and without what follows a
	// subresource.
	Path string
	// Version of a resource; empty: the request is for none.
	Version schema.GroupVersion
	// Kind of a resource. Empty: it is not known, and not watched.
	Kind string
	// Key of the object.
	Key kube.Key
	// Bytes of the body.
	Bytes int64
	// Cache is where the effect of a write can be seen, if its kind is watched; nil: it is no write,
	// or the kind is not known.
	Cache Cache
}

// Cache has the objects of informers, as *informer.SharedInformerFactory does.
type Cache interface {
	Cached(kind schema.GroupVersionKind, key kube.Key, like kube.Object) kube.Object
}

// Answer is the answer to a Request.
type Answer struct {
	// Code of the status; 0: none came.
	Code int
	// Bytes of the body that the client has read.
	Bytes int64
	// Ended: the client reads no more.
	Ended bool
}

// TaskOf returns the reconcile that ctx belongs to; nil: none.
func TaskOf(ctx context.Context) Task {
	t, _ := ctx.Value(TaskKey{}).(Task)
	return t
}

// RecordingOf returns what t is written to; nil: nothing is.
func RecordingOf(t Task) *recording.Run {
	if t, ok := t.(interface{ Recording() *recording.Run }); ok {
		return t.Recording()
	}
	return nil
}

// given is implemented by a Task that knows the time, and chance.
type given interface {
	Now() time.Time
	Random(what string) float64
}

// Now returns the wall clock time for the reconcile that ctx belongs to, or for the program. It has
// no monotonic reading.
func Now(ctx context.Context) time.Time {
	if t, ok := TaskOf(ctx).(given); ok {
		return t.Now()
	}
	return simhook.Wall(simhook.Of(ctx))
}

// Random returns a random number in [0, 1) for the reconcile that ctx belongs to, or for the
// program. What names the purpose, for a simulation.
func Random(ctx context.Context, what string) float64 {
	if t, ok := TaskOf(ctx).(given); ok {
		return t.Random(what)
	}
	return simhook.Float64(simhook.Of(ctx), what)
}

// TraceContextOf returns the span of the reconcile that ctx belongs to, as the text of a
// kube.TraceContextAnnotation. Empty: there is none.
func TraceContextOf(ctx context.Context) string {
	if t, ok := TaskOf(ctx).(interface{ TraceContext() string }); ok {
		return t.TraceContext()
	}
	return ""
}

// Moved reports progress to the reconcile that ctx belongs to, if there is one.
func Moved(ctx context.Context) {
	if t := TaskOf(ctx); t != nil {
		t.Moved()
	}
}
