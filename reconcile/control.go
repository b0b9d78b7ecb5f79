// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flyball-dev/flyball/source"
	"github.com/flyball-dev/flyball/workqueue"
)

// statePaused is the state in QueuedKeys of a paused key that was woken: it runs when it is resumed.
const statePaused workqueue.State = "paused"

const (
	byPerson  = "request" // the source of a key that a person runs
	byResumed = "resume"  // the source of a key that was paused
)

// Pause is who has paused a controller or a key, and when.
type Pause struct {
	By string
	At time.Time
}

// Pauses are what a controller does not reconcile.
type Pauses struct {
	// All is the pause of the whole controller. Nil: it is not paused.
	All *Pause
	// Keys are those that are paused by themselves, as in the logs.
	Keys map[string]Pause
}

// Of returns why a key is paused; nil: it is not.
func (p Pauses) Of(key string) *Pause {
	if one, paused := p.Keys[key]; paused {
		return &one
	}
	return p.All
}

// control is what people can do to a running controller.
type control[K comparable] struct {
	of interface {
		add(key K, cause source.Cause)
		QueueSnapshot() workqueue.Snapshot[K]
	}
	failed interface{ Forget(key K) }
	past   *recorder[K]
	some   atomic.Bool // anything is paused: otherwise a run takes no lock
	mu     struct {
		sync.Mutex
		pauses Pauses       // replaced as a whole
		kept   map[K]waking // paused keys that were woken
	}
}

// waking is a paused key that was woken.
type waking struct {
	text  string // of the key
	since time.Time
}

// SetPauses pauses what p says, and resumes all else. A paused key is not reconciled, but for a
// reconcile that has begun. What wakes it meanwhile is kept, in memory: when it is resumed, it runs
// once, with all causes. A paused key is not among Snapshot.Findings. It does not block, and may be
// called before Run, and with the same Pauses again.
func (c *control[K]) SetPauses(p Pauses) {
	p.Keys = maps.Clone(p.Keys)
	for _, key := range c.setPauses(p) {
		c.of.add(key, source.Cause{Source: byResumed})
	}
}

func (c *control[K]) setPauses(p Pauses) (resumed []K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.pauses = p
	c.some.Store(p.All != nil || len(p.Keys) > 0)
	var kept map[K]waking // anew: a NaN could not be deleted
	for key, w := range c.mu.kept {
		if p.Of(w.text) == nil {
			resumed = append(resumed, key)
			continue
		}
		if kept == nil {
			kept = map[K]waking{}
		}
		kept[key] = w
	}
	c.mu.kept = kept
	return resumed
}

// keep reports whether key is paused, and remembers then that it was woken. Its worker has it.
func (c *control[K]) keep(key K) bool {
	text := keyText(key)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.pauses.Of(text) == nil {
		return false
	}
	if c.mu.kept == nil {
		c.mu.kept = map[K]waking{}
	}
	if _, known := c.mu.kept[key]; !known {
		c.mu.kept[key] = waking{text, time.Now()}
	}
	return true
}

// drop forgets that key was woken, and reports whether it was.
func (c *control[K]) drop(key K) bool {
	if !c.some.Load() {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.mu.kept[key]
	delete(c.mu.kept, key)
	return known
}

// paused returns the pauses, which must not be modified, and how many paused keys were woken.
func (c *control[K]) paused() (p Pauses, woken int) {
	if !c.some.Load() {
		return p, 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.pauses, len(c.mu.kept)
}

// kept returns the paused keys that were woken.
func (c *control[K]) kept() map[K]waking {
	if !c.some.Load() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.mu.kept)
}

// mark gives paused keys that were woken their state among those of the queue.
func (c *control[K]) mark(keys []workqueue.KeyState[string]) []workqueue.KeyState[string] {
	kept := c.kept()
	if len(kept) == 0 {
		return keys
	}
	at := make(map[string]int, len(keys))
	for i, k := range keys {
		at[k.Key] = i
	}
	for _, w := range kept {
		i, queued := at[w.text]
		if !queued {
			i = len(keys)
			keys = append(keys, workqueue.KeyState[string]{Key: w.text})
		}
		keys[i].State, keys[i].Age = statePaused, time.Since(w.since)
	}
	return keys
}

// RunNow makes a key, as in the logs, ready at once, also one that waits for a time or for its
// backoff. by is who wants that, for the causes of the run. It reports whether there is such a key:
// a key that is no Key must be in the queue or have recorded runs. A paused key runs when it is
// resumed. It does not block.
func (c *control[K]) RunNow(key, by string) bool {
	k, found := c.find(key)
	if found {
		c.of.add(k, source.Cause{Source: byPerson, Reason: cut(by, mostReason)})
	}
	return found
}

// ResetBackoff is RunNow, and forgets the failures of the key, so that its next backoff is the
// shortest.
func (c *control[K]) ResetBackoff(key, by string) bool {
	if k, found := c.find(key); found {
		c.failed.Forget(k)
	}
	return c.RunNow(key, by)
}

// find returns the key of a text.
func (c *control[K]) find(text string) (key K, found bool) {
	if key, found = c.past.find(text); found {
		return key, true
	}
	for _, k := range c.of.QueueSnapshot().Keys {
		if keyText(k.Key) == text {
			return k.Key, true
		}
	}
	for k, w := range c.kept() {
		if w.text == text {
			return k, true
		}
	}
	return key, false
}
