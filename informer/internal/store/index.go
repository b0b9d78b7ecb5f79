// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/flyball-dev/flyball/informer/internal/compact"
	"github.com/flyball-dev/flyball/kube"
)

// IndexFunc returns the values under which an index finds obj, possibly none. It
// must be a pure function of obj, must not modify it, and may be called
// concurrently.
type IndexFunc[T kube.Object] func(obj T) []string

// index finds rows by value.
type index struct {
	name    string
	f       IndexFunc[kube.Object] // nil: by namespace
	buckets map[string]*bucket
}

func newIndex(name string, f IndexFunc[kube.Object]) *index {
	return &index{name: name, f: f, buckets: make(map[string]*bucket)}
}

// bucket has the positions of the rows with one value.
type bucket struct {
	value string
	of    int // number of the index
	rows  vector[uint32]
}

// shelf is a row's place in a bucket.
type shelf struct {
	bucket *bucket
	at     uint32
}

// AddIndex adds an index and fills it from the present rows. It blocks until
// the index is complete; reads continue meanwhile. It returns an error if name
// is empty or taken, or if f panics: that object then has no values.
func (x *Indexer) AddIndex(name string, f IndexFunc[kube.Object]) error {
	if name == "" || f == nil {
		return fmt.Errorf("add index %q of %s: it needs a name and a function", name, x.Kind.Kind)
	}
	x.turn.Lock()
	defer x.turn.Unlock()
	for _, i := range x.indicesNow() {
		if i.name == name {
			return fmt.Errorf("add index %q of %s: there is an index of this name; choose another", name, x.Kind.Kind)
		}
	}
	rows := x.View() // this turn excludes other writers
	i := newIndex(name, f)
	values := make([][]string, 0, rows.Len())
	var panics []error
	for r := range rows.All() {
		var v []string
		if !r.blank {
			var err error
			if v, err = i.valuesOf(x.Kind.Kind, r.Key, r.Object); err != nil {
				panics = append(panics, err)
			}
		}
		values = append(values, v)
	}

	x.mu.Lock()
	defer x.mu.Unlock()
	x.mu.indices = append(slices.Clone(x.mu.indices), i)
	x.mu.panics += uint64(len(panics))
	for at, v := range values {
		if len(v) > 0 {
			x.shelveInLocked(uint32(at), len(x.mu.indices)-1, v)
		}
	}
	return some(panics)
}

func (x *Indexer) indicesNow() []*index {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.mu.indices
}

// evaluateLocked calls the index functions for those of n objects that are ok.
// The result has, for each object, one entry per index after the first, and is
// valid until the next call. The caller holds the turn but not the lock of
// readers: the functions may be slow, and may read.
func (x *Indexer) evaluateLocked(n int, object func(i int) (key kube.Key, obj kube.Object, ok bool)) ([][]string, error) {
	indices := x.indicesNow()[1:]
	if len(indices) == 0 {
		return nil, nil
	}
	values := x.turn.values
	if n *= len(indices); cap(values) < n {
		values = make([][]string, n)
	}
	if values = values[:n]; n <= BatchLimit*len(indices) {
		x.turn.values = values
	}
	var panics []error
	for at := 0; at < n; at += len(indices) {
		key, obj, ok := object(at / len(indices))
		if !ok {
			continue
		}
		for i, index := range indices {
			v, err := index.valuesOf(x.Kind.Kind, key, obj)
			if err != nil {
				panics = append(panics, err)
			}
			if compact.Size(obj) > 0 {
				v = index.own(v)
			}
			values[at+i] = v
		}
	}
	if len(panics) > 0 {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.mu.panics += uint64(len(panics))
	}
	return values, some(panics)
}

// valuesOf calls the index function. If it panics, the object has no values.
func (i *index) valuesOf(kind string, key kube.Key, obj kube.Object) (values []string, err error) {
	defer func() {
		if p := recover(); p != nil {
			values, err = nil, fmt.Errorf("index %s %s by %q: panic: %v\n%s", kind, key, i.name, p, debug.Stack())
		}
	}()
	obj, err = compact.Open(obj)
	if err != nil {
		return nil, fmt.Errorf("index %s %s by %q: %w", kind, key, i.name, err)
	}
	values = i.f(obj)
	if len(values) < 2 {
		return values, nil
	}
	values = slices.Clone(values)
	slices.Sort(values)
	return slices.Compact(values), nil
}

// own returns values in memory that does not hold the object they are from: until
// a list of packed objects is stored, it would hold what was opened of each. The
// caller holds the turn of writers.
func (i *index) own(values []string) []string {
	if len(values) == 0 {
		return nil
	}
	owned := make([]string, len(values))
	for at, v := range values {
		if b := i.buckets[v]; b != nil {
			owned[at] = b.value
		} else {
			owned[at] = strings.Clone(v)
		}
	}
	return owned
}

// some returns the first of many errors, with their number.
func some(errs []error) error {
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return errors.Join(errs[0], fmt.Errorf("and %d more", len(errs)-1))
}

