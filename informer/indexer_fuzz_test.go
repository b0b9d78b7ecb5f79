// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/compact"
	"github.com/flyball-dev/flyball/informer/internal/delivery"
	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/kube"
)

// deltaOf returns a delta with o, or with what is known of it if it is
// undecodable.
func deltaOf(o kube.Object) store.Delta {
	d := store.Delta{Key: kube.KeyOf(o), UID: o.GetUID(), Version: fixture.VersionOf(o), Object: o}
	if fixture.IsSpoiled(o) {
		d.Object, d.Err, d.Metadata = nil, fixture.ErrSpoiled, o.(*metav1.PartialObjectMetadata)
	}
	return d
}

// dull is the model: a server that remembers every state, lagging watches and
// lists, own writes with late answers, and slow handlers.
type dull struct {
	t       *testing.T
	kind    []scopeModel
	log     []written // by version - 1
	uids    int
	cursors []int // per scope, how much of the log its watch has delivered
	answers []store.Observed
	fifo    *store.DeltaFIFO
	packer  *compact.Packer // nil: objects are held decoded
	store   *store.Indexer
	told    map[kube.Key]kube.Version   // newest version that the store received
	mine    []map[kube.Key]kube.Version // per scope, newest own write in it that was answered
	gone    map[types.UID]bool          // whose end an own write was answered with
	readers []*slowReader
	waits   []*wait
	schema  int    // number of changes
	behind  []bool // per scope, it must be relisted since then
	trace   []string
}

type scopeModel struct {
	label  string // empty: all
	unsure bool   // the selector cannot be evaluated here
}

func (s scopeModel) has(o kube.Object) bool {
	return o != nil && (s.label == "" || o.GetLabels()["label"] == s.label)
}

// written is the result of one write of a key.
type written struct {
	key  kube.Key
	obj  kube.Object // nil: deleted
	last kube.Object // deleted: the final state
}

type slowReader struct {
	name   string
	filter *store.ScopeSet
	queue  delivery.Backlog
	every  bool
	asks   bool // for undecodable objects
	holds  map[kube.Key]kube.Object
	bad    map[kube.Key]*kube.Undecodable
	newest map[kube.Key]kube.Version
}

type wait struct {
	key    kube.Key
	than   kube.Version
	called int
}

var worlds = [][]scopeModel{
	{{label: ""}},
	{{label: "a"}, {label: "b"}},
	{{label: ""}, {label: "a"}, {label: "b"}, {label: "b", unsure: true}},
}

func newDull(t *testing.T, scopes []scopeModel, packed bool) *dull {
	d := &dull{t: t, kind: scopes, cursors: make([]int, len(scopes)), behind: make([]bool, len(scopes)), told: map[kube.Key]kube.Version{}, gone: map[types.UID]bool{}}
	d.store = store.NewIndexer(fixture.ThingKind)
	if err := d.store.AddIndex("label", func(o kube.Object) []string { return []string{o.GetLabels()["label"]} }); err != nil {
		t.Fatal(err)
	}
	d.fifo = store.NewDeltaFIFO(d.store)
	if packed {
		var err error
		kind := compact.Kind{Object: reflect.TypeFor[*metav1.PartialObjectMetadata](), Name: func() schema.GroupVersionKind { return fixture.ThingKind }}
		if d.packer, err = compact.NewPacker(kind, compact.Options{Codec: fixture.Codec{}, HotObjects: 2, DictionaryBytes: 200}); err != nil {
			t.Fatal(err)
		}
		d.fifo.Pack(d.packer)
	}
	add := func(name string, filter *store.ScopeSet, every bool) {
		for _, asks := range []bool{false, true} {
			r := &slowReader{name: name, filter: filter, every: every, asks: asks, holds: map[kube.Key]kube.Object{}, bad: map[kube.Key]*kube.Undecodable{}, newest: map[kube.Key]kube.Version{}}
			r.queue = delivery.NewBacklog(delivery.Options{EveryEvent: every, Undecodable: asks})
			if asks {
				r.name += ", undecodable too"
			}
			d.readers = append(d.readers, r)
		}
	}
	add("all", nil, false)
	add("all, every event", nil, true)
	for id := range scopes {
		d.mine = append(d.mine, map[kube.Key]kube.Version{})
		d.store.Begin(base.ScopeID(id))
		add(fmt.Sprintf("scope %d", id), store.ScopesOf(base.ScopeID(id)), false)
	}
	add("last scope, every event", store.ScopesOf(base.ScopeID(len(scopes)-1)), true)
	return d
}

