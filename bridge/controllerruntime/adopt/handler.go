// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	theirs "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// Handler returns a source, for Watch of a controller, that gives the events of i to h if all of preds admit them. O is
// client.Object for most handlers, or T. The objects are shared: h and preds must not modify them. Versions that cannot be
// decoded are no events. News of the controller's own writes are, in contrast to source.Kind. The objects have all fields,
// whatever Fields the Scopes of i have.
//
// An i or h that is nil, and misuse of i, is returned by Watch's controller when it runs.
func Handler[T kube.Object, O client.Object](i *informer.SharedInformer[T], h handler.TypedEventHandler[O, theirs.Request],
	preds ...predicate.TypedPredicate[O],
) source.Source[reconcile.Key] {
	s := &handled[T, O]{informer: i, handler: h, preds: slices.Clone(preds)}
	switch {
	case i == nil:
		s.state = newState("handler", errors.New("the informer is nil; give one from informer.For"))
		return s
	case h == nil:
		s.state = newState("handler of "+i.Kind().Kind, errors.New("the event handler is nil"))
		return s
	}
	if len(i.Lister().Fields()) > 0 {
		_ = i.KeepAllFields() // an error is that of the informer
	}
	s.state = newState("handler of "+i.Kind().Kind, i.Err())
	return s
}

// handled is the source of an informer's events with their handler.
type handled[T kube.Object, O client.Object] struct {
	*state
	informer *informer.SharedInformer[T]
	handler  handler.TypedEventHandler[O, theirs.Request]
	preds    []predicate.TypedPredicate[O]
}

// Run implements source.Source.
func (s *handled[T, O]) Run(ctx context.Context, add func(reconcile.Key, source.Cause)) error {
	if err := s.begin(); err != nil {
		return err
	}
	o := newOut(add)
	reg, err := s.informer.AddHandler(func(e kube.Event[T]) {
		if o.calls.Begin() {
			defer o.calls.End()
			s.handle(ctx, o, e)
		}
	}, informer.HandlerOptions{Name: "source " + s.name})
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("source %s: add handler: %w", s.name, err)
	}
	defer o.close()
	defer reg.Remove()
	synced, ended := reg.Synced(), s.informer.Ended()
	for {
		select {
		case <-synced:
			close(s.synced)
			synced = nil
		case <-ended:
			if err := s.informer.Err(); err != nil && synced != nil {
				return fmt.Errorf("source %s: wait for sync: %w", s.name, err)
			} else if err != nil {
				return nil
			}
			ended = nil // the run has ended
		case <-ctx.Done():
			return nil
		}
	}
}

// Snapshot returns the state of the source.
func (s *handled[T, O]) Snapshot() source.Snapshot {
	snap := s.state.Snapshot()
	if s.informer != nil {
		snap.Kind = s.informer.Kind().GroupKind()
	}
	return snap
}

func (s *handled[T, O]) handle(ctx context.Context, o *out, e kube.Event[T]) {
	q := queue{out: o, cause: source.CauseOf(s.name, s.informer.Kind().GroupKind(), e)}
	old, _ := any(e.Old).(O)
	now, _ := any(e.New).(O)
	switch e.Type {
	case kube.Added:
		c := event.TypedCreateEvent[O]{Object: now, IsInInitialList: e.Initial}
		if s.pass(func(p predicate.TypedPredicate[O]) bool { return p.Create(c) }) {
			s.handler.Create(ctx, c, q)
		}
	case kube.Updated:
		u := event.TypedUpdateEvent[O]{ObjectOld: old, ObjectNew: now}
		if s.pass(func(p predicate.TypedPredicate[O]) bool { return p.Update(u) }) {
			s.handler.Update(ctx, u, q)
		}
	case kube.Deleted:
		d := event.TypedDeleteEvent[O]{Object: old, DeleteStateUnknown: e.FinalStateUnknown}
		if s.pass(func(p predicate.TypedPredicate[O]) bool { return p.Delete(d) }) {
			s.handler.Delete(ctx, d, q)
		}
	}
}

func (s *handled[T, O]) pass(admits func(predicate.TypedPredicate[O]) bool) bool {
	return !slices.ContainsFunc(s.preds, func(p predicate.TypedPredicate[O]) bool { return !admits(p) })
}
