// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownevents

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/kube"
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
	Key  kube.Key
	UID  types.UID
	// From and To are versions. From 0: the object did not exist.
	From, To kube.Version
	// Gone: the object does not exist any more; To means nothing.
	Gone bool
}

// object is the identity of one for its whole life.
type object struct {
	kind schema.GroupKind
	key  kube.Key
	uid  types.UID
}

// String names the object.
func (w Write) String() string {
	if w.Key.Namespace == "" {
		return w.Kind.String() + " " + w.Key.Name
	}
	return w.Kind.String() + " " + w.Key.String()
}

func (w Write) object() object { return object{w.Kind, w.Key, w.UID} }

// step is a Write, and the key whose reconcile has made it.
type step[K comparable] struct {
	by       K
	from, to kube.Version
	gone     bool
}

// Ledger has the last writes of the reconciles of one controller. The zero Ledger is empty. It
// remembers nothing of a key that is not equal to itself (a NaN), which could not be found again:
// each event is news for it.
type Ledger[K comparable] struct {
	mu struct {
		sync.Mutex
		steps map[object][]step[K]
		// running has the reconciles in progress by key.
		running map[K]*run
		// idle has the keys whose last reconcile wrote, was done, and after which nobody else has
		// changed anything.
		idle  map[K]pause
		order [limit]object // of the steps, as a ring
		next  int           // place in order
		full  bool
		// dropped counts the events of others' changes that a predicate has dropped.
		dropped uint64
	}
}

// pause is a key between two reconciles.
type pause struct {
	last    Write  // of the reconcile before
	dropped uint64 // at its end
}

// run is a reconcile in progress.
type run struct {
	waiting []postponed
	ended   bool   // no more events wait for its end
	last    Write  // of its writes
	news    bool   // others have changed something since it began
	before  Write  // the last write of the reconcile before, if there was no news in between
	more    Write  // the first write since then
	dropped uint64 // at its begin
}

// Unfinished is a reconcile that was done although work was left: the next one of its key wrote
// More, and nobody else had changed anything in between.
type Unfinished struct{ Last, More Write }

// postponed is an event whose watch may have overtaken the answer to a write.
type postponed struct {
	event  Write
	decide func(own bool)
}

// Begin records that a reconcile of the key by begins. At most one is in progress.
func (l *Ledger[K]) Begin(by K) {
	if by != by { // true for NaN
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.running == nil {
		l.mu.running, l.mu.idle = make(map[K]*run), make(map[K]pause)
	}
	r := &run{dropped: l.mu.dropped}
	if is := l.mu.idle[by]; is.dropped == l.mu.dropped {
		r.before = is.last
	}
	l.mu.running[by] = r
	delete(l.mu.idle, by)
}

// End records that the reconcile ends, and decides what was postponed to its end, in order. It
// must be called before the key is done. done: it asked for no other. idle: it wrote, and nothing
// but an event of others will lead to another. found is what it shows of the one before; nil:
// nothing.
func (l *Ledger[K]) End(by K, done bool) (idle bool, found *Unfinished) {
	if by != by {
		return false, nil
	}
	r, own := l.ending(by)
	for i, p := range r.waiting {
		p.decide(own[i])
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.mu.running, by)
	r.news = r.news || r.dropped != l.mu.dropped
	if r.more != (Write{}) && !r.news {
		found = &Unfinished{r.before, r.more}
	}
	if !done || r.news || r.last == (Write{}) {
		return false, found
	}
	if len(l.mu.idle) == limit {
		for key := range l.mu.idle {
			delete(l.mu.idle, key)
			break
		}
	}
	l.mu.idle[by] = pause{r.last, l.mu.dropped}
	return true, found
}

func (l *Ledger[K]) ending(by K) (r *run, own []bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r = l.mu.running[by]
	r.ended = true
	for _, p := range r.waiting {
		own = append(own, l.ownLocked(by, p.event))
	}
	return r, own
}

// News records that others have changed something that concerns the key by, or call for it.
func (l *Ledger[K]) News(by K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.mu.idle, by)
	if r := l.mu.running[by]; r != nil {
		r.news = true
	}
}

// Dropped records an event that a predicate has dropped, and that is therefore not mapped to keys.
// It is news for all of them, since a later reconcile of any may act on what it reports, unless
// the reconciles of one key have made every step of it. plain: the event is no more than the step.
func (l *Ledger[K]) Dropped(event Write, plain bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	own := func(s step[K]) bool {
		return s.gone == event.Gone && (s.gone || s.to == event.To) && l.ownLocked(s.by, event)
	}
	if !plain || !slices.ContainsFunc(l.mu.steps[event.object()], own) {
		l.mu.dropped++
	}
}

// Classify reports whether an event is an own event of the key by. While a reconcile of the key is
// in progress, only its end shows that it is not: the event of a write may arrive before its
// answer. later is then true, and decide is called at the end. Nothing comes late by that,
// because the key is held.
func (l *Ledger[K]) Classify(by K, event Write, decide func(own bool)) (own, later bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ownLocked(by, event) {
		return true, false
	}
	r := l.mu.running[by]
	if r == nil || r.ended || len(r.waiting) >= mostPostponed {
		return false, false
	}
	r.waiting = append(r.waiting, postponed{event, decide})
	return false, true
}

// Wrote records a write of a reconcile of the key by. It must be called before the informers
// learn of the write.
func (l *Ledger[K]) Wrote(by K, w Write) {
	if by != by || w.UID == "" || w.Gone && w.From == 0 || !w.Gone && w.From >= w.To {
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
	if r := l.mu.running[by]; r != nil {
		r.last = w
		if r.before != (Write{}) && r.more == (Write{}) {
			r.more = w
		}
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