func (d *dull) failf(format string, args ...any) {
	d.t.Helper()
	for _, line := range d.trace {
		d.t.Log(line)
	}
	d.t.Fatalf(format, args...)
}

func (d *dull) record(format string, args ...any) {
	d.trace = append(d.trace, fmt.Sprintf(format, args...))
}

// at returns the state of key after n writes.
func (d *dull) at(key kube.Key, n int) kube.Object {
	for i := n - 1; i >= 0; i-- {
		if d.log[i].key == key {
			return d.log[i].obj
		}
	}
	return nil
}

// changeSchema changes the content of all objects, but no version.
func (d *dull) changeSchema() {
	d.schema++
	d.record("schema %d", d.schema)
	for i := range d.log {
		for _, o := range []*kube.Object{&d.log[i].obj, &d.log[i].last} {
			if *o != nil {
				*o = kube.Copy(*o)
				d.dress(*o)
			}
		}
	}
	for id := range d.behind {
		d.behind[id] = d.cursors[id] > 0
	}
}

// dress gives o the content of the present schema.
func (d *dull) dress(o kube.Object) {
	if d.schema > 0 {
		o.GetLabels()["schema"] = fmt.Sprint(" schema ", d.schema)
	}
}

// How a server answers a deletion.
const (
	withEnd  = iota // with the version of the deletion
	withLast        // with the last state
	withNone        // without a version
)

func (d *dull) write(key kube.Key, label string, remove, own bool, removal int, spoil bool) {
	now := d.at(key, len(d.log))
	own = own && !spoil // the writer could decode the answer
	v := kube.Version(len(d.log) + 1)
	var s written
	switch {
	case remove && now == nil:
		return
	case remove:
		s = written{key: key, last: fixture.NewThing(key, now.GetUID(), v, now.GetLabels()["label"])}
	case now == nil:
		d.uids++
		s = written{key: key, obj: fixture.NewThing(key, types.UID(fmt.Sprintf("u%d", d.uids)), v, label)}
	default:
		s = written{key: key, obj: fixture.NewThing(key, now.GetUID(), v, label)}
	}
	for _, o := range []kube.Object{s.obj, s.last} {
		if o != nil {
			d.dress(o)
		}
	}
	if spoil && s.obj != nil {
		fixture.Spoilt(s.obj)
	}
	d.log = append(d.log, s)
	d.record("server %d: %s %s, own %v", v, key, fixture.Sketch(s.obj), own)
	if !own {
		return
	}
	w := store.Observed{Key: key, Version: v}
	if remove {
		w.Effect, w.UID = kube.Removed, now.GetUID()
		switch removal {
		case withLast:
			w.Version = fixture.VersionOf(now)
		case withNone:
			w.Version = 0
		}
	} else {
		w.Effect, w.UID, w.Object = kube.Stored, s.obj.GetUID(), s.obj
		w.In, w.Unsure = store.ScopesOf(), store.ScopesOf()
		for id, scope := range d.kind {
			if scope.unsure {
				w.Unsure = w.Unsure.With(base.ScopeID(id))
			} else if scope.has(s.obj) {
				w.In = w.In.With(base.ScopeID(id))
			}
		}
	}
	d.answers = append(d.answers, w)
}

func (d *dull) answer(n int) {
	if len(d.answers) == 0 {
		return
	}
	n %= len(d.answers)
	w := d.answers[n]
	d.answers = slices.Delete(d.answers, n, n+1)
	d.record("answer %s %d: effect %d %s", w.Key, w.Version, w.Effect, fixture.Sketch(w.Object))
	d.told[w.Key] = max(d.told[w.Key], w.Version)
	if w.Effect == kube.Removed { // the model knows what the answer omits
		if w.Version != 0 {
			d.gone[w.UID] = true
		}
		for i, s := range d.log {
			if s.last != nil && s.last.GetUID() == w.UID {
				d.told[w.Key] = max(d.told[w.Key], kube.Version(i+1))
			}
		}
	}
	if d.packer != nil && w.Object != nil {
		w.Object = d.packer.Pack(w.Object, nil, nil)
	}
	if held := d.stored(w.Key, nil); w.Effect == kube.Stored && held != nil {
		w.Held, w.Unheld = store.ScopesOf(), store.ScopesOf()
		for id := range w.In.All() {
			if d.kind[id].has(held) {
				w.Held = w.Held.With(id)
			} else {
				w.Unheld = w.Unheld.With(id)
			}
		}
	}
	changes, hidden, err := d.store.Observe(w)
	d.tell(changes, err)
	d.checkGone()
	for id := range w.In.All() {
		if !hidden { // else reads wait for the server
			d.mine[id][w.Key] = max(d.mine[id][w.Key], w.Version)
		}
	}
	d.checkMine()
}

