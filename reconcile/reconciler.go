// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"time"

	"github.com/flyball-dev/flyball/informer"
)

// Key names an object within its kind; it is the key of most controllers.
type Key = informer.Key

// Func compares what is wanted with what is, for one key, and acts. It is called by
// one worker per key at a time, and by several workers for different keys.
//
// It reads from Listers and decides from what they show, not from what has
// happened: events of a key are merged. ctx carries a logger with the controller,
// the key and the reconcile's ID, and is cancelled at the hard deadline, or when the
// controller has stopped and the time for draining has passed.
//
// The returned values mean:
//
//	Result{}, nil       done: wait for the next event
//	After(d, why), nil  run again when d has passed; resets the backoff
//	Retry(why), nil     not there yet: run again with backoff; not an error
//	_, err              the error wins over the Result: run again with backoff
//	_, Terminal(err)    an error that no retry can heal: wait for the next event
//	_, a conflict       see ConflictWaiter: quiet, run again with backoff or when the
//	                    cache has caught up
//
// An event that arrives in the meantime has the key run at once, whatever the
// backoff; and each run decides anew about the next. The backoff goes on from there,
// unless the event says that something else is wanted of the object that the key names:
// it is new, gone or to be deleted, or its generation is another. Then the backoff is
// reset, as after a success. A change of its status, and changes of other objects, do
// not reset it. (Where K is not Key nobody can tell which object a key names: there
// each object counts.)
//
// Keys that sources name for their first list, or for a resync, are run behind those
// that live events name, but not for ever behind them; see Options.PrioritizeBy.
type Func[K comparable] func(ctx context.Context, key K) (Result, error)

// Result of a reconcile that met no error. The zero Result is: done, wait for the
// next event.
type Result struct {
	// RequeueAfter has the key run again when it has passed, and resets the
	// backoff. It wins over Retry. Negative is a time that has come already: as
	// Retry.
	RequeueAfter time.Duration
	// Retry has the key run again with backoff, as after an error.
	Retry bool
	// Reason is shown to people: in logs at V(1).
	Reason string
	// Priority of the next run, if RequeueAfter or Retry asks for one. Nil: that of
	// this one. See Options.PrioritizeBy.
	Priority *int
}

// After is the Result that has the key run again when d has passed, and resets the
// backoff. A d that is not above zero, such as time.Until of a moment that has just
// passed, is not lost: it is Retry, so that the key runs again almost at once and a
// loop of such results slows down.
func After(d time.Duration, reason string) Result {
	if d <= 0 {
		return Retry(reason)
	}
	return Result{RequeueAfter: d, Reason: reason}
}

// Retry is the Result that has the key run again with backoff. It is for what is
// not there yet and is no error: counted apart from errors and logged at V(1).
func Retry(reason string) Result { return Result{Retry: true, Reason: reason} }

// keyText is key as logs and states show it: namespace/name for a Key.
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
