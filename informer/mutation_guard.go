// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// mutationGuard is the MutationDetector's place in one informer.
type mutationGuard struct {
	*MutationDetector
	kind       func() schema.GroupVersionKind
	mend       func(*kept) bool // puts the truth into the store
	holds      func(*kept) bool // the store does
	count      atomic.Int64     // objects kept
	found      atomic.Uint64
	unfaithful atomic.Bool // the kind's copies differ from their originals
}

// kept is a shared object and what it is to be.
type kept struct {
	guard   *mutationGuard
	key     Key
	object  Object
	truth   Object
	since   uint64        // by the detector's clock
	good    atomic.Uint64 // when it was last seen unchanged
	read    atomic.Uint64 // when a read of it was last noted
	retired atomic.Uint64 // when another version took its place; 0: it has not
	found   atomic.Bool   // changed
}

// handlerName is who runs in a listener.
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

// keep makes the copy. It is nil where obj is kept already, and where its type's
// DeepCopyObject makes something else of it: there a difference says nothing.
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
	truth, ok := obj.DeepCopyObject().(Object)
	if fields := differences(obj, truth); !ok || len(fields) > 0 {
		return nil, fmt.Errorf("copy %T: it differs at %v", obj, fields)
	}
	return truth, nil
}

// retire compares k, which handlers may still be given as what was before, and
// keeps it for a pass or two.
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

// shelve notes that k is retired, and returns whom there is no more room for.
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

// leave compares what the informer has for the last time, and lets it go.
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
