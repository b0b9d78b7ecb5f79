// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// mutationGuard is the part of a MutationDetector in one informer.
type mutationGuard struct {
	*MutationDetector
	kind       func() schema.GroupVersionKind
	mend       func(*kept) bool // restores the copy in the store
	holds      func(*kept) bool // reports whether the store has the object
	count      atomic.Int64     // of kept objects
	found      atomic.Uint64
	unfaithful atomic.Bool // copies of the kind differ from their originals
}

// kept is a shared object and its copy.
type kept struct {
	guard   *mutationGuard
	key     Key
	object  Object
	truth   Object
	since   uint64        // by the detector's clock
	good    atomic.Uint64 // when it was last seen unchanged
	read    atomic.Uint64 // when a read was last recorded
	retired atomic.Uint64 // when another version replaced it; 0: current
	found   atomic.Bool   // a mutation was reported
}

type handlerName struct{ name, kind string }

func (h handlerName) String() string { return fmt.Sprintf("handler %q of %s", h.name, h.kind) }

func (g *mutationGuard) offer(offered []*kept, key Key, obj Object) []*kept {
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
func (g *mutationGuard) keep(key Key, obj Object) *kept {
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

func faithfulCopy(obj Object) (truth Object, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("copy %T: panic: %v", obj, p)
		}
	}()
	truth = Copy(obj)
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
func (g *mutationGuard) hide(obj Object) {
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