// checkMine checks that no scope is behind an own write.
func (d *dull) checkMine() {
	for id, mine := range d.mine {
		for key, v := range mine {
			known := max(d.told[key], d.store.Reached(base.ScopeID(id)))
			left := false // since the own write, as far as the store can know
			for i := v; i < known && int(i) < len(d.log); i++ {
				left = left || d.log[i].key == key && !d.kind[id].has(d.log[i].obj)
			}
			if obj := d.stored(key, store.ScopesOf(base.ScopeID(id))); !left && (obj == nil || fixture.VersionOf(obj) < v) {
				d.failf("I1: in scope %d %s is %s, older than version %d, which an own write was answered with", id, key, fixture.Sketch(obj), v)
			}
		}
	}
}

// checkGone checks that no object is there whose end this process was answered.
func (d *dull) checkGone() {
	for key := range d.keys() {
		if obj := d.stored(key, nil); obj != nil && d.gone[obj.GetUID()] {
			d.failf("I11: %s is %s again, after a write of this process was answered with its end", key, fixture.Sketch(obj))
		}
	}
}

// watch delivers one more write to a scope.
func (d *dull) watch(id base.ScopeID) {
	n := d.cursors[id]
	if n == 0 { // it begins with a consistent list
		d.relist(id, len(d.log), false)
		return
	}
	if n == len(d.log) {
		d.fifo.Bookmark(id, kube.Version(n))
		return
	}
	d.cursors[id]++
	s, was := d.log[n], d.at(d.log[n].key, n)
	v := kube.Version(n + 1)
	var delta store.Delta
	scope := d.kind[id]
	switch {
	case scope.has(s.obj) && scope.has(was):
		delta = deltaOf(s.obj)
		delta.Type = store.Updated
	case scope.has(s.obj):
		delta = deltaOf(s.obj)
		delta.Type = store.Added
	case scope.has(was):
		delta = deltaOf(fixture.NewThing(s.key, was.GetUID(), v, was.GetLabels()["label"]))
		delta.Type = store.Deleted
	default:
		d.fifo.Bookmark(id, v)
		return
	}
	delta.Scope = id
	d.record("scope %d: %s %s %s %v", id, delta.Type, s.key, fixture.Sketch(delta.Object), delta.Err)
	d.fifo.Push(delta)
}

// relist gives a scope the state after n writes; failing: only half of it.
func (d *dull) relist(id base.ScopeID, n int, failing bool) {
	if n = max(d.cursors[id], n); d.cursors[id] == 0 {
		n = len(d.log)
	}
	if n == 0 {
		return
	}
	if d.behind[id] {
		n = len(d.log) // a comparison by content needs the newest state
	}
	d.record("scope %d: list at %d, failing %v, by content %v", id, n, failing, d.behind[id])
	r := d.fifo.Replace(id)
	if d.behind[id] {
		r.Recompare()
	}
	for key := range d.keys() {
		obj := d.at(key, n)
		if !d.kind[id].has(obj) {
			continue
		}
		r.Add(deltaOf(obj))
		if failing {
			r.Abort()
			return
		}
	}
	if failing {
		r.Abort()
		return
	}
	d.cursors[id], d.behind[id] = n, false
	r.Commit(kube.Version(n))
}

func (d *dull) keys() map[kube.Key]bool {
	keys := map[kube.Key]bool{}
	for _, s := range d.log {
		keys[s.key] = true
	}
	return keys
}

// dispatch applies the next batch and compares the store with the server.
func (d *dull) dispatch() bool {
	if !d.fifo.Waits() {
		return false
	}
	b, err := d.fifo.PopBatch(context.Background())
	if err != nil {
		d.failf("pop: %v", err)
	}
	d.record("apply %d deltas, reached %v", len(b.Deltas), b.Reached)
	for _, delta := range b.Deltas {
		if delta.Type != store.Sync {
			d.told[delta.Key] = max(d.told[delta.Key], delta.Version)
		}
	}
	changes, err := d.store.Apply(b)
	d.tell(changes, err)
	d.checkGone()
	d.checkMine()
	for id, scope := range d.kind {
		n := d.store.Reached(base.ScopeID(id))
		if n == 0 {
			continue
		}
		for key := range d.keys() {
			want := d.at(key, int(n))
			if !scope.has(want) {
				want = nil
			}
			obj := d.stored(key, store.ScopesOf(base.ScopeID(id)))
			if d.told[key] <= n && !fixture.EqualState(obj, want) {
				d.failf("I3: scope %d says it is at version %d, where %s is %s, but the store has %s", id, n, key, fixture.Sketch(want), fixture.Sketch(obj))
			}
		}
	}
	return true
}

