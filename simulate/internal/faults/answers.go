// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// losses are the answers to lose, in the order of the calls that asked for it.
type losses struct {
	next int // writes of any kind
	list []loss
}

// loss is one answer to lose.
type loss struct {
	of []schema.GroupKind
	to int // number of the request; below 0: any of these kinds
}

// LoseResponse loses the answers to the next writes of any kind.
func (f *Requests) LoseResponse(times int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.losses.next = times
}

// LoseResponseOf loses the answer to the next write of one of these kinds.
func (f *Requests) LoseResponseOf(kinds ...schema.GroupKind) { f.lose(loss{kinds, -1}) }

// LoseResponseTo loses the answer to one request, or if it stores nothing, to the next
// write of its kind.
func (f *Requests) LoseResponseTo(number int, kind schema.GroupKind) {
	f.lose(loss{[]schema.GroupKind{kind}, number})
}

func (f *Requests) lose(l loss) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.losses.list = append(f.mu.losses.list, l)
}

// LosesResponse reports whether the answer to a write is lost. Each loss happens once.
func (f *Requests) LosesResponse(number int, kind schema.GroupKind) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := &f.mu.losses
	i := slices.IndexFunc(l.list, func(one loss) bool {
		return one.to == number || one.to < 0 && slices.Contains(one.of, kind)
	})
	switch {
	case i >= 0:
		l.list = slices.Delete(l.list, i, i+1)
	case l.next > 0:
		l.next--
	default:
		return false
	}
	return true
}

// Over ends a request. If its answer was to be lost and was not, that of the next write of
// its kind is.
func (f *Requests) Over(number int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.mu.refused, number)
	for i := range f.mu.losses.list {
		if one := &f.mu.losses.list[i]; one.to == number {
			one.to = -1
		}
	}
}

// DamageList damages the answer to the next list of a resource.
func (f *Requests) DamageList(r schema.GroupResource, how Damage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	set(&f.mu.lists, r, how)
}

// DamageEvent damages the next event of a resource.
func (f *Requests) DamageEvent(r schema.GroupResource, how Damage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	set(&f.mu.events, r, how)
}

// ListDamage returns how the answer to a list or a watch is damaged; empty if it is not.
// Each damage happens once.
func (f *Requests) ListDamage(r schema.GroupResource) Damage {
	f.mu.Lock()
	defer f.mu.Unlock()
	return takeDamage(f.mu.lists, r)
}

// EventDamage returns how an event is damaged; empty if it is not. Each damage happens once.
func (f *Requests) EventDamage(r schema.GroupResource) Damage {
	f.mu.Lock()
	defer f.mu.Unlock()
	return takeDamage(f.mu.events, r)
}

func takeDamage(of map[schema.GroupResource]Damage, r schema.GroupResource) Damage {
	how, damaged := of[r]
	if damaged {
		delete(of, r)
	}
	return how
}
