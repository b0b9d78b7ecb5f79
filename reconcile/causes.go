// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/source"
)

// Causes is why a reconcile runs: what has been added for its key since the one before began.
type Causes struct {
	// First and Last were added first and last. They are the same if Count is 1.
	First, Last source.Cause
	// Count is how many were added. 0: none is recorded. More than 8,192 keys waited, or 4,096 for
	// timers and retries; or the program itself has put the key into its queue.
	Count int
	// Since is when the first was added.
	Since time.Time
	// Sources counts them by source, in the order in which the sources came first; the 8 first
	// sources. Nil: all are of one source.
	Sources []SourceCount

	foreign bool // one between the first and the last is not of an own write
}

// SourceCount is how many causes came from one source.
type SourceCount struct {
	Source string
	Count  int
}

// String returns the causes as in the logger of a reconcile, such as "updated Deployment
// shop/web (generation 3 to 4), and 2 more".
func (c Causes) String() string {
	switch c.Count {
	case 0:
		return "not recorded"
	case 1:
		return c.First.String()
	}
	return fmt.Sprintf("%s, and %d more", c.First, c.Count-1)
}

// CausesOf returns why the reconcile of ctx runs; outside of one, and after its end, the zero
// Causes. An event that is merged with others while its key waits is counted. A retry or the end of
// a RequeueAfter is a cause only if nothing else was added. Use it to log and to explain, and not
// to decide: a reconcile that acts by its cause misses what happened while nothing watched.
func CausesOf(ctx context.Context) Causes {
	if r, ok := contextvalues.TaskOf(ctx).(interface{ whyItRuns() Causes }); ok {
		return r.whyItRuns()
	}
	return Causes{}
}

const (
	mostCaused  = 8192           // keys whose causes are recorded
	mostAgain   = mostCaused / 2 // of them keys that wait for a timer or a retry, which may be hours
	mostFree    = 1024
	mostSources = 8
	mostReason  = 256 // bytes
)

// causes are why the keys of a controller wait. The zero causes is ready to use. Safe for
// concurrent use.
type causes[K comparable] struct {
	mu struct {
		sync.Mutex
		waiting map[K]*caused
		again   int       // of them
		free    []*caused // for reuse: most keys wait for a moment, with one cause
	}
}

// caused is why one key waits.
type caused struct {
	first source.Cause
	since time.Time
	more  *moreCauses // nil: there is one cause
	again bool        // it is a retry or a timer, which an event replaces
}

type moreCauses struct {
	last    source.Cause
	count   int  // with the first
	foreign bool // one between the first and the last is not of an own write
	sources []SourceCount
}

// add records a cause of an event. It is called before the key is added to the queue.
func (c *causes[K]) add(key K, cause source.Cause, now time.Time) { c.record(key, cause, now, false) }

// addAgain records why a key runs again if no event comes before.
func (c *causes[K]) addAgain(key K, cause source.Cause, now time.Time) {
	cause.Reason = cut(cause.Reason, mostReason)
	c.record(key, cause, now, true)
}

// repeat makes key, which runs again at once, wait for the last cause of the run that ends: it was
// recorded when a worker had the key already, but not yet its causes.
func (c *causes[K]) repeat(key K, taken *caused, now time.Time) {
	if taken != nil {
		c.record(key, taken.last(), now, true)
	}
}

func (c *causes[K]) record(key K, cause source.Cause, now time.Time, again bool) {
	if key != key { // a NaN could not be found again
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.mu.waiting[key]
	switch {
	case w == nil && again && c.mu.again >= mostAgain:
	case w == nil && len(c.mu.waiting) < mostCaused:
		if w = c.newLocked(); c.mu.waiting == nil {
			c.mu.waiting = make(map[K]*caused)
		}
		c.mu.waiting[key] = w
		*w = caused{first: cause, since: now, again: again}
		if again {
			c.mu.again++
		}
	case w == nil || again:
	case w.again:
		*w = caused{first: cause, since: now}
		c.mu.again--
	default:
		w.merge(cause)
	}
}

func (c *causes[K]) newLocked() *caused {
	last := len(c.mu.free) - 1
	if last < 0 {
		return new(caused)
	}
	w := c.mu.free[last]
	c.mu.free = c.mu.free[:last]
	return w
}

func (w *caused) merge(cause source.Cause) {
	if w.more == nil {
		w.more = &moreCauses{count: 1}
	}
	m := w.more
	m.foreign = m.foreign || m.count > 1 && !m.last.Own
	m.last = cause
	m.count++
	if m.sources == nil {
		if cause.Source == w.first.Source {
			return
		}
		m.sources = []SourceCount{{w.first.Source, m.count - 1}}
	}
	if i := slices.IndexFunc(m.sources, func(s SourceCount) bool { return s.Source == cause.Source }); i >= 0 {
		m.sources[i].Count++
	} else if len(m.sources) < mostSources {
		m.sources = append(m.sources, SourceCount{cause.Source, 1})
	}
}

// take returns why key runs, until release; nil: nothing is recorded.
func (c *causes[K]) take(key K) *caused {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.mu.waiting[key]
	if w == nil {
		return nil
	}
	delete(c.mu.waiting, key)
	if w.again {
		c.mu.again--
	}
	return w
}

// last returns the last cause.
func (w *caused) last() source.Cause {
	if w.more != nil {
		return w.more.last
	}
	return w.first
}

// of returns the causes in what take has returned.
func (c *causes[K]) of(taken **caused) Causes {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := *taken
	if w == nil {
		return Causes{}
	}
	out := Causes{First: w.first, Count: 1, Since: w.since}
	if out.Last = w.last(); w.more != nil {
		out.Count, out.Sources, out.foreign = w.more.count, w.more.sources, w.more.foreign
	}
	return out
}

// release ends the use of what take has returned: of then returns no causes.
func (c *causes[K]) release(taken **caused) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := *taken
	if *taken = nil; w == nil {
		return
	}
	if *w = (caused{}); len(c.mu.free) < mostFree {
		c.mu.free = append(c.mu.free, w)
	}
}