// stored returns what the store has for key, decodable or not, as filter sees
// it.
func (d *dull) stored(key kube.Key, filter *store.ScopeSet) kube.Object {
	obj, scopes, err := d.store.Get(key)
	if !scopes.SeenBy(filter) {
		return nil
	}
	if err == nil {
		return d.opened(obj)
	}
	if _, ok := errors.AsType[*kube.UndecodableError](err); !ok || obj != nil {
		d.failf("I8: Get of %s gives %s and %v, want an *UndecodableError alone", key, fixture.Sketch(obj), err)
	}
	for u := range listerOf(d.store, &listerView{scopes: filter}).Undecodable() {
		if u.Key == key && u.UID == u.Metadata.UID && u.Version == fixture.VersionOf(u.Metadata) {
			return u.Metadata
		}
	}
	d.failf("I8: %s cannot be decoded, and the listing has it not", key)
	return nil
}

func (d *dull) opened(obj kube.Object) kube.Object {
	if _, packed := obj.(*compact.Entry); packed != (d.packer != nil) && obj != nil {
		d.failf("D5: the store has %T, packed: %v", obj, d.packer != nil)
	}
	obj, err := compact.Open(obj)
	if err != nil {
		d.failf("D5: open: %v", err)
	}
	return obj
}

func (d *dull) tell(changes []store.Change, err error) {
	if err != nil {
		d.failf("index: %v", err)
	}
	for _, do := range d.store.Passed() {
		do()
	}
	shared := delivery.NewShared(changes)
	for _, r := range d.readers {
		if r.queue.Join(shared, r.filter, false) {
			continue
		}
		for _, c := range changes {
			r.queue.Push(c, r.filter, false)
		}
	}
}

// read passes the next events to a handler.
func (d *dull) read(r *slowReader) bool {
	events, _ := r.queue.Take(nil)
	for _, e := range events {
		e, err := delivery.Open(e)
		if err != nil {
			d.failf("D5: open the objects of %s: %v", e.Key, err)
		}
		held, bad := r.holds[e.Key], r.bad[e.Key]
		d.record("%s: %s %s %s -> %s", r.name, e.Type, e.Key, fixture.Sketch(e.Old), fixture.Sketch(e.New))
		delete(r.bad, e.Key)
		switch e.Type {
		case kube.Undecoded:
			d.readUndecodable(r, e, held, bad)
			continue
		case kube.Added:
			if bad != nil && bad.UID != e.New.GetUID() {
				d.failf("I8: %s: added %s, but it was told of %s, which cannot be decoded, and not of its end", r.name, fixture.Sketch(e.New), bad.UID)
			}
			if held != nil {
				d.failf("I4: %s: added %s, but it has %s", r.name, fixture.Sketch(e.New), fixture.Sketch(held))
			}
		case kube.Updated:
			if held != e.Old || held == nil || held.GetUID() != e.New.GetUID() {
				d.failf("I4: %s: updated %s -> %s, but it has %s", r.name, fixture.Sketch(e.Old), fixture.Sketch(e.New), fixture.Sketch(held))
			}
			if fixture.Sketch(e.Old) == fixture.Sketch(e.New) && !e.Resync && bad == nil {
				d.failf("I6: %s: %s was given again though nothing changed", r.name, fixture.Sketch(e.New))
			}
		case kube.Deleted:
			if e.Old == nil {
				if held != nil || bad == nil || e.Undecodable == nil || e.Undecodable.UID != bad.UID {
					d.failf("I8: %s: deleted what it was never told of: it has %s and %v", r.name, fixture.Sketch(held), bad)
				}
				break
			}
			if held == nil || held.GetUID() != e.Old.GetUID() || held != e.Old && !r.every {
				d.failf("I4: %s: deleted %s, but it has %s", r.name, fixture.Sketch(e.Old), fixture.Sketch(held))
			}
		}
		r.holds[e.Key] = e.New
		if e.New != nil && r.filter == nil {
			if v := fixture.VersionOf(e.New); v < r.newest[e.Key] {
				d.failf("I1: %s: %s went back to version %d after %d", r.name, e.Key, v, r.newest[e.Key])
			} else {
				r.newest[e.Key] = v
			}
		}
	}
	return len(events) > 0
}

