// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager/internal/inspect"
)

// Lease is that of the leader election. *election.Elector is one.
type Lease interface {
	Change(ctx context.Context, change func(l *coordinationv1.Lease) (bool, error)) error
}

// Recorder records Events.
type Recorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// Options of an Actor.
type Options struct {
	Log logr.Logger
	// Events returns a recorder that reports as a controller.
	Events func(controller string) Recorder
	// Lease and its key; nil: there is no leader election, and nothing is paused.
	Lease    Lease
	LeaseKey kube.Key
	Pauses   *Pauses
	// Pod of the process; zero: it is in none.
	Pod kube.Key
}

// Actor is a program that takes actions.
type Actor struct {
	inspect.Program
	opts Options
}

// New returns a program that takes actions.
func New(p inspect.Program, opts Options) *Actor { return &Actor{p, opts} }

// CannotPause is why a program without leader election does not pause.
const CannotPause = "a pause is kept in the Lease of the leader election, where it outlives the process, and this program has none; " +
	"set Options.LeaderElection (-leader-elect)"

// Act implements inspect.Actor.
func (a *Actor) Act(ctx context.Context, do inspect.Action) (inspect.Done, error) {
	done := inspect.Done{Version: inspect.Version, Action: do.Name, Controller: do.Controller, Key: do.Key}
	c, _ := a.Controller(do.Controller).(inspect.Controllable)
	resumes := do.Name == inspect.ActionResume // also what an older program has paused
	if c == nil && !resumes {
		return done, inspect.Refused(http.StatusNotFound, "there is no controller %q; the overview lists all", do.Controller)
	}
	var err error
	switch do.Name {
	case inspect.ActionPause, inspect.ActionResume:
		done.Changed, err = a.pause(ctx, do)
	case inspect.ActionRun, inspect.ActionResetBackoff:
		done.Changed, err = true, a.run(c, do)
	default:
		err = inspect.Refused(http.StatusNotFound, "there is no action %q", do.Name)
	}
	if err != nil {
		return done, err
	}
	if done.Text = said(do, done.Changed); done.Changed {
		a.record(c, do)
	}
	return done, nil
}

// said tells what was done.
func said(do inspect.Action, changed bool) string {
	switch do.Name {
	case inspect.ActionPause:
		if !changed {
			return do.What() + " was paused already"
		}
		return do.What() + " is paused; a reconcile in progress ends"
	case inspect.ActionResume:
		if !changed {
			return do.What() + " was not paused by itself"
		}
		return do.What() + " is resumed"
	case inspect.ActionResetBackoff:
		return do.What() + " has no failures any more, and runs now"
	}
	return do.What() + " runs now"
}

// pause writes a pause or resume into the Lease. Each replica, this one too, does what that says.
func (a *Actor) pause(ctx context.Context, do inspect.Action) (changed bool, err error) {
	if a.opts.Lease == nil {
		return false, inspect.Refused(http.StatusConflict, "cannot %s %s: "+CannotPause, do.Name, do.What())
	}
	err = a.opts.Lease.Change(ctx, func(l *coordinationv1.Lease) (bool, error) {
		now, err := decode(l.Annotations[Annotation])
		if err != nil {
			return false, inspect.Refused(http.StatusConflict, "cannot %s %s: the annotation %s of the Lease %s is malformed (%v); remove it, which resumes all",
				do.Name, do.What(), Annotation, a.opts.LeaseKey, err)
		}
		next, differs, err := now.after(do, time.Now())
		if changed = differs; err != nil || !differs {
			return false, err
		}
		text, err := next.encode()
		if err != nil {
			return false, err
		}
		metav1.SetMetaDataAnnotation(&l.ObjectMeta, Annotation, text)
		if text == "" {
			delete(l.Annotations, Annotation)
		}
		return true, nil
	})
	status := apierrors.APIStatus(nil)
	switch {
	case err == nil:
		return changed, nil
	case apierrors.IsNotFound(err):
		return false, inspect.Refused(http.StatusConflict, "cannot %s %s: the Lease %s, which keeps pauses, does not exist yet; wait until a replica leads",
			do.Name, do.What(), a.opts.LeaseKey)
	case errors.As(err, &status), inspect.StatusOf(err) == http.StatusInternalServerError:
		return false, inspect.Refused(http.StatusServiceUnavailable, "cannot %s %s: %v", do.Name, do.What(), err)
	}
	return false, err
}

