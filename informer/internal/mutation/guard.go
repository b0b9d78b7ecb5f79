// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/compact"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/kube"
)

// Guard is the part of a Detector in one informer. With a nil
// *Guard, OfferDeltas, OfferWrite and RetireReplaced do nothing.
type Guard struct {
	*Detector
	kind       func() schema.GroupVersionKind
	indexer    *store.Indexer
	count      atomic.Int64 // of kept objects
	found      atomic.Uint64
	unfaithful atomic.Bool // copies of the kind differ from their originals
}

// NewGuard returns the guard of the store in indexer, or nil if detector is nil: detection is off.
func NewGuard(detector *Detector, kind func() schema.GroupVersionKind, indexer *store.Indexer) *Guard {
	if detector == nil {
		return nil
	}
	return &Guard{Detector: detector, kind: kind, indexer: indexer}
}

// Found returns how many mutations were found.
func (g *Guard) Found() uint64 { return g.found.Load() }

// Show copies obj, which a packed object was opened as, before any reader has it.
func (g *Guard) Show(obj kube.Object) { g.offer(nil, kube.KeyOf(obj), obj) }

// BeginCall records that the handler of that name is called with the objects, until EndCall.
func (g *Guard) BeginCall(handler string, given ...kube.Object) *Visit {
	return g.begin(handlerName{handler, g.kind().Kind}, given...)
}

// EndCall ends a call, and compares what it was given.
func (g *Guard) EndCall(v *Visit) { g.end(v) }

// Kept is a shared object and its copy.
type Kept struct {
	guard   *Guard
	key     kube.Key
	object  kube.Object
	truth   kube.Object
	since   uint64        // by the detector's clock
	good    atomic.Uint64 // when it was last seen unchanged
	read    atomic.Uint64 // when a read was last recorded
	retired atomic.Uint64 // when another version replaced it; 0: current
	found   atomic.Bool   // a mutation was reported
}

type handlerName struct{ name, kind string }

func (h handlerName) String() string { return fmt.Sprintf("handler %q of %s", h.name, h.kind) }

// OfferDeltas copies the objects about to be stored, before any reader has them.
func (g *Guard) OfferDeltas(deltas []store.Delta) (offered []*Kept) {
	if g == nil {
		return nil
	}
	for i := range deltas {
		if d := &deltas[i]; d.Type != store.Sync && d.Err == nil && !base.IsNil(d.Object) && !compact.IsPacked(d.Object) {
			offered = g.offer(offered, d.Key, d.Object)
		}
	}
	return offered
}

// OfferWrite is OfferDeltas for an own write.
func (g *Guard) OfferWrite(o store.Observed) (offered []*Kept) {
	if g == nil || o.Effect != kube.Stored || base.IsNil(o.Object) || compact.IsPacked(o.Object) {
		return nil
	}
	return g.offer(nil, o.Key, o.Object)
}

// RetireReplaced drops the copies of objects that were not stored, and retires those
// of replaced objects.
func (g *Guard) RetireReplaced(offered []*Kept, changes []store.Change) {
	if g == nil {
		return
	}
	stored := make(map[*Kept]bool, len(offered))
	for i := range changes {
		ch := &changes[i]
		was, is := g.find(ch.Old), g.find(ch.New)
		if is != nil {
			stored[is] = true
		}
		if was != nil && was != is {
			was.retire()
		}
		if is != nil && ch.After == nil {
			is.retire()
		}
	}
	for _, k := range offered {
		if !stored[k] {
			k.drop()
		}
	}
}

// holds reports whether the store has the object.
func (g *Guard) holds(k *Kept) bool {
	obj, _, _ := g.indexer.Get(k.key)
	return compact.Is(obj, k.object)
}

// repair restores the copy in the store.
func (g *Guard) repair(k *Kept) bool {
	truth := kube.Copy(k.truth)
	fresh := g.keep(k.key, truth)
	repaired := g.indexer.Restore(k.key, k.object, truth)
	if !repaired && fresh != nil {
		fresh.drop()
	}
	return repaired
}

func (g *Guard) offer(offered []*Kept, key kube.Key, obj kube.Object) []*Kept {
	if g.detection.Rate < 1 && (g.count.Load() >= sampleLimit || rand.Float64() >= g.detection.Rate) {
		return offered
	}
	if k := g.keep(key, obj); k != nil {
		offered = append(offered, k)
	}
	return offered
}

// keep copies obj. It returns nil if obj is kept already, or if the copy
// differs from it because of its type's DeepCopyObject.
func (g *Guard) keep(key kube.Key, obj kube.Object) *Kept {
	truth, err := faithfulCopy(obj)
	if err != nil {
		if g.unfaithful.CompareAndSwap(false, true) {
			g.log.Error(err, "Cannot detect modifications of this object, because its copy differs from it; fix the type's DeepCopyObject", "kind", g.kind().Kind, "key", key.String())
		}
		return nil
	}
	k := &Kept{guard: g, key: key, object: obj, truth: truth, since: g.clock.Load()}
	k.good.Store(k.since)
	if _, taken := g.kept.LoadOrStore(obj, k); taken {
		return nil
	}
	g.count.Add(1)
	return k
}

func faithfulCopy(obj kube.Object) (truth kube.Object, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("copy %T: panic: %v", obj, p)
		}
	}()
	truth = kube.Copy(obj)
	if fields := differences(obj, truth); len(fields) > 0 {
		return nil, fmt.Errorf("copy %T: it differs at %v", obj, fields)
	}
	return truth, nil
}

// retire compares k and keeps it for another pass or two, since handlers may
// still receive it as Old.
func (k *Kept) retire() {
	d := k.guard.Detector
	if !k.retired.CompareAndSwap(0, d.clock.Load()) {
		return
	}
	d.check(k)
	if late := d.shelve(k); late != nil {
		d.check(late)
		late.drop()
	}
}

// Hide retires obj, which a packed object was opened as, without comparing it
// now: the caller may hold locks.
func (g *Guard) Hide(obj kube.Object) {
	k := g.find(obj)
	if k == nil || !k.retired.CompareAndSwap(0, g.clock.Load()) {
		return
	}
	if late := g.shelve(k); late != nil {
		late.drop()
	}
}

// shelve records that k is retired, and returns the one that it displaces.
func (d *Detector) shelve(k *Kept) (late *Kept) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.retired.Len() == retiredLimit {
		late = d.mu.retired.Pop()
	}
	d.mu.retired.Push(k)
	return late
}

func (k *Kept) drop() {
	if k.guard.kept.CompareAndDelete(k.object, k) {
		k.guard.count.Add(-1)
	}
}

// Leave compares all objects of the informer once more and drops them.
func (g *Guard) Leave() {
	g.kept.Range(func(_, v any) bool {
		if k := v.(*Kept); k.guard == g {
			g.check(k)
			k.drop()
		}
		return true
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	for range g.mu.retired.Len() {
		if k := g.mu.retired.Pop(); k.guard != g {
			g.mu.retired.Push(k)
		}
	}
}
