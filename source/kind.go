// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/fielddiff"
	"github.com/flyball-dev/flyball/internal/ownevents"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/internal/taskgroup"
	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/kube"
)

// KindSource is a source of an informer's events. Make it with Kind, Owned,
// OwnedByAny or Mapped.
type KindSource[T kube.Object, K comparable] struct {
	*record
	informer *informer.SharedInformer[T]
	mapper   Mapper[K]
	filter   Predicate
	self     bool                        // mapper is Self
	ofAny    bool                        // the owners need not be controllers
	owners   func() schema.GroupKind     // whose keys it adds; nil: not of owners
	known    func(context.Context) error // asks whether the owners are namespaced; nil: not of owners
}

// Kind returns a source of i's events: m returns the keys, and an event must
// pass every one of preds. Undecodable versions are events too, with their
// metadata for m; see the package comment. Run registers a handler with the
// informer and removes it at the end; it does not run the informer. Nil
// arguments, predicates for another type and the informer's own misuse are
// misuse, returned by Run.
func Kind[T kube.Object, K comparable](i *informer.SharedInformer[T], m Mapper[K], preds ...Predicate) *KindSource[T, K] {
	var misuse error
	if m == nil {
		misuse = errors.New("the mapper is nil; give source.Self, or use source.Owned or source.Mapped")
	}
	return newKind(i, m, preds, misuse)
}

func newKind[T kube.Object, K comparable](i *informer.SharedInformer[T], m Mapper[K], preds []Predicate, misuse error) *KindSource[T, K] {
	of := objects{like: *new(T)}
	filter := And(slices.Clone(preds)...)
	name, theirs := "kind unknown", errors.New("the informer is nil; give one from informer.For or informer.New")
	if i != nil {
		name, theirs, of.kept = "kind "+i.Kind().Kind, i.Err(), i.Lister().Fields()
	}
	return &KindSource[T, K]{
		record:   newRecord(name, theirs, misuse, filter.check(of)),
		informer: i,
		mapper:   m,
		self:     m != nil && reflect.ValueOf(m).Pointer() == reflect.ValueOf(Self).Pointer(),
		filter:   filter,
	}
}

// Run adds the keys of the informer's events until ctx ends, and then waits for
// the event being handled. It is an error if the informer accepts no more
// handlers, or is released before it has synced. If it is released later, Run
// returns nil.
func (s *KindSource[T, K]) Run(ctx context.Context, add func(K, Cause)) error {
	if err := s.begin(); err != nil {
		return err
	}
	f := feed[T, K]{source: s, add: add, sim: simhook.Of(ctx), filter: ownevents.FilterOf[K](ctx), log: textlog.Throttled(logr.FromContextOrDiscard(ctx)).WithValues("source", s.name)}
	s.discover(ctx, f.log)
	reg, err := s.informer.AddHandler(f.handle, informer.HandlerOptions{Name: "source " + s.name, Undecodable: true})
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("source %s: add handler: %w", s.name, err)
	}
	defer f.calls.Close()
	defer reg.Remove()
	return s.follow(ctx, reg, f.log)
}

// discoveryRetry is the time between two attempts of discover.
const discoveryRetry = time.Second

// discover returns when it is known whether the owners are namespaced, ctx has ended, or the
// informer was released. It logs why it waits: the children's informer may have synced.
func (s *KindSource[T, K]) discover(ctx context.Context, log logr.Logger) {
	if s.known == nil {
		return
	}
	for err := s.known(ctx); err != nil && ctx.Err() == nil; err = s.known(ctx) {
		textlog.Warn(log, err, "Source waits until it is known whether its owners are namespaced", "owners", s.owners().Kind)
		select {
		case <-ctx.Done():
			return
		case <-s.informer.Ended():
			return
		case <-time.After(discoveryRetry):
		}
	}
}

// Snapshot returns the state of the source.
func (s *KindSource[T, K]) Snapshot() Snapshot {
	snap := s.record.Snapshot()
	if s.informer != nil {
		snap.Kind = s.informer.Kind().GroupKind()
	}
	snap.Self = s.self
	if s.owners != nil {
		snap.Owners, snap.Controllers = s.owners(), !s.ofAny
	}
	return snap
}

// follow returns when ctx has ended or the informer was released.
func (s *KindSource[T, K]) follow(ctx context.Context, reg *informer.Registration, log logr.Logger) error {
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
				log.Info("Source stopped because its informer was released")
				return nil
			}
			ended = nil // the run has ended
		case <-ctx.Done():
			return nil
		}
	}
}

// feed is one run of a KindSource. The informer calls handle from one
// goroutine.
type feed[T kube.Object, K comparable] struct {
	source *KindSource[T, K]
	add    func(K, Cause)
	sim    simhook.Hooks
	log    logr.Logger
	calls  taskgroup.Calls
	filter ownevents.Filter[K]
	keys   []K // of the present event
}

func (f *feed[T, K]) handle(typed kube.Event[T]) {
	if !f.calls.Begin() {
		return
	}
	defer f.calls.End()
	f.source.events.Add(1)
	e := untyped(typed)
	if !f.passes(e) {
		f.source.dropped.Add(1)
		f.recordDropped(e)
		f.reportEvaluated(e.Key, 0)
		return
	}
	cause := causeOf(f.source.name, f.source.informer.Kind().GroupKind(), e)
	f.keys = f.quiet(e, f.keysOf(e), cause)
	f.reportEvaluated(e.Key, len(f.keys))
	if len(f.keys) > 0 {
		f.explain(&cause, e)
	}
	for _, key := range f.keys {
		f.give(key, cause)
	}
}

