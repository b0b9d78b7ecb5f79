// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package task tells code that a reconcile calls which reconcile that is.
//
//	reconcile: its context answers Key ─▶ a request in that context ─▶ Of(ctx)
//
// A reconcile that has a ledger of its own writes is an ownnews.Run too.
package task

import "context"

// Key is the context key of a Task.
type Key struct{}

// Task is a running reconcile. Its methods are safe for concurrent use and do not block.
type Task interface {
	// Moved counts a sign of progress, such as the answer to a request.
	Moved()
	// Name returns the name of the controller, and the key as text.
	Name() (controller, key string)
}

// Of returns the reconcile that ctx belongs to; nil: none.
func Of(ctx context.Context) Task {
	t, _ := ctx.Value(Key{}).(Task)
	return t
}

// Moved reports progress to the reconcile that ctx belongs to, if there is one.
func Moved(ctx context.Context) {
	if t := Of(ctx); t != nil {
		t.Moved()
	}
}
