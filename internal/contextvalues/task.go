// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package contextvalues

import "context"

// TaskKey is the context key of a Task.
type TaskKey struct{}

// Task is a running reconcile. Its methods are safe for concurrent use and do not block.
type Task interface {
	// Moved counts a sign of progress, such as the answer to a request.
	Moved()
	// Name returns the name of the controller, and the key as text.
	Name() (controller, key string)
}

// TaskOf returns the reconcile that ctx belongs to; nil: none.
func TaskOf(ctx context.Context) Task {
	t, _ := ctx.Value(TaskKey{}).(Task)
	return t
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