// readUndecodable passes an undecodable object to a handler that wants it.
func (d *dull) readUndecodable(r *slowReader, e kube.Event[kube.Object], held kube.Object, bad *kube.Undecodable) {
	u := e.Undecodable
	switch {
	case !r.asks:
		d.failf("I8: %s: told of %s, which cannot be decoded, and has not asked", r.name, e.Key)
	case held != e.Old || held != nil && held.GetUID() != u.UID || bad != nil && bad.UID != u.UID:
		d.failf("I8: %s: told that %s of %s cannot be decoded, before that %s; it has %s", r.name, u.UID, e.Key, fixture.Sketch(e.Old), fixture.Sketch(held))
	case u == bad && !e.Resync:
		d.failf("I6: %s: told again that %s cannot be decoded", r.name, e.Key)
	}
	r.bad[e.Key] = u
}

func (d *dull) wait(key kube.Key) {
	w := &wait{key: key}
	if obj, _, _ := d.store.Get(key); obj != nil {
		w.than = fixture.VersionOf(obj)
	}
	d.waits = append(d.waits, w)
	d.store.WhenPassed(key, w.than, func() {
		w.called++
		// With several scopes, one may release a key before another holds it.
		if obj, _, _ := d.store.Get(key); obj != nil && fixture.VersionOf(obj) <= w.than && len(d.kind) == 1 {
			d.failf("woken for %s above %d, but it is %s", key, w.than, fixture.Sketch(obj))
		}
	})
}

func (d *dull) step(op, arg byte) {
	key := kube.Key{Namespace: string("mn"[arg&1]), Name: string("xyz"[int(arg>>1)%3])}
	id := base.ScopeID(int(arg) % len(d.kind))
	switch op % 16 {
	case 0, 1, 2, 3:
		d.write(key, string("ab"[arg>>4&1]), op%4 == 3, arg&0x40 != 0, int(arg>>4&3)%3, arg&0x88 == 0x88)
	case 4, 5, 6:
		d.watch(id)
	case 7:
		d.relist(id, len(d.log)-int(arg>>4&3), arg>>6 == 3)
	case 8, 9, 10:
		d.dispatch()
	case 11, 12:
		d.answer(int(arg))
	case 13, 14:
		d.read(d.readers[int(arg)%len(d.readers)])
	case 15:
		if arg&0xe0 == 0x60 {
			d.changeSchema()
			return
		}
		if arg&0x80 != 0 {
			d.wait(key)
			return
		}
		r := d.readers[int(arg)%len(d.readers)]
		for c := range d.store.SeenDifferently(store.ScopesOf(), r.filter) {
			if c.After == nil {
				continue // nothing was ever shown
			}
			c.Old, c.OldUID, c.Before, c.Resync = c.New, c.NewUID, c.After, true
			if c.Trouble != nil {
				c.Trouble.Before, c.Trouble.Was = c.Trouble.After, c.Trouble.Is
			}
			r.queue.Push(c, r.filter, false)
		}
	}
}

// settle delivers everything, and compares the store with the server.
func (d *dull) settle() {
	d.record("settle")
	for len(d.answers) > 0 {
		d.answer(0)
	}
	for id := range d.kind {
		for range len(d.log) + 1 {
			d.watch(base.ScopeID(id))
		}
		if d.behind[id] {
			d.relist(base.ScopeID(id), len(d.log), false)
		}
	}
	for d.dispatch() {
	}
	for _, r := range d.readers {
		for d.read(r) {
		}
		lister := listerOf(d.store, &listerView{scopes: r.filter})
		for key := range d.keys() {
			want := d.at(key, len(d.log))
			if !slices.ContainsFunc(slices.Collect(maps.Keys(d.seen(r.filter))), func(s scopeModel) bool { return s.has(want) }) {
				want = nil
			}
			d.compareEnd(r, key, want)
			if got := d.stored(key, r.filter); !fixture.SameEnd(got, want) {
				d.failf("%s: Get %s is %s, but the server has %s", r.name, key, fixture.Sketch(got), fixture.Sketch(want))
			}
		}
		d.compareIndex(r, lister)
	}
	for _, w := range d.waits {
		obj := d.at(w.key, len(d.log))
		if passed := obj == nil || fixture.VersionOf(obj) > w.than; w.called > 1 || passed && w.called == 0 {
			d.failf("who waited for %s above %d was called %d times, and it is %s", w.key, w.than, w.called, fixture.Sketch(obj))
		}
	}
	if s := d.store.Snapshot(); s.Awaiting != 0 {
		d.failf("%d keys still await an own write, though every watch is past it", s.Awaiting)
	}
}

