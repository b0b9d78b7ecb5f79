// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownnews

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer"
)

const (
	// limit is how many writes a Ledger remembers. An older one is news.
	limit = 1024
	// mostPostponed is how many events wait for the end of one reconcile. The next is news.
	mostPostponed = 64
)

// Write is a step of one object, or of several in a row.
type Write struct {
	Kind schema.GroupKind
	Key  informer.Key
	UID  types.UID
	// From and To are versions. From 0: the object did not exist.
	From, To informer.Version
	// Gone: the object does not exist any more; To means nothing.
	Gone bool
}

// object is the identity of one for its whole life.
type object struct {
	kind schema.GroupKind
	key  informer.Key
	uid  types.UID
}

func (w Write) object() object { return object{w.Kind, w.Key, w.UID} }

// step is a Write, and the key whose reconcile has made it.
type step[K comparable] struct {
	by       K
	from, to informer.Version
	gone     bool
}

// Ledger has the last writes of the reconciles of one controller. The zero Ledger is empty.
type Ledger[K comparable] struct {
	mu struct {
		sync.Mutex
		steps map[object][]step[K]
		// running has the reconciles in progress by key, and what was postponed to their ends.
		running map[K][]postponed
		order   [limit]object // of the steps, as a ring
		next    int           // place in order
		full    bool
	}
}

// postponed is an event whose watch may have overtaken the answer to a write.
type postponed struct {
	event  Write
	decide func(own bool)
}

// Begin records that a reconcile of the key by begins. At most one is in progress.
func (l *Ledger[K]) Begin(by K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.running == nil {
		l.mu.running = make(map[K][]postponed)
	}
	l.mu.running[by] = nil
}

// End records that the reconcile ends, and decides what was postponed to its end, in order. It
// must be called before the key is done.
func (l *Ledger[K]) End(by K) {
	l.mu.Lock()
	waiting := l.mu.running[by]
	own := make([]bool, len(waiting))
	for i, p := range waiting {
		own[i] = l.ownLocked(by, p.event)
	}
	delete(l.mu.running, by)
	l.mu.Unlock()
	for i, p := range waiting {
		p.decide(own[i])
	}
}

// Judge reports whether an event is own news for the key by. While a reconcile of the key is
// in progress, only its end shows that it is not: the event of a write may arrive before its
// answer. later is then true, and decide is called at the end. Nothing comes late by that,
// because the key is held.
func (l *Ledger[K]) Judge(by K, event Write, decide func(own bool)) (own, later bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ownLocked(by, event) {
		return true, false
	}
	waiting, running := l.mu.running[by]
	if !running || len(waiting) >= mostPostponed {
		return false, false
	}
	l.mu.running[by] = append(waiting, postponed{event, decide})
	return false, true
}

// Wrote records a write of a reconcile of the key by. It must be called before the informers
// learn of the write.
func (l *Ledger[K]) Wrote(by K, w Write) {
	if w.UID == "" || w.Gone && w.From == 0 || !w.Gone && w.From >= w.To {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.steps == nil {
		l.mu.steps = make(map[object][]step[K])
	}
	if l.mu.full {
		l.dropLocked(l.mu.order[l.mu.next])
	}
	o := w.object()
	l.mu.steps[o] = append(l.mu.steps[o], step[K]{by: by, from: w.From, to: w.To, gone: w.Gone})
	l.mu.order[l.mu.next] = o
	if l.mu.next++; l.mu.next == limit {
		l.mu.next, l.mu.full = 0, true
	}
}

// dropLocked drops the first step of o.
func (l *Ledger[K]) dropLocked(o object) {
	steps := l.mu.steps[o]
	if len(steps) <= 1 {
		delete(l.mu.steps, o)
		return
	}
	steps[0] = step[K]{}
	l.mu.steps[o] = steps[1:]
}

// Own reports whether reconciles of the key by have made every step of w.
func (l *Ledger[K]) Own(by K, w Write) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ownLocked(by, w)
}

func (l *Ledger[K]) ownLocked(by K, w Write) bool {
	at, gone, steps := w.To, w.Gone, l.mu.steps[w.object()]
	for i := len(steps) - 1; i >= 0; i-- {
		s := steps[i]
		if s.by != by || s.gone != gone || !gone && (at == 0 || s.to != at) {
			continue
		}
		if at, gone = s.from, false; at == w.From {
			return true
		}
	}
	return false
}
