// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/shards"
)

// What Changed was given belongs to others: it runs while no lock of the agent is held, and once for all
// shards that are lost together.
func TestAgent_TellsOthersWithoutItsLock(t *testing.T) {
	a, err := New(Options{
		ID: "op", Namespace: "default", By: shards.UID, Count: 4, LeaseDuration: 15 * time.Second, RetryPeriod: 2 * time.Second,
	}, &rest.Config{Host: "http://server"}, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	defer a.Guard().Changed(func() {
		if told++; !a.mu.TryLock() {
			t.Error("what Changed was given is called while the agent's lock is held")
			return
		}
		a.mu.Unlock()
	})()
	for _, c := range []struct {
		what string
		do   func()
		want int
	}{
		{"shards are held", func() {
			a.mu.Lock()
			defer a.unlock()
			a.mu.me.shards[0], a.mu.me.shards[3] = claimed, claimed
			a.holdLocked([]Taken{{Shard: 0}, {Shard: 3}}, 0)
		}, 1},
		{"all are lost", func() { a.loseAll("a test says so") }, 2},
		{"none is left", func() { a.loseAll("a test says so") }, 2},
		{"the process leaves", func() {
			a.mu.Lock()
			defer a.unlock()
			a.mu.me.leaving, a.mu.me.shards[1] = true, claimed
			a.holdLocked([]Taken{{Shard: 1}}, 0) // it takes no more
		}, 2},
	} {
		if c.do(); told != c.want {
			t.Errorf("when %s: called %d times in all, want %d", c.what, told, c.want)
		}
	}
}