// run makes a key ready.
func (a *Actor) run(c inspect.Controllable, do inspect.Action) error {
	refuse := func(status int, format string, args ...any) error {
		return inspect.Refused(status, "cannot run %s: %s", do.What(), fmt.Sprintf(format, args...))
	}
	if l := a.Parts().Leadership; l != nil && !l.Leading {
		return refuse(http.StatusConflict, "this replica waits for the Lease %s, and only the leader reconciles; ask that, %q", l.Lease, l.Holder)
	}
	if place := inspect.PlaceOf(a, do.Controller, do.Key); place != nil {
		switch place.Stage {
		case inspect.StageHeld:
		case inspect.StageClaimed:
			return refuse(http.StatusConflict, "shard %d has come to this replica a moment ago, and its informers catch up; try again", place.Shard)
		case inspect.StageDraining:
			return refuse(http.StatusConflict, "shard %d is about to move to another replica; try again", place.Shard)
		default:
			return refuse(http.StatusMisdirectedRequest, "it belongs to %s, and only the replica that holds it reconciles it", place)
		}
	}
	paused, run := c.Snapshot().Pauses.Of(do.Key), c.RunNow
	if do.Name == inspect.ActionResetBackoff {
		run = c.ResetBackoff
	}
	switch known := inspect.Known(a, c, do.Key); {
	case known && paused != nil:
		return refuse(http.StatusConflict, "it is paused, by %s; resume it", paused.By)
	case !known || !run(do.Key, do.By):
		return refuse(http.StatusNotFound, "it is not in the queue, has no recorded run, and no cache of a source has an object of this name%s", inspect.Elsewhere(a, c, do.Key))
	}
	return nil
}

// reasons of Events.
var reasons = map[string]string{
	inspect.ActionRun: "RunRequested", inspect.ActionResetBackoff: "BackoffReset", inspect.ActionPause: "Paused", inspect.ActionResume: "Resumed",
}

// record logs an action, and records an Event about the object of the key, or else about the Lease or the Pod.
func (a *Actor) record(c inspect.Controllable, do inspect.Action) {
	log := textlog.Unthrottled(a.opts.Log)
	values := []any{"action", do.Name, "controller", do.Controller, "by", do.By}
	if do.Key != "" {
		values = append(values, "key", do.Key)
	}
	log.Info("A user has acted on this program", values...)
	about := a.self()
	if c != nil && do.Key != "" {
		if obj, kind := inspect.Cached(a, c, do.Key); obj != nil {
			about = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(),
			}}
			about.SetGroupVersionKind(kind)
		}
	}
	a.send(about, do.Controller, reasons[do.Name], do.Name, do.By, do.What())
}

// send records an Event; a nil object: there is none. Events that differ in their note alone are
// merged, so that the user is in the action, too.
func (a *Actor) send(about *metav1.PartialObjectMetadata, controller, reason, action, by, what string) {
	if about == nil {
		return
	}
	const longest = 128 // the server's limit for an action
	a.opts.Events(controller).Eventf(about, nil, corev1.EventTypeNormal, reason, shorten(action+" by "+by, longest), "%s of %s, by %s", action, what, by)
}

// self returns the Lease or the Pod of the program; nil: it has neither.
func (a *Actor) self() *metav1.PartialObjectMetadata {
	about := &metav1.PartialObjectMetadata{}
	switch {
	case a.opts.Lease != nil:
		about.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
		about.Namespace, about.Name = a.opts.LeaseKey.Namespace, a.opts.LeaseKey.Name
		_, about.UID = a.opts.Pauses.known()
	case a.opts.Pod.Name != "":
		about.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
		about.Namespace, about.Name = a.opts.Pod.Namespace, a.opts.Pod.Name
	default:
		return nil
	}
	return about
}
