// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"fmt"
	"iter"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/reflector"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

// ownWrites stores the writes of this process in its core before a watch has them. What a
// write leaves, but is not known, it reads from the server.
type ownWrites struct {
	core    *core
	settler settler
}

// begin makes s the writes of c, and their settler join its run.
func (s *ownWrites) begin(c *core) {
	s.core = c
	s.settler = settler{
		Store: s, Name: c.object.String(), Log: c.log, PageSize: cmp.Or(c.opts.PageSize, reflector.DefaultPageSize),
		Read: func(scope listwatch.Scope) (listwatch.ListerWatcher[kube.Object], error) { return c.settling(scope) },
	}
	_ = c.group.Go(s.settler.Run)
}

// observe stores an own write and notifies the listeners, before any watch
// does.
func (s *ownWrites) observe(w kube.Written) {
	switch w.Effect {
	case kube.Touched:
		s.markPending(w)
	case kube.Removed:
		s.storeAnswer(store.Observed{Effect: kube.Removed, Key: w.Key, UID: w.UID, Version: w.Version}, nil, nil, nil)
	case kube.Stored:
		switch hidden, err := s.storeWritten(w); {
		case err != nil:
			s.markPending(w)
		case hidden:
			s.settler.Mark(w.Key, 0)
		}
	}
}

// markPending makes the key of w pending, if a scope of the informer may have it.
func (s *ownWrites) markPending(w kube.Written) {
	for _, watched := range s.core.critical.watchedNow() {
		if of := watched.scope.Namespace; of == "" || w.Key.Namespace == "" || of == w.Key.Namespace {
			s.settler.Mark(w.Key, w.Version)
			return
		}
	}
}

// storeWritten stores an object as the server has it. hidden is as of Indexer.Observe. It
// returns an error if the informer cannot hold the object in this form.
func (s *ownWrites) storeWritten(w kube.Written) (hidden bool, err error) {
	for stored := false; !stored && err == nil; {
		stored, hidden, err = s.storeAs(w, s.core.projection.current())
	}
	return hidden, err
}

// storeAs is storeWritten with the fields of a generation. It stores nothing if that is no
// longer the present one.
func (s *ownWrites) storeAs(w kube.Written, as *generation) (stored, hidden bool, err error) {
	obj, err := s.core.typed(w)
	if err != nil {
		return false, false, err
	}
	o := store.Observed{Effect: kube.Stored, Key: w.Key, UID: w.UID, Version: w.Version}
	in, unsure := s.matching(obj)
	as.keeps(s.core.settings.keepsManagedFields()).reduce(obj)
	if transform := s.core.settings.transform(); transform == nil {
		o.Object = obj
	} else if o.Object, o.Err = base.CallTransform(transform, obj); o.Err != nil {
		if o, err = s.refusedWrite(o, w); err != nil {
			return false, false, err
		}
	}
	stored, hidden = s.storeAnswer(s.core.packing.answer(o), in, unsure, as)
	return stored, hidden, nil
}

// storeAnswer stores what the server has answered, and notifies the listeners. It stores
// nothing if the object is not as of the present generation; nil: there is none.
func (s *ownWrites) storeAnswer(o store.Observed, in, unsure []*watched, as *generation) (stored, hidden bool) {
	offered := s.core.guard.OfferWrite(o)
	changes := s.core.store(store.Batch{}, true, func() (changes []store.Change, err error) {
		if stored = as == nil || as == s.core.projection.current(); !stored {
			return nil, nil
		}
		changes, hidden, err = s.observeLocked(o, in, unsure)
		return changes, err
	})
	s.core.guard.RetireReplaced(offered, changes)
	if stored && o.Err != nil {
		s.core.refusals.scheduleOne(o.Key)
	}
	return stored, hidden
}

// observeLocked changes the store by what the server has answered. in and unsure are as of
// matching.
func (s *ownWrites) observeLocked(o store.Observed, in, unsure []*watched) (changes []store.Change, hidden bool, err error) {
	scopes := &s.core.critical.scopes
	o.In, o.Unsure = scopes.ids(in), scopes.ids(unsure)
	if obj, _, err := s.core.indexer.Get(o.Key); err != nil || !base.IsNil(obj) && kube.ParseVersion(obj.GetResourceVersion()) > o.Version {
		held, unheld := heldBy(in, o.Key, obj, err != nil || s.core.settings.transform() != nil)
		o.Held, o.Unheld = scopes.ids(held), scopes.ids(unheld)
	}
	s.core.auditor.hearLocked(o.Key)
	s.core.projection.recordStored(o.Version)
	return s.core.indexer.Observe(o)
}

// heldBy divides scopes into those that have the object of key as it is stored, and those that
// have not. changed: its labels are not known, so that the others are in neither.
func heldBy(scopes []*watched, key kube.Key, obj kube.Object, changed bool) (held, unheld []*watched) {
	for _, w := range scopes {
		switch {
		case w.surely(key, obj, changed):
			held = append(held, w)
		case !changed:
			unheld = append(unheld, w)
		}
	}
	return held, unheld
}

// refusedWrite returns o, the write w, as an object that the transform refused.
func (s *ownWrites) refusedWrite(o store.Observed, w kube.Written) (store.Observed, error) {
	original, err := s.core.typed(w) // the transform may have modified its argument
	if err != nil {
		o.Err = nil
		return o, err
	}
	s.core.projection.current().keeps(s.core.settings.keepsManagedFields()).reduce(original)
	o.Object, o.Original, o.Err = nil, original, fmt.Errorf("transform: %w", o.Err)
	o.Metadata = base.MetadataOf(original, original.GetObjectKind().GroupVersionKind())
	return o, nil
}

// matching returns the scopes that obj belongs to, and those for which only the
// server can tell.
func (s *ownWrites) matching(obj kube.Object) (in, unsure []*watched) {
	for _, w := range s.core.critical.watchedNow() {
		switch w.matcher.Match(obj) {
		case reflector.Inside:
			in = append(in, w)
		case reflector.Undecided:
			unsure = append(unsure, w)
		}
	}
	return in, unsure
}

// Version implements settlerStore.
func (s *ownWrites) Version(key kube.Key) kube.Version {
	obj, _, _ := s.core.indexer.Get(key)
	if base.IsNil(obj) {
		return 0
	}
	return kube.ParseVersion(obj.GetResourceVersion())
}

// Keys implements settlerStore.
func (s *ownWrites) Keys(namespace string) iter.Seq[kube.Key] {
	return func(yield func(kube.Key) bool) {
		for r := range s.core.indexer.View().All() {
			if (namespace == "" || namespace == r.Key.Namespace) && !yield(r.Key) {
				return
			}
		}
	}
}

// Found implements settlerStore.
func (s *ownWrites) Found(item listwatch.Item[kube.Object]) {
	_, _ = s.storeWritten(kube.Written{
		Kind: s.core.gvk(), Effect: kube.Stored, Key: item.Key, UID: item.UID,
		Version: kube.ParseVersion(item.ResourceVersion), Object: item.Object,
	})
}

// Absent implements settlerStore.
func (s *ownWrites) Absent(key kube.Key, version kube.Version) {
	s.storeAnswer(store.Observed{Absent: true, Key: key, Version: version}, nil, nil, nil)
}
