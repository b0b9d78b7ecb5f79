// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"math"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/informer/internal/headroom"
	"github.com/flyball-dev/flyball/informer/internal/steps"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
)

// Memory per byte on the wire where the decoder does not count: of typed
// objects in protobuf 4.4 was measured, in JSON less; of unstructured ones 10.
const typedPerByte, loosePerByte = 4, 10

// heapOf returns the memory of an item's object.
func heapOf(item listwatch.Item[kube.Object]) uint32 {
	if item.Heap != 0 || item.Bytes == 0 {
		return item.Heap
	}
	per := uint64(typedPerByte)
	if _, loose := item.Object.(*unstructured.Unstructured); loose {
		per = loosePerByte
	}
	return uint32(min(per*uint64(item.Bytes), math.MaxUint32))
}

// roomFor waits until the memory budget admits the next list.
func (r *Reflector) roomFor(ctx context.Context, p steps.Progress) error {
	return r.Status.waitingFor(func(show func()) error {
		return r.room.Enter(ctx, func(h headroom.Hold) {
			show()
			r.Status.crowded(h, p.Phase)
		})
	})
}

// fits reports how many objects a list has received, and how many remain; 0: unknown. If there is
// no room for them, objects are packed while that frees memory. The error means that the list must
// stop. What the scope holds already takes no more memory when it is listed again.
func (r *Reflector) fits(replace replacement, objects int, remaining int64) error {
	received, estimate := r.needs(replace, objects, remaining)
	for r.Relieve != nil && !r.room.Fits(received, estimate) && r.Relieve(max(received, estimate)) {
		replace.Pack()
		received, estimate = r.needs(replace, objects, remaining)
	}
	return r.room.Grow(received, estimate, r.random)
}

func (r *Reflector) needs(replace replacement, objects int, remaining int64) (received, estimate int64) {
	received = replace.Heap()
	if remaining > 0 && objects > 0 {
		estimate = received + int64(float64(received)/float64(objects)*float64(remaining))
	}
	return max(received-r.kept, 0), max(estimate-r.kept, 0)
}

// crowded records that the next list waits for memory.
func (s *reflectorStatus) crowded(h headroom.Hold, phase steps.Phase) {
	s.mu.Lock()
	current := s.mu.state.State
	s.mu.state.NextTry = h.Until
	s.mu.Unlock()
	switch {
	case h.NoRoom:
		current = state.DoesNotFit
	case current == state.Streaming && phase == steps.PhaseList, current == state.Live:
		current = state.Listing
	}
	s.set(current, h.Why)
}

// waitingFor shows what holds up the next step while wait blocks.
func (s *reflectorStatus) waitingFor(wait func(show func()) error) error {
	before, waited := s.reason(), false
	err := wait(func() { waited = true })
	if waited && err == nil {
		s.resumed(before)
	}
	return err
}
