// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"sync"
	"time"
)

// objects are the objects of a cluster at one moment.
type objects map[ref]map[string]any

// trial is what one run of a walk has shown.
type trial struct {
	plan    plan
	seed    uint64
	changes []change
	asks    []ask
	watched []string // kinds that the operator watches
	// ends are the objects after each step, at rest; nil: the run did not come to rest there, or the
	// next step did not wait for it.
	ends []objects
	// last are the objects at the end.
	last objects
	// peaks are the highest values of spec.replicas that objects have had.
	peaks map[ref]int64
	// faults that happened, as lines with their times.
	faults []happening
	lives  []happening // when the process starts and ends
	// wrongs are what is wrong whatever the program is for, such as that it does not come to rest.
	wrongs struct {
		sync.Mutex
		all []wrong
	}
	// refused is why the server did not accept a step of the user; empty: it did.
	refused string
	took    []time.Duration // of each step
	// write writes the complete history into a directory, and returns the files; nil: there is none.
	write func(dir string) ([]string, error)
}

// happening is something that happened besides changes.
type happening struct {
	at   time.Duration
	text string
}

// wrong is a violation of what every program has to do.
type wrong struct {
	// rule is the name of an invariant of package kit, such as V7, or "panic".
	rule string
	text string
}

// aimed reports whether all faults of the plan have happened.
func (t *trial) aimed() bool { return len(t.plan.Faults) == 0 || len(t.faults) > 0 }

// creates and deletes count the changes of objects by others than the user. name returns what an object is
// counted as; empty: not at all.
func (t *trial) counts(verb string, name func(ref) string) map[string]int {
	counts := map[string]int{}
	for _, c := range t.changes {
		if c.Who == user || c.Verb != verb {
			continue
		}
		if as := name(c.Of); as != "" {
			counts[as]++
		}
	}
	return counts
}

// most returns how many objects of a name there were at most at one time.
func (t *trial) most(name func(ref) string) map[string]int {
	now, most := map[string]int{}, map[string]int{}
	for _, c := range t.changes {
		as := name(c.Of)
		switch {
		case as == "":
		case c.Verb == "created":
			now[as]++
			most[as] = max(most[as], now[as])
		case c.Verb == "deleted":
			now[as]--
		}
	}
	return most
}

func (t *trial) addWrong(w wrong) {
	t.wrongs.Lock()
	defer t.wrongs.Unlock()
	t.wrongs.all = append(t.wrongs.all, w)
}
