// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"cmp"
	"container/heap"
	"time"
)

// waiting are the requests that have not passed yet. One more or less costs as much as a few
// comparisons, however many there are: an informer of thousands of namespaces waits with
// thousands of lists.
type waiting struct {
	all      map[ticket]*queued
	lines    map[*line]bool // with requests
	rising   pile           // all, by the time at which their rank rises
	compared int            // number of comparisons, for tests
}

// queued is a request in its line and among the rising.
type queued struct {
	ticket
	Ask
	*line
	rises  time.Time // when its rank rises next
	places [2]int    // in the two piles
}

// line are the requests of a kind, lists apart: each of them may pass if the first may.
type line struct {
	*asked
	list bool
	pile // by urgency
}

const (
	inLine = iota
	inRising
)

// pile is a heap of requests, which know their places in it.
type pile struct {
	all   []*queued
	place int // index of queued.places
	less  func(a, b *queued) bool
}

func (p *pile) Len() int           { return len(p.all) }
func (p *pile) Less(i, j int) bool { return p.less(p.all[i], p.all[j]) }
func (p *pile) Swap(i, j int) {
	p.all[i], p.all[j] = p.all[j], p.all[i]
	p.all[i].places[p.place], p.all[j].places[p.place] = i, j
}

func (p *pile) Push(w any) {
	q := w.(*queued)
	q.places[p.place] = len(p.all)
	p.all = append(p.all, q)
}

func (p *pile) Pop() any {
	last := len(p.all) - 1
	q := p.all[last]
	p.all[last] = nil
	p.all = p.all[:last]
	return q
}

func newWaiting() *waiting {
	w := &waiting{all: map[ticket]*queued{}, lines: map[*line]bool{}}
	w.rising = pile{place: inRising, less: w.earlier}
	return w
}

func (w *waiting) len() int { return len(w.all) }

// add adds a request of kind k.
func (w *waiting) add(t ticket, a Ask, k *asked) {
	w.remove(t)
	l := &k.single
	if a.List {
		l = &k.lists
	}
	if l.asked == nil {
		*l = line{asked: k, list: a.List, pile: pile{place: inLine, less: w.before}}
	}
	q := &queued{ticket: t, Ask: a, line: l, rises: a.since.Add(promoteAfter)}
	w.all[t], w.lines[l] = q, true
	heap.Push(&l.pile, q)
	heap.Push(&w.rising, q)
}

// remove removes a request, if it waits.
func (w *waiting) remove(t ticket) {
	q := w.all[t]
	if q == nil {
		return
	}
	delete(w.all, t)
	heap.Remove(&q.line.pile, q.places[inLine])
	heap.Remove(&w.rising, q.places[inRising])
	if len(q.line.all) == 0 {
		delete(w.lines, q.line)
	}
}

// promote raises the rank of each request by one per minute of waiting.
func (w *waiting) promote(now time.Time) {
	for len(w.rising.all) > 0 && !now.Before(w.rising.all[0].rises) {
		q := w.rising.all[0]
		minutes := now.Sub(q.rises)/promoteAfter + 1
		q.Rank -= rank(minutes)
		q.rises = q.rises.Add(minutes * promoteAfter)
		heap.Fix(&w.rising, 0)
		heap.Fix(&q.line.pile, q.places[inLine])
	}
}

// earlier orders by the time at which the rank rises.
func (w *waiting) earlier(a, b *queued) bool {
	w.compared++
	return a.rises.Before(b.rises)
}

// before orders by urgency, then size of the list, then arrival. Tickets are in the order of
// arrival.
func (w *waiting) before(a, b *queued) bool {
	w.compared++
	return cmp.Or(
		cmp.Compare(a.urgency(), b.urgency()),
		cmp.Compare(a.Size, b.Size),
		a.since.Compare(b.since),
		cmp.Compare(a.ticket, b.ticket),
	) < 0
}

// urgency is the rank of q. An API group with ill kinds goes behind all others.
func (q *queued) urgency() rank {
	if *q.groupIll > 0 {
		return q.Rank + ranks
	}
	return q.Rank
}

// linesOf returns those of the lines, the one with the most urgent request first.
func (w *waiting) linesOf(able func(*line) bool) lines {
	out := lines{less: w.before}
	for l := range w.lines {
		if able(l) {
			out.lines = append(out.lines, l)
		}
	}
	heap.Init(&out)
	return out
}

// lines is a heap of lines, by their first requests.
type lines struct {
	lines []*line
	less  func(a, b *queued) bool
}

func (l *lines) Len() int { return len(l.lines) }
func (l *lines) Less(i, j int) bool {
	return l.less(l.lines[i].all[0], l.lines[j].all[0])
}

func (l *lines) Swap(i, j int) { l.lines[i], l.lines[j] = l.lines[j], l.lines[i] }
func (l *lines) Push(v any)    { l.lines = append(l.lines, v.(*line)) }

func (l *lines) Pop() any {
	last := len(l.lines) - 1
	v := l.lines[last]
	l.lines = l.lines[:last]
	return v
}
