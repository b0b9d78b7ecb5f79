// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/flyball-dev/flyball/internal/deque"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/kube"
)

const (
	passPeriod     = time.Minute // between comparisons of all copies, plus or minus a quarter
	sampleLimit    = 256         // objects per informer in a sample
	retiredLimit   = 4096        // copies of replaced objects
	readsLimit     = 16384       // remembered reads
	handLimit      = 1000        // objects compared when a visit ends; the next pass compares the rest
	pastLimit      = 256         // remembered past visits
	bystanderLimit = 8           // named
	saidLimit      = 1024        // fields not logged again
)

var errChanged = errors.New("a shared object was changed")

// Detector compares the objects of informers with copies, and knows
// which code ran meanwhile. A SharedInformerFactory has one for all its
// informers; an informer made by New has its own. Safe for concurrent use.
type Detector struct {
	detection Detection
	log       logr.Logger
	Unshare   func()        // forgets the parts that objects share; nil: none
	kept      sync.Map      // from the shared object to its *Kept
	clock     atomic.Uint64 // counts starts and ends of visits
	visitors  atomic.Int64  // now running
	mu        struct {
		sync.Mutex
		running  []*Visit // includes those whose objects are being compared
		past     deque.Deque[Visit]
		reads    deque.Deque[read]
		retired  deque.Deque[*Kept]
		said     map[string]bool
		lastPass uint64 // by clock
	}
}

// Visit is one call of a handler, or one reconcile.
type Visit struct {
	who      fmt.Stringer
	from, to uint64 // by clock; to is 0 while it runs
	given    []*Kept
}

// read is a read of an object by a Lister during a visit.
type read struct {
	object *Kept
	at     uint64
}

// New returns nil if the detector is off.
func New(detection Detection, log logr.Logger) *Detector {
	detection = detection.completed()
	if !(detection.Rate > 0) {
		return nil
	}
	d := &Detector{detection: detection, log: textlog.Throttled(log)}
	d.clock.Store(1)
	d.mu.said = make(map[string]bool)
	return d
}

// Complete reports whether every object is checked.
func (d *Detector) Complete() bool { return d != nil && d.detection.Rate >= 1 }

// Begin records that who runs, such as a reconciler for its key, until end is
// called. The objects that Listers returned meanwhile are then compared.
func (d *Detector) Begin(who fmt.Stringer) (end func()) {
	v := d.begin(who)
	return func() { d.end(v) }
}

func (d *Detector) begin(who fmt.Stringer, given ...kube.Object) *Visit {
	v := &Visit{who: who}
	for _, obj := range given {
		if k := d.find(obj); k != nil {
			v.given = append(v.given, k)
		}
	}
	d.visitors.Add(1)
	d.mu.Lock()
	defer d.mu.Unlock()
	v.from = d.clock.Add(1)
	d.mu.running = append(d.mu.running, v)
	return v
}

func (d *Detector) end(v *Visit) {
	d.visitors.Add(-1)
	for _, k := range d.inHand(v) {
		d.check(k)
	}
	d.forget(v)
}

// inHand ends v and returns the objects that it was given or that were read
// during it.
func (d *Detector) inHand(v *Visit) []*Kept {
	d.mu.Lock()
	defer d.mu.Unlock()
	v.to = d.clock.Add(1)
	hand := slices.Clone(v.given)
	seen := make(map[*Kept]bool)
	for i := d.mu.reads.Back(); i > d.mu.reads.Front() && len(hand) < handLimit; i-- {
		r := d.mu.reads.At(i - 1)
		if r.at < v.from {
			break
		}
		if !seen[r.object] {
			seen[r.object] = true
			hand = append(hand, r.object)
		}
	}
	return hand
}

// forget removes v, and the reads that no running visit needs.
func (d *Detector) forget(v *Visit) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.running = slices.DeleteFunc(d.mu.running, func(other *Visit) bool { return other == v })
	if d.mu.past.Len() == pastLimit {
		d.mu.past.Pop()
	}
	d.mu.past.Push(Visit{who: v.who, from: v.from, to: v.to})
	oldest := d.clock.Load()
	for _, other := range d.mu.running {
		oldest = min(oldest, other.from)
	}
	for d.mu.reads.Len() > 0 && d.mu.reads.At(d.mu.reads.Front()).at < oldest {
		d.mu.reads.Pop()
	}
}

// Touch records that obj was read during a visit.
func (d *Detector) Touch(obj kube.Object) {
	if d.visitors.Load() == 0 {
		return
	}
	k := d.find(obj)
	if k == nil || k.read.Load() == d.clock.Load() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.clock.Load()
	k.read.Store(now)
	if d.mu.reads.Len() == readsLimit {
		d.mu.reads.Pop()
	}
	d.mu.reads.Push(read{k, now})
}

