// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sync"
	"time"
)

// A result is how a step ended.
type result struct {
	took    time.Duration
	err     error
	failed  []string // tests, and then their package
	skipped bool     // what it needs has failed
}

func (r result) word() string {
	switch {
	case r.skipped:
		return "not run"
	case r.err != nil:
		return "FAILED"
	default:
		return "ok"
	}
}

// schedule calls run for each step, at most lanes at a time and in the order of all, but
// for a step that needs another one: it begins after that one has passed, and is skipped if
// it has failed. It returns a result for each step.
func schedule(all []step, lanes int, run func(step) result) []result {
	results := make([]result, len(all))
	ended := map[string]result{}
	begun := make([]bool, len(all))
	running := 0

	var mu sync.Mutex
	changed := sync.NewCond(&mu)
	var group sync.WaitGroup
	defer group.Wait()

	// next returns a step that can begin. It is called with mu held.
	next := func() (int, bool) {
		for i, s := range all {
			if begun[i] {
				continue
			}
			if _, ok := ended[s.after]; s.after == "" || ok {
				return i, true
			}
		}
		return 0, false
	}
	mu.Lock()
	defer mu.Unlock()
	for {
		i, ok := next()
		switch {
		case ok && running < lanes:
			begun[i] = true
			if before := ended[all[i].after]; before.err != nil || before.skipped {
				results[i] = result{skipped: true}
				ended[all[i].name] = results[i]
				continue
			}
			running++
			group.Go(func() {
				r := run(all[i])
				mu.Lock()
				defer mu.Unlock()
				results[i], ended[all[i].name] = r, r
				running--
				changed.Broadcast()
			})
		case running > 0:
			changed.Wait()
		default:
			return results
		}
	}
}