// compareEnd compares the last state of key that a handler received with the
// server. For an undecodable one it may be the last decodable state.
func (d *dull) compareEnd(r *slowReader, key kube.Key, want kube.Object) {
	got, bad := r.holds[key], r.bad[key]
	switch {
	case !fixture.IsSpoiled(want):
		if !fixture.SameEnd(got, want) || bad != nil {
			d.failf("I4: %s ended with %s as %s (undecodable: %v), but the server has %s", r.name, key, fixture.Sketch(got), bad, fixture.Sketch(want))
		}
	case got != nil && got.GetUID() != want.GetUID():
		d.failf("I4: %s ended with %s as %s, but the server has %s", r.name, key, fixture.Sketch(got), fixture.Sketch(want))
	case r.asks && (bad == nil || !fixture.SameEnd(bad.Metadata, want)):
		d.failf("I8: %s ended with %s as undecodable %v, but the server has %s", r.name, key, bad, fixture.Sketch(want))
	}
}

func (d *dull) seen(filter *store.ScopeSet) map[scopeModel]bool {
	out := map[scopeModel]bool{}
	for id, s := range d.kind {
		if filter == nil || filter.Has(base.ScopeID(id)) {
			out[s] = true
		}
	}
	return out
}

func (d *dull) compareIndex(r *slowReader, l Lister[kube.Object]) {
	for _, label := range []string{"a", "b"} {
		want := map[kube.Object]bool{}
		for o := range l.All() {
			if o.GetLabels()["label"] == label {
				want[o] = true
			}
		}
		got := map[kube.Object]bool{}
		seq, err := l.ByIndex("label", label)
		if err != nil {
			d.failf("%v", err)
		}
		for o := range seq {
			got[o] = true
		}
		if !maps.Equal(got, want) {
			d.failf("%s: index %q has %d objects, a walk over all finds %d", r.name, label, len(got), len(want))
		}
	}
	for _, ns := range []string{"m", "n"} {
		want := 0
		for o := range l.All() {
			if o.GetNamespace() == ns {
				want++
			}
		}
		both := labels.SelectorFromSet(labels.Set{"label": "a"})
		if got, err := l.List(QueryOptions{Namespace: ns, Selector: both}); err != nil || slices.ContainsFunc(got, func(o kube.Object) bool { return o.GetLabels()["label"] != "a" }) {
			d.failf("%s: the objects with label a of namespace %q are %v, %v", r.name, ns, got, err)
		} else if rest, _ := l.List(QueryOptions{Namespace: ns, Selector: labels.Everything()}); len(got) != len(rest)-len(d.labelled(rest, "b")) {
			d.failf("%s: of %d objects of namespace %q the selector finds %d", r.name, len(rest), ns, len(got))
		}
		if got, err := l.List(QueryOptions{Namespace: ns}); err != nil || len(got) != want {
			d.failf("%s: namespace %q has %d objects and %v, a walk over all finds %d", r.name, ns, len(got), err, want)
		}
	}
}

// packedWorld is the bit of a world in which the objects are packed.
const packedWorld = 1 << 6

func (d *dull) labelled(objects []kube.Object, label string) []kube.Object {
	return slices.DeleteFunc(slices.Clone(objects), func(o kube.Object) bool { return o.GetLabels()["label"] != label })
}

// FuzzIndexer_AgreesWithTheServer_I1_I3_I4_I5_I6_I11_D5 compares log, store and
// backlogs together with the model, in half of the runs with packed objects.
func FuzzIndexer_AgreesWithTheServer_I1_I3_I4_I5_I6_I11_D5(f *testing.F) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		ops := make([]byte, 2*(20+r.IntN(400)))
		for i := range ops {
			ops[i] = byte(r.IntN(256))
		}
		f.Add(byte(seed), ops)
		f.Add(byte(seed)|packedWorld, ops)
	}
	f.Fuzz(func(t *testing.T, world byte, ops []byte) {
		if len(ops) > 2000 {
			return
		}
		d := newDull(t, worlds[int(world)%len(worlds)], world&packedWorld != 0)
		for i := 0; i+1 < len(ops); i += 2 {
			d.step(ops[i], ops[i+1])
		}
		d.settle()
	})
}