func (d *Detector) find(obj kube.Object) *Kept {
	if k, ok := d.kept.Load(obj); ok {
		return k.(*Kept)
	}
	return nil
}

func (d *Detector) check(k *Kept) {
	start := d.clock.Load()
	fields := differences(k.truth, k.object)
	if len(fields) == 0 {
		for was := k.good.Load(); was < start && !k.good.CompareAndSwap(was, start); was = k.good.Load() {
		}
		return
	}
	if !k.found.CompareAndSwap(false, true) {
		return
	}
	k.drop()
	m := Mutation{
		Kind: k.guard.kind(), Key: k.key, UID: k.truth.GetUID(), Version: k.truth.GetResourceVersion(), Fields: fields,
	}
	had, ran := d.whoRan(k)
	m.Suspects, m.Bystanders = texts(had), texts(ran)
	if d.Unshare != nil {
		d.Unshare() // what was modified may be a part of other objects too
	}
	m.Repaired = k.guard.repair(k)
	k.guard.found.Add(1)
	d.report(m)
}

// whoRan returns the visits since k was last seen unchanged: those that had it,
// and the others.
func (d *Detector) whoRan(k *Kept) (had, ran []fmt.Stringer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	good := k.good.Load()
	for _, v := range d.mu.running {
		switch {
		case v.to != 0 && v.to <= good:
		case slices.Contains(v.given, k) || d.readLocked(k, v):
			had = append(had, v.who)
		default:
			ran = append(ran, v.who)
		}
	}
	for i := d.mu.past.Back(); i > d.mu.past.Front() && d.mu.past.At(i-1).to > good; i-- {
		ran = append(ran, d.mu.past.At(i-1).who)
	}
	return had, ran
}

// readLocked reports whether k was read during v.
func (d *Detector) readLocked(k *Kept, v *Visit) bool {
	for i := d.mu.reads.Front(); i < d.mu.reads.Back(); i++ {
		if r := d.mu.reads.At(i); r.object == k && r.at >= v.from && (v.to == 0 || r.at < v.to) {
			return true
		}
	}
	return false
}

// texts returns the distinct names, up to a limit.
func texts(who []fmt.Stringer) (out []string) {
	for _, w := range who {
		if text := fmt.Sprint(w); !slices.Contains(out, text) && len(out) < bystanderLimit {
			out = append(out, text)
		}
	}
	return out
}

func (d *Detector) report(m Mutation) {
	if d.news(m) {
		d.log.Error(errChanged, "Copy objects from handlers and Listers with kube.Copy before modifying them",
			"kind", m.Kind.Kind, "key", m.Key.String(), "fields", m.Fields, "suspects", m.Suspects,
			"bystanders", m.Bystanders, "repaired", m.Repaired)
	}
	if d.detection.OnMutation == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			d.log.Error(fmt.Errorf("panic: %v", p), "OnMutation panicked")
		}
	}()
	d.detection.OnMutation(m)
}

// news reports whether a field of m was not logged before.
func (d *Detector) news(m Mutation) (news bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.mu.said) > saidLimit {
		clear(d.mu.said)
	}
	for _, field := range m.Fields {
		text := m.Kind.String() + " " + m.Key.String() + " " + field
		news = news || !d.mu.said[text]
		d.mu.said[text] = true
	}
	return news
}

// Run compares all copies from time to time, until ctx ends.
func (d *Detector) Run(ctx context.Context) error {
	for {
		timer := time.NewTimer(passPeriod*3/4 + simhook.Duration(simhook.Of(ctx), "mutation detector", passPeriod/2))
		select {
		case <-timer.C:
			d.pass()
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
}

// pass compares all copies, and drops those that were replaced, or are part of
// a sample, since before the last pass.
func (d *Detector) pass() {
	last := d.nextPass()
	d.kept.Range(func(_, v any) bool {
		k := v.(*Kept)
		d.check(k)
		switch {
		case d.detection.Rate < 1 && k.since < last:
			k.drop()
		case k.since < last && !k.guard.holds(k):
			k.retire() // its scope has ended
		}
		return true
	})
	for _, k := range d.retiredBefore(last) {
		k.drop()
	}
}

func (d *Detector) nextPass() (last uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	last, d.mu.lastPass = d.mu.lastPass, d.clock.Add(1)
	return last
}

func (d *Detector) retiredBefore(last uint64) (out []*Kept) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.mu.retired.Len() > 0 && (*d.mu.retired.At(d.mu.retired.Front())).retired.Load() < last {
		out = append(out, d.mu.retired.Pop())
	}
	return out
}
