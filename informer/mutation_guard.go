// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

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

// mutationGuard is the part of a MutationDetector in one informer. A nil *mutationGuard has
// no copies: its informer detects no mutations.
type mutationGuard struct {
	*MutationDetector
	kind       func() schema.GroupVersionKind
	indexer    *store.Indexer
	count      atomic.Int64 // of kept objects
	found      atomic.Uint64
	unfaithful atomic.Bool // copies of the kind differ from their originals
}

// newMutationGuard returns the guard of the store in indexer: by the factory's detector, or
// else by one of its own, which the caller runs. It returns nil if detection is off.
func newMutationGuard(opts Options, kind func() schema.GroupVersionKind, indexer *store.Indexer) *mutationGuard {
	detector := opts.detector
	if detector == nil {
		detector = newMutationDetector(opts.DetectMutations, opts.Logger)
	}
	if detector == nil {
		return nil
	}
	return &mutationGuard{MutationDetector: detector, kind: kind, indexer: indexer}
}

// kept is a shared object and its copy.
type kept struct {
	guard   *mutationGuard
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

// offerDeltas copies the objects about to be stored, before any reader has them.
func (g *mutationGuard) offerDeltas(deltas []store.Delta) (offered []*kept) {
	if g == nil {
		return nil
	}
	for i := range deltas {
		if d := &deltas[i]; d.Type != store.Sync && d.Err == nil && !base.IsNil(d.Object) && !isPacked(d.Object) {
			offered = g.offer(offered, d.Key, d.Object)
		}
	}
	return offered
}

// offerWrite is offerDeltas for an own write.
func (g *mutationGuard) offerWrite(o store.Observed) (offered []*kept) {
	if g == nil || o.Effect != kube.Stored || base.IsNil(o.Object) || isPacked(o.Object) {
		return nil
	}
	return g.offer(nil, o.Key, o.Object)
}

// retireReplaced drops the copies of objects that were not stored, and retires those
// of replaced objects.
func (g *mutationGuard) retireReplaced(offered []*kept, changes []store.Change) {
	if g == nil {
		return
	}
	stored := make(map[*kept]bool, len(offered))
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
func (g *mutationGuard) holds(k *kept) bool {
	obj, _, _ := g.indexer.Get(k.key)
	return compact.Is(obj, k.object)
}

// repair restores the copy in the store.
func (g *mutationGuard) repair(k *kept) bool {
	truth := kube.Copy(k.truth)
	fresh := g.keep(k.key, truth)
	repaired := g.indexer.Restore(k.key, k.object, truth)
	if !repaired && fresh != nil {
		fresh.drop()
	}
	return repaired
}

func (g *mutationGuard) offer(offered []*kept, key kube.Key, obj kube.Object) []*kept {
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
func (g *mutationGuard) keep(key kube.Key, obj kube.Object) *kept {
	truth, err := faithfulCopy(obj)
	if err != nil {
		if g.unfaithful.CompareAndSwap(false, true) {
			g.log.Error(err, "Cannot detect modifications of this object, because its copy differs from it; fix the type's DeepCopyObject", "kind", g.kind().Kind, "key", key.String())
		}
		return nil
	}
	k := &kept{guard: g, key: key, object: obj, truth: truth, since: g.clock.Load()}
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
func (k *kept) retire() {
	d := k.guard.MutationDetector
	if !k.retired.CompareAndSwap(0, d.clock.Load()) {
		return
	}
	d.check(k)
	if late := d.shelve(k); late != nil {
		d.check(late)
		late.drop()
	}
}

// hide retires obj, which a packed object was opened as, without comparing it
// now: the caller may hold locks.
func (g *mutationGuard) hide(obj kube.Object) {
	k := g.find(obj)
	if k == nil || !k.retired.CompareAndSwap(0, g.clock.Load()) {
		return
	}
	if late := g.shelve(k); late != nil {
		late.drop()
	}
}

// shelve records that k is retired, and returns the one that it displaces.
func (d *MutationDetector) shelve(k *kept) (late *kept) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.retired.Len() == retiredLimit {
		late = d.mu.retired.Pop()
	}
	d.mu.retired.Push(k)
	return late
}

func (k *kept) drop() {
	if k.guard.kept.CompareAndDelete(k.object, k) {
		k.guard.count.Add(-1)
	}
}

// leave compares all objects of the informer once more and drops them.
func (g *mutationGuard) leave() {
	g.kept.Range(func(_, v any) bool {
		if k := v.(*kept); k.guard == g {
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
