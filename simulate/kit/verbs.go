// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/kube"
)

// Object is an API object of a type in Config.Scheme.
type Object = kube.Object

// Create creates obj as the user, and sets it to the server's answer. Failure ends the
// scenario.
func (w *World) Create(obj Object) {
	w.verb("create", obj, func() error { return w.user.client.Create(w.clock.ctx, obj) })
}

// Apply applies obj as the user, by server-side apply. Failure ends the scenario.
func (w *World) Apply(obj Object) {
	w.verb("apply", obj, func() error { return w.user.client.Apply(w.clock.ctx, obj, client.FieldOwner("user"), client.Force{}) })
}

// Edit reads obj, calls change to modify it, and writes it; on a conflict it repeats
// all of that. Failure ends the scenario.
func (w *World) Edit(obj Object, change func()) {
	w.verb("edit", obj, func() error {
		for {
			if err := w.user.client.Get(w.clock.ctx, kube.KeyOf(obj), obj); err != nil {
				return err
			}
			change()
			if err := w.user.client.Update(w.clock.ctx, obj); !apierrors.IsConflict(err) {
				return err
			}
		}
	})
}

// Delete deletes obj as the user. A missing object is not a failure.
func (w *World) Delete(obj Object) {
	w.verb("delete", obj, func() error {
		if err := w.user.client.Delete(w.clock.ctx, obj); !apierrors.IsNotFound(err) {
			return err
		}
		return nil
	})
}

// Get reads the object with obj's name into obj, and reports whether it exists. Any
// other failure ends the scenario.
func (w *World) Get(obj Object) bool {
	if w.ended() {
		return false
	}
	err := w.user.patiently("get "+kube.KeyOf(obj).String(), func() error { return w.user.client.Get(w.clock.ctx, kube.KeyOf(obj), obj) })
	if err != nil && !apierrors.IsNotFound(err) {
		w.Fatalf("get %T %s: %v%s", obj, kube.KeyOf(obj), err, hint(err))
	}
	return err == nil
}

// verb carries out an action of the user at an instant of its own.
func (w *World) verb(name string, obj Object, do func() error) {
	if w.ended() {
		return
	}
	if w.record.isFull() {
		runtime.Goexit()
	}
	key := kube.KeyOf(obj)
	if err := w.user.act(name, fmt.Sprintf("%T", obj), key.String(), do); err != nil {
		w.Fatalf("%s %T %s: %v%s", name, obj, key, err, hint(err))
	}
}

// Do makes a fault happen now, whatever the trigger of the operation:
// w.Do(kit.Crash(0)). It returns when the fault has begun. In a world of several
// processes op.In chooses one. If the fault has no subject, or the fault phase is over,
// the scenario ends.
func (w *World) Do(op Op) {
	if w.ended() {
		return
	}
	if err := (Plan{op}).misuse(); err != nil {
		w.Fatalf("misuse: Do: %v", err)
	}
	if text := unknownKind(op, slices.Concat(w.server.Kinds(), w.faults.services.kinds())); text != "" {
		w.Fatalf("misuse: Do: %s", text)
	}
	op.id = "do " + op.String()
	nth := w.faults.nthDone(op.id)
	op.When = Trigger{At: time.Since(w.clock.start)}
	w.clock.rest(op.id, w.clock.draws.UpTo(op.id+" at", time.Millisecond))
	switch {
	case w.faults.healed():
		w.Fatalf("misuse: Do: %s after the fault phase of %v, in which all faults belong; do it before, or give a longer Config.FaultPhase", op, w.cfg.FaultPhase)
	case !w.faults.fire(op, nth, nil):
		w.Fatalf("misuse: Do: there is nothing that %s could happen to now; the processes are %s", op, strings.Join(w.programs.names(), ", "))
	}
}

func hint(err error) string {
	if _, ok := errors.AsType[*kube.NotServedError](err); ok {
		return "; the server does not serve the kind: give its CRD in Config.CRDs, or the kind in Config.Kinds"
	}
	if refusal, ok := errors.AsType[*apierrors.StatusError](err); ok && apierrors.IsNotFound(err) && refusal.ErrStatus.Details.Kind == "namespaces" {
		return "; name the namespace in Config.Namespaces, or create it first"
	}
	for cause := err; cause != nil; cause = errors.Unwrap(cause) {
		if apiruntime.IsNotRegisteredError(cause) {
			return "; give a scheme with the type in Config.Scheme"
		}
	}
	return ""
}

// Eventually blocks until f returns nil, and ends the scenario if it does not within
// Config.Quiesce. The interval between calls of f grows.
func (w *World) Eventually(f func() error) {
	deadline := time.Now().Add(w.cfg.Quiesce)
	for wait := 100 * time.Millisecond; !w.ended(); wait = min(2*wait, rarely) {
		err := f()
		if err == nil {
			return
		}
		if w.gaveUp() {
			runtime.Goexit()
		}
		if time.Now().After(deadline) {
			w.Fatalf("not satisfied within %v: %v", w.cfg.Quiesce, err)
		}
		w.clock.rest("user", wait)
	}
}

// Settled requires f to hold after the faults: it must return nil within
// Config.Quiesce, and still after Config.Stay in which only time passes.
func (w *World) Settled(f func() error) {
	if w.mayAdd(f) {
		w.checks.addSettled(f)
	}
}

// Never requires f to return nil at all times: it is called after each change of the
// server. Its error describes the forbidden state.
func (w *World) Never(f func() error) {
	if w.mayAdd(f) {
		w.checks.addNever(f)
	}
}

func (w *World) mayAdd(f func() error) bool {
	if w.ended() {
		return false
	}
	if f == nil {
		w.Fatalf("misuse: the function of a check is nil; give a func() error")
	}
	return true
}

// Helper, Errorf, FailNow and Fatalf let assertion libraries use a World as a
// testing.TB.
func (w *World) Helper() {}

// Errorf fails the run. The scenario continues.
func (w *World) Errorf(format string, args ...any) {
	w.record.fail("scenario", fmt.Sprintf(format, args...))
}

// FailNow ends the scenario. Call it in the scenario's own goroutine.
func (w *World) FailNow() { runtime.Goexit() }

// Fatalf is Errorf and FailNow.
func (w *World) Fatalf(format string, args ...any) {
	w.Errorf(format, args...)
	w.FailNow()
}

func clone(obj apiruntime.Object) Object { return kube.Copy(obj.(Object)) }

const rarely = 15 * time.Second
