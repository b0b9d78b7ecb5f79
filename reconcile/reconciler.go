// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/flyball-dev/flyball/kube"
)

// Key identifies an object within its kind; most controllers use it.
type Key = kube.Key

// Func reconciles one key: it compares the desired with the current state and acts. It
// is called by one worker per key at a time, and by several workers for different keys.
//
// It reads from Listers and decides by the current state, not by events, which are
// coalesced per key. ctx carries a logger with the controller, the key and the
// reconcile's ID, and is cancelled at the hard deadline, or when the controller has
// stopped and the drain timeout has passed.
//
// The returned values mean:
//
//	Result{}, nil       wait for the next event; that of an own write is one, unless
//	                    Options.OmitOwnEvents is set
//	After(d, why), nil  run again when d has passed; resets the backoff
//	Retry(why), nil     not ready yet: run again with backoff; not an error
//	_, err              the error wins over the Result: run again with backoff
//	_, Terminal(err)    an error that no retry can fix: wait for the next event
//	_, a conflict       see ConflictWaiter: quiet, run again with backoff or when the
//	                    cache has caught up
//
// An event that arrives in the meantime makes the key run at once, whatever the
// backoff; each run decides again about the next. The backoff then continues, unless
// the event changes the desired state of the key's object: it is new, gone or being
// deleted, or has another generation. Then the backoff is reset, as after a success. A
// change of its status, and changes of other objects, do not reset it. (If K is not
// Key, any object's event counts, because the key's object is unknown.)
//
// Keys that sources add for their first list or a resync run after those of live
// events, but are not starved by them; see Options.PrioritizeBy.
type Func[K comparable] func(ctx context.Context, key K) (Result, error)

// Result of a reconcile without an error. The zero Result means: wait for the next event.
type Result struct {
	// RequeueAfter makes the key run again after that time, and resets the backoff. It
	// takes precedence over Retry. A negative time has already passed and acts as
	// Retry.
	RequeueAfter time.Duration
	// Retry makes the key run again with backoff, as after an error.
	Retry bool
	// Reason is shown in logs at V(1).
	Reason string
	// Priority of the next run, if RequeueAfter or Retry is set. Nil: that of this one.
	// See Options.PrioritizeBy.
	Priority *int
}

// After returns the Result that makes the key run again when d has passed, and resets
// the backoff. If d is not positive, such as time.Until of a moment that has just
// passed, the Result is a Retry: the key runs again almost at once, and a loop of such
// results slows down.
func After(d time.Duration, reason string) Result {
	if d <= 0 {
		return Retry(reason)
	}
	return Result{RequeueAfter: d, Reason: reason}
}

// Retry returns the Result that makes the key run again with backoff. Use it to wait
// for something that is not ready and not an error: it is counted separately from
// errors and logged at V(1).
func Retry(reason string) Result { return Result{Retry: true, Reason: reason} }

// keyText returns key as in logs and states: namespace/name for a Key.
func keyText(key any) string {
	k, ok := key.(Key)
	switch {
	case !ok:
		return fmt.Sprint(key)
	case k.Namespace == "":
		return k.Name
	}
	return k.String()
}
