// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate"
)

// slowKinds are the kinds whose changes the server publishes late, by the fault Slow.
type slowKinds struct {
	server *simulate.Server
	clock  *clock
	mu     struct {
		sync.Mutex
		slow map[string]*slowness
	}
}

type slowness struct {
	resource schema.GroupResource
	by       time.Duration
	faults   int   // active
	known    int64 // revision
}

func newSlowKinds(server *simulate.Server, clock *clock) *slowKinds {
	k := &slowKinds{server: server, clock: clock}
	k.mu.slow = map[string]*slowness{}
	return k
}

// begin makes a kind slow. over ends that.
func (k *slowKinds) begin(r schema.GroupResource, by time.Duration) (over func()) {
	kind, now := k.server.KindOf(r).String(), k.server.Revision()
	k.mu.Lock()
	s := k.mu.slow[kind]
	if s == nil {
		s = &slowness{resource: r, known: now}
		k.mu.slow[kind] = s
	}
	s.faults++
	s.by = by
	known := s.known
	k.mu.Unlock()
	k.server.LagKindTo(r, known)
	return func() { k.quickAgain(kind) }
}

// quickAgain ends one slow fault of a kind, and the slowness with the last of them.
func (k *slowKinds) quickAgain(kind string) {
	k.mu.Lock()
	s := k.mu.slow[kind]
	s.faults--
	last := s.faults == 0
	if last {
		delete(k.mu.slow, kind)
	}
	k.mu.Unlock()
	if last {
		k.server.CatchUpKind(s.resource)
	}
}

// take delays a change if its kind is slow. It does not block.
func (k *slowKinds) take(c simulate.Change) {
	kind := c.Kind.String()
	s, by := k.slowness(kind)
	if s == nil {
		return
	}
	k.clock.group.Go(func() {
		if k.clock.instants.Rest(k.clock.faulty, fmt.Sprintf("slow %s %d", kind, c.Revision), by) {
			k.catchUp(kind, s, c.Revision)
		}
	})
}

// slowness returns that of a kind, and how long it delays a change; nil: none.
func (k *slowKinds) slowness(kind string) (s *slowness, by time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if s = k.mu.slow[kind]; s != nil {
		by = s.by
	}
	return s, by
}

// catchUp publishes a revision of a slow kind, unless it is no longer slow.
func (k *slowKinds) catchUp(kind string, s *slowness, revision int64) {
	k.mu.Lock()
	slow := k.mu.slow[kind] == s
	s.known = max(s.known, revision)
	known := s.known
	k.mu.Unlock()
	if slow {
		k.server.LagKindTo(s.resource, known)
	}
}
