// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/flyball-dev/flyball/kube"
)

// mostUnsettled is how many keys of a namespace are pending one by one. Above that the whole
// namespace is, because one list then costs less than a read of each key.
const mostUnsettled = 100

// unsettledKeys are the keys whose state is not known after an own write, until a read from the
// server has settled it.
//
//	own write ──▶ Mark ──▶ unsettledKeys ◀── Has: reads of the store
//	                        │  ▲
//	                   Next ▼  │ Done ──▶ functions of When
//	                       settler ──▶ list from the server ──▶ settlerStore
//
// A key is pending from Mark until a read that began after the Mark is stored (I12): a read
// settles only what was marked before it began. A key without a name stands for all objects of
// its namespace, and the empty key for all objects. The zero value is empty. Safe for concurrent
// use.
type unsettledKeys struct {
	count atomic.Int64 // of the marks
	mu    struct {
		sync.Mutex
		marks   map[kube.Key]unsettledMark
		in      map[string]int // number of marks by namespace
		order   []kube.Key     // the next to read first
		last    uint64         // number of the newest mark
		waiters []*settleWaiter
		marked  chan struct{} // closed by Mark; nil: nobody waits
		closed  bool
	}
}

// unsettledMark is why a key is pending.
type unsettledMark struct {
	number  uint64
	version kube.Version // of the object, as far as the answer told; 0: unknown
}

// settleWaiter waits until a key is not pending.
type settleWaiter struct {
	key kube.Key
	do  func()
}

// Mark makes key pending. If version is not 0, an object of that version or a newer one is
// known to be up to date.
func (s *unsettledKeys) Mark(key kube.Key, version kube.Version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return
	}
	before, known := s.mu.marks[key]
	if !known && key.Name != "" && s.mu.in[key.Namespace] >= mostUnsettled {
		key, version = kube.Key{Namespace: key.Namespace}, 0
		before, known = s.mu.marks[key]
	}
	switch {
	case !known:
		s.addLocked(key)
	case before.version == 0:
		version = 0
	case version != 0:
		version = max(version, before.version)
	}
	s.mu.last++
	s.mu.marks[key] = unsettledMark{s.mu.last, version}
	if s.mu.marked != nil {
		close(s.mu.marked)
		s.mu.marked = nil
	}
}

func (s *unsettledKeys) addLocked(key kube.Key) {
	if s.mu.marks == nil {
		s.mu.marks, s.mu.in = make(map[kube.Key]unsettledMark), make(map[string]int)
	}
	s.mu.in[key.Namespace]++
	s.mu.order = append(s.mu.order, key)
	s.count.Add(1)
}

// Len returns the number of marks.
func (s *unsettledKeys) Len() int { return int(s.count.Load()) }

// Has reports whether the state of key is not known. While nothing is pending it takes no
// lock.
func (s *unsettledKeys) Has(key kube.Key) bool {
	if s.count.Load() == 0 {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pendingLocked(key)
}

// pendingLocked reports whether an object is pending that a read of key depends on: a key
// without a name reads its namespace, and the empty key everything.
func (s *unsettledKeys) pendingLocked(key kube.Key) bool {
	switch {
	case len(s.mu.marks) == 0:
		return false
	case key == kube.Key{}:
		return true
	}
	has := func(key kube.Key) bool { _, ok := s.mu.marks[key]; return ok }
	if has(kube.Key{}) {
		return true
	}
	if key.Name == "" {
		return s.mu.in[key.Namespace] > 0
	}
	return has(key) || has(kube.Key{Namespace: key.Namespace})
}

// settlerRead is a read from the server that settles a key.
type settlerRead struct {
	Key     kube.Key
	Version kube.Version // that is new enough without a read; 0: none
	before  uint64       // the read settles marks up to this number
}

// Next returns the next read. Without one, marked is closed when there may be one.
func (s *unsettledKeys) Next() (r settlerRead, ok bool, marked <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mu.order) == 0 {
		if s.mu.marked == nil {
			s.mu.marked = make(chan struct{})
		}
		return r, false, s.mu.marked
	}
	key := s.mu.order[0]
	s.mu.order = append(s.mu.order[1:], key)
	return settlerRead{key, s.mu.marks[key].version, s.mu.last}, true, nil
}

// Done records that the result of the read is stored, and returns the functions to call.
func (s *unsettledKeys) Done(r settlerRead) (settled []func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.order = slices.DeleteFunc(s.mu.order, func(key kube.Key) bool {
		within := r.Key.Name == "" && (r.Key.Namespace == "" || r.Key.Namespace == key.Namespace)
		if key != r.Key && !within || s.mu.marks[key].number > r.before {
			return false
		}
		delete(s.mu.marks, key)
		if s.mu.in[key.Namespace]--; s.mu.in[key.Namespace] == 0 {
			delete(s.mu.in, key.Namespace)
		}
		s.count.Add(-1)
		return true
	})
	return s.wokenLocked()
}

// wokenLocked removes the waiters whose keys are not pending and returns their functions.
func (s *unsettledKeys) wokenLocked() (woken []func()) {
	s.mu.waiters = slices.DeleteFunc(s.mu.waiters, func(w *settleWaiter) bool {
		if s.pendingLocked(w.key) {
			return false
		}
		woken = append(woken, w.do)
		return true
	})
	return woken
}

// When calls do once, when no object is pending that a read of key depends on; at once if
// that is already so. stop cancels it.
func (s *unsettledKeys) When(key kube.Key, do func()) (stop func()) {
	s.mu.Lock()
	pending := s.pendingLocked(key)
	w := &settleWaiter{key, do}
	if pending {
		s.mu.waiters = append(s.mu.waiters, w)
	}
	s.mu.Unlock()
	if !pending {
		do()
		return func() {}
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.mu.waiters = slices.DeleteFunc(s.mu.waiters, func(other *settleWaiter) bool { return other == w })
	}
}

// Close empties the set for good, since nothing reads from the server any more. It returns
// the functions to call.
func (s *unsettledKeys) Close() (settled []func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.closed = true
	s.count.Add(-int64(len(s.mu.marks)))
	s.mu.marks, s.mu.in, s.mu.order = nil, nil, nil
	return s.wokenLocked()
}