// shelveLocked sets the indices of a row to its namespace and to values, which
// start with the second index.
func (x *Indexer) shelveLocked(at uint32, namespace string, values [][]string) {
	first := [...]string{namespace}
	if namespace == "" {
		x.reshelveLocked(at, 0, nil, values)
	} else {
		x.reshelveLocked(at, 0, first[:], values)
	}
	for i, v := range values {
		x.reshelveLocked(at, i+1, v, values[i+1:])
	}
}

// reshelveLocked sets a row's values in index i to v. An index with unchanged
// values is not written. rest are the values of the following indices.
func (x *Indexer) reshelveLocked(at uint32, i int, v []string, rest [][]string) {
	if x.shelvedLocked(at, i, v) {
		return
	}
	x.unshelveInLocked(at, i)
	if r := x.mu.rows.Edit(int(at)); r.shelves == nil {
		n := len(v)
		for _, more := range rest {
			n += len(more)
		}
		r.shelves = make([]shelf, 0, n)
	}
	x.shelveInLocked(at, i, v)
}

// shelvedLocked reports whether the row's values in index i are v.
func (x *Indexer) shelvedLocked(at uint32, i int, v []string) bool {
	n := 0
	for _, s := range x.mu.rows.At(int(at)).shelves {
		if s.bucket.of != i {
			continue
		}
		if n >= len(v) || v[n] != s.bucket.value {
			return false
		}
		n++
	}
	return n == len(v)
}

func (x *Indexer) shelveInLocked(at uint32, i int, values []string) {
	r := x.mu.rows.Edit(int(at))
	r.shelves = slices.Grow(r.shelves, len(values))
	if cap(r.shelves) > 2*(len(r.shelves)+len(values)) {
		r.shelves = append(make([]shelf, 0, len(r.shelves)+len(values)), r.shelves...)
	}
	buckets := x.mu.indices[i].buckets
	for _, v := range values {
		b := buckets[v]
		if b == nil {
			v = strings.Clone(v) // it must not hold the object that it is from
			b = &bucket{value: v, of: i}
			buckets[v] = b
		}
		r.shelves = append(r.shelves, shelf{b, uint32(b.rows.Len())})
		b.rows.Append(at)
	}
}

func (x *Indexer) unshelveInLocked(at uint32, i int) {
	r := x.mu.rows.Edit(int(at))
	kept := r.shelves[:0]
	for _, s := range r.shelves {
		if s.bucket.of == i {
			x.takeOffLocked(at, s)
		} else {
			kept = append(kept, s)
		}
	}
	clear(r.shelves[len(kept):])
	r.shelves = kept
}

func (x *Indexer) unshelveLocked(at uint32) {
	for _, s := range x.mu.rows.At(int(at)).shelves {
		x.takeOffLocked(at, s)
	}
}

// takeOffLocked removes the row at position at from a shelf. The last row of
// the bucket takes its place.
func (x *Indexer) takeOffLocked(at uint32, s shelf) {
	b := s.bucket
	last := b.rows.Pop()
	if last != at {
		*b.rows.Edit(int(s.at)) = last
		shelves := x.mu.rows.At(int(last)).shelves
		for i := range shelves {
			if shelves[i].bucket == b {
				shelves[i].at = s.at
				break
			}
		}
	}
	if b.rows.Len() == 0 {
		delete(x.mu.indices[b.of].buckets, b.value)
	}
}

// Find returns the index of that name, or nil.
func (x *Indexer) Find(name string) *index {
	for _, i := range x.indicesNow() {
		if i.name == name {
			return i
		}
	}
	return nil
}

// Found is the rows of one value of an index, with all rows at the same moment.
type Found struct {
	Rows      vectorView[Row]
	Positions vectorView[uint32]
}

// Len returns the number of rows.
func (f Found) Len() int { return f.Positions.Len() }

// At returns the i-th row, read-only.
func (f Found) At(i int) *Row { return f.Rows.At(int(*f.Positions.At(i))) }

// Lookup returns what an index has for a value.
func (x *Indexer) Lookup(name, value string) (f Found) {
	i := x.Find(name)
	if i == nil {
		return f
	}
	x.mu.RLock()
	defer x.mu.RUnlock()
	if b := i.buckets[value]; b != nil {
		f = Found{x.mu.rows.View(), b.rows.View()}
	}
	return f
}

// ValuesOf returns the values of an index under which filter sees an object.
func (x *Indexer) ValuesOf(name string, filter *ScopeSet) (values []string) {
	i := x.Find(name)
	x.mu.RLock()
	defer x.mu.RUnlock()
	for value, b := range i.buckets {
		for at := range b.rows.View().All() {
			if r := x.mu.rows.At(int(*at)); r.Readable() && r.Scopes.SeenBy(filter) {
				values = append(values, value)
				break
			}
		}
	}
	return values
}

// Ask returns the values that the named index computes for obj.
func (x *Indexer) Ask(name string, obj kube.Object) ([]string, error) {
	return x.Find(name).valuesOf(x.Kind.Kind, kube.KeyOf(obj), obj)
}

// Lookups is Lookup for several values at one moment.
func (x *Indexer) Lookups(name string, values []string) (all []Found) {
	i := x.Find(name)
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, v := range values {
		if b := i.buckets[v]; b != nil {
			all = append(all, Found{x.mu.rows.View(), b.rows.View()})
		}
	}
	return all
}
