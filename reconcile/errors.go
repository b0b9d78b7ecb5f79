// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/kube"
)

// Terminal marks err as one that no retry can fix, such as an invalid spec: the key
// waits for its next event. It is counted and logged as an error. An
// *kube.UndecodableError from a Lister is terminal without it: a source of its kind
// delivers the event when the object is fixed. So is a *kube.NamespaceError: no object
// can have that key. Terminal(nil) is nil. Among joined errors one that can be retried wins.
func Terminal(err error) error {
	if err == nil {
		return nil
	}
	return &terminalError{err}
}

type terminalError struct{ err error }

func (e *terminalError) Error() string { return e.err.Error() }
func (e *terminalError) Unwrap() error { return e.err }

// IgnoreNotFound returns nil if err says that an object is not found, and err
// otherwise. Of joined errors all must say so.
func IgnoreNotFound(err error) error {
	if every(err, isNotFound) {
		return nil
	}
	return err
}

// ErrParentGone and ErrParentChanged are returned by Apply and PruneAll, with
// ChildSetOptions.AskParent, when a child is to be written or deleted and the cache is late:
// the server has no parent with that UID, or has a newer one. A reconcile that returns them
// counts as a conflict: it is retried with backoff, and at once when the cache has the change.
var (
	ErrParentGone    = errors.New("the server no longer has the parent, so the child is not written")
	ErrParentChanged = errors.New("the server has a newer parent than the cache, so the child is not written")
	// ErrChildTerminating is returned by Apply for a child of Recreate that still exists after
	// its deletion, as while a finalizer holds it. It counts as a conflict, too: the deletion is
	// an event of source.Owned, and the reconcile after it creates the child.
	ErrChildTerminating = errors.New("the child is being deleted, and is created when it is gone")
)

// ConflictWaiter is the error of a reconcile that was ahead of the cache and can signal
// when a retry makes sense: a *client.ConflictError, or the *kube.NotSettledError of a
// Lister after a write whose effect is not known. It is found with errors.As.
type ConflictWaiter interface {
	error
	// WhenPassed calls do once, when the cache holds a version newer than the one that
	// failed, the object is gone, or the effect of the write is known; at once if that is
	// already so. It does not block.
	// stop cancels the wait.
	WhenPassed(do func()) (stop func())
}

// goneError is the error of a reconcile whose object the server no longer has, while the cache
// still does.
type goneError struct{ err error }

func (e *goneError) Error() string { return e.err.Error() }
func (e *goneError) Unwrap() error { return e.err }

// PanicError is the error of a reconcile that panicked, or ended its goroutine.
type PanicError struct {
	// Value of the panic; nil if runtime.Goexit ended the goroutine.
	Value any
	// Stack of the goroutine where it panicked.
	Stack string
}

// Error includes the value of the panic.
func (e *PanicError) Error() string {
	if e.Value == nil {
		return "reconcile ended its goroutine with runtime.Goexit"
	}
	return fmt.Sprintf("reconcile panicked: %v", e.Value)
}

// Unwrap returns the panic's value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// DeadlineError is the cause of the context of a reconcile that was cancelled at its
// hard deadline.
type DeadlineError struct {
	// Limit is the hard deadline.
	Limit time.Duration
}

// Error names the limit.
func (e *DeadlineError) Error() string {
	return fmt.Sprintf("hard deadline of %s passed", e.Limit)
}

// ErrStopped is the cause of the context of a reconcile that still ran when the drain
// timeout of its stopped controller had passed, or when leadership was lost.
var ErrStopped = errors.New("the controller has stopped and must not wait for its reconciles any longer")

// ErrCutOff, as the cause of the end of Run's context, cancels the reconciles in flight
// at once, because another process may now own their objects.
var ErrCutOff = errors.New("requests in flight must not continue")

// ErrNotLeading is wrapped by the error of a write that was refused because this
// process does not lead, or no longer. Nothing was sent, unless the error says that the
// outcome is unknown. A reconcile that returns it counts as stopped, and is retried
// with backoff.
var ErrNotLeading = errors.New("this process is not the leader")

// every reports whether is holds for err or an error that it wraps, and of joined
// errors for each.
func every(err error, is func(error) bool) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if is(err) {
			return true
		}
		if joined, ok := err.(interface{ Unwrap() []error }); ok {
			parts := joined.Unwrap()
			return len(parts) > 0 && !slices.ContainsFunc(parts, func(part error) bool { return !every(part, is) })
		}
	}
	return false
}

// isTerminal reports whether err is marked Terminal, is about an undecodable object, whose next
// version is an event of each source of its kind, or about a key that no object can have.
func isTerminal(err error) bool {
	switch err := err.(type) {
	case *kube.UndecodableError:
		return !err.Live
	case *kube.NamespaceError, *terminalError:
		return true
	}
	return false
}

// isNotSettled reports whether a read depends on a write whose effect is not known yet.
func isNotSettled(err error) bool {
	_, ok := err.(*kube.NotSettledError)
	return ok
}

func isNotLeading(err error) bool { return err == ErrNotLeading }

func isNotFound(err error) bool {
	_, ok := err.(apierrors.APIStatus)
	return ok && apierrors.IsNotFound(err)
}

// isStaleConflict reports whether the write was based on an old resourceVersion or parent, or
// on an object that is gone, or a read depends on a write whose effect is not known yet. The
// server also answers 409 Conflict if another field manager owns a field or the UID differs;
// reading again does not fix those.
func isStaleConflict(err error) bool {
	if err == ErrParentChanged || err == ErrParentGone || err == ErrChildTerminating {
		return true
	}
	if _, ok := err.(*goneError); ok {
		return true
	}
	if _, ok := err.(ConflictWaiter); ok {
		return true
	}
	_, ok := err.(apierrors.APIStatus)
	return ok && apierrors.IsConflict(err) &&
		!apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict) &&
		!strings.Contains(err.Error(), "UID in precondition")
}

// guarded calls f and returns its panic. It does not detect runtime.Goexit.
func guarded(f func()) (p *PanicError) {
	defer func() {
		if v := recover(); v != nil {
			p = &PanicError{Value: v, Stack: string(debug.Stack())}
		}
	}()
	f()
	return nil
}