// explain adds the fields that e has changed, if the controller asks for them.
func (f *feed[T, K]) explain(cause *Cause, e kube.Event[kube.Object]) {
	if f.filter.Explain && e.Type == kube.Updated && e.Old != nil && e.New != nil && !e.Resync {
		changed := fielddiff.Between(e.Old, e.New)
		cause.changed = &changed
	}
}

// keysOf returns the keys of e, each once, until the next call.
func (f *feed[T, K]) keysOf(e kube.Event[kube.Object]) []K {
	f.keys = f.keys[:0]
	for _, obj := range states(e) {
		f.collect(e.Key, obj)
	}
	f.keys = distinct(f.keys)
	return f.keys
}

// reportEvaluated reports to a simulation how many keys an event leads to.
func (f *feed[T, K]) reportEvaluated(key Key, keys int) {
	if f.sim != nil {
		f.sim.Note(simhook.Note{What: simhook.Evaluated, Kind: f.source.informer.Kind().Kind, Name: f.source.name, Key: key.String(), Count: keys})
	}
}

func (f *feed[T, K]) passes(e kube.Event[kube.Object]) (pass bool) {
	pass = true
	defer f.caught(e.Key, "Predicate panicked; the event passes")
	return passes(f.source.filter, e)
}

// collect appends the keys of obj. After a panic the keys so far stay.
func (f *feed[T, K]) collect(key Key, obj kube.Object) {
	defer f.caught(key, "Mapper panicked; keys of this event are lost")
	for k := range f.source.mapper(obj) {
		f.keys = append(f.keys, k)
	}
}

func (f *feed[T, K]) caught(key Key, what string) {
	if p := recover(); p != nil {
		f.source.panics.Add(1)
		f.log.Error(fmt.Errorf("panic: %v", p), what, "object", key, "stack", string(debug.Stack()))
	}
}

// untyped returns e without T. Absent objects become nil.
func untyped[T kube.Object](e kube.Event[T]) kube.Event[kube.Object] {
	var none T
	u := kube.Event[kube.Object]{
		Type: e.Type, Key: e.Key, Initial: e.Initial, Resync: e.Resync, Healed: e.Healed,
		FinalStateUnknown: e.FinalStateUnknown, LeftScope: e.LeftScope, Own: e.Own, Undecodable: e.Undecodable,
	}
	if any(e.Old) != any(none) {
		u.Old = e.Old
	}
	if any(e.New) != any(none) {
		u.New = e.New
	}
	return u
}

// states returns the objects to map: the old and the new one, and the metadata
// of an undecodable one. An event without any still has its key.
func states(e kube.Event[kube.Object]) []kube.Object {
	if e.Undecodable != nil && e.Undecodable.Metadata != nil {
		if e.Old == nil {
			return []kube.Object{e.Undecodable.Metadata}
		}
		return []kube.Object{e.Old, e.Undecodable.Metadata}
	}
	switch {
	case e.Old == nil && e.New == nil:
		return []kube.Object{&metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{Namespace: e.Key.Namespace, Name: e.Key.Name},
		}}
	case e.Old == nil || e.Old == e.New:
		return []kube.Object{e.New}
	case e.New == nil:
		return []kube.Object{e.Old}
	}
	return []kube.Object{e.Old, e.New}
}

// CauseOf returns the cause of the keys that a source adds for an event of an object of a kind. name
// is that of the source. An empty kind is not known.
func CauseOf[T kube.Object](name string, kind schema.GroupKind, e kube.Event[T]) Cause {
	return causeOf(name, kind, untyped(e))
}

// CauseWithChanges is CauseOf, whose Changed names the fields that an Updated has changed. It compares
// the objects.
func CauseWithChanges[T kube.Object](name string, kind schema.GroupKind, e kube.Event[T]) Cause {
	u := untyped(e)
	c := causeOf(name, kind, u)
	if u.Old != nil && u.New != nil {
		changed := fielddiff.Between(u.Old, u.New)
		c.changed = &changed
	}
	return c
}

func causeOf(name string, kind schema.GroupKind, e kube.Event[kube.Object]) Cause {
	c := Cause{Source: name, Kind: kind, Type: e.Type, Object: e.Key, Initial: e.Initial, Resync: e.Resync, Own: e.Own}
	if e.Old != nil {
		c.OldGeneration, c.OldVersion = e.Old.GetGeneration(), kube.ParseVersion(e.Old.GetResourceVersion())
	}
	if e.Old != nil && e.New != nil {
		c.Deleting = e.Old.GetDeletionTimestamp().IsZero() && !e.New.GetDeletionTimestamp().IsZero()
	}
	switch {
	case e.New != nil:
		c.Generation, c.Version = e.New.GetGeneration(), kube.ParseVersion(e.New.GetResourceVersion())
		c.TraceContext = e.New.GetAnnotations()[kube.TraceContextAnnotation]
	case e.Type == kube.Undecoded && e.Undecodable.Metadata != nil:
		c.Generation, c.Version = e.Undecodable.Metadata.GetGeneration(), kube.ParseVersion(e.Undecodable.Metadata.GetResourceVersion())
	}
	return c
}

// distinct removes duplicates from keys, in place and in order.
func distinct[K comparable](keys []K) []K {
	const few = 32
	if len(keys) <= few {
		out := keys[:0]
		for _, k := range keys {
			if !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
		return out
	}
	seen := make(map[K]struct{}, len(keys))
	out := keys[:0]
	for _, k := range keys {
		if _, ok := seen[k]; !ok {
			seen[k] = struct{}{}
			out = append(out, k)
		}
	}
	return out
}
