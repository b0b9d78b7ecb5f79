// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// longestFailure is how many bytes of an error's text are kept.
const longestFailure = 512

// Failure is why a key is retried with backoff.
type Failure[K comparable] struct {
	Key K
	// Outcome of its last reconcile: conflict, error, panic, timeout or stopped.
	Outcome Outcome
	// Err is the text of its error, up to 512 bytes.
	Err string
	// At is when the reconcile ended.
	At time.Time
}

// failures by their keys.
type failures[K comparable] struct {
	some atomic.Bool // any exist, so that success takes no lock
	mu   struct {
		sync.Mutex
		of map[K]Failure[K]
	}
}

// record keeps or removes the failure of key, by the result of a reconcile.
func (f *failures[K]) record(key K, a action, err error) {
	if key != key { // a NaN could not be found again
		return
	}
	failed := a.backoff && err != nil
	if !failed && !f.some.Load() {
		return
	}
	text := ""
	if failed {
		if text = errorText(err); len(text) > longestFailure {
			text = strings.Clone(strings.ToValidUTF8(text[:longestFailure], "")) // does not retain the rest
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if failed {
		if f.mu.of == nil {
			f.mu.of = map[K]Failure[K]{}
		}
		f.mu.of[key] = Failure[K]{Key: key, Outcome: a.outcome, Err: text, At: time.Now()}
	} else {
		delete(f.mu.of, key)
	}
	f.some.Store(len(f.mu.of) > 0)
}

// errorText returns the text of err, or that of its panic. Empty: err is nil.
func errorText(err error) (text string) {
	if err == nil {
		return ""
	}
	if p := guarded(func() { text = err.Error() }); p != nil {
		return p.Error()
	}
	return text
}

// count returns how many there are.
func (f *failures[K]) count() int {
	if !f.some.Load() {
		return 0
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.mu.of)
}

func (f *failures[K]) all() []Failure[K] {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.AppendSeq(make([]Failure[K], 0, len(f.mu.of)), maps.Values(f.mu.of))
}
