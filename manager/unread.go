// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/textlog"
)

const (
	atWork      = 100              // reconciles without a read of an informer, after which it counts as unread
	unreadEvery = 10 * time.Minute // a look for the log
)

// unread remembers how many reconciles had ended when an informer was first seen unused. The zero
// unread is ready to use. Safe for concurrent use.
type unread struct {
	mu struct {
		sync.Mutex
		ended map[unused]uint64
	}
}

type unused struct {
	kind  schema.GroupVersionKind
	since time.Time
}

// workload is what a program has to do.
type workload struct {
	controllers bool   // there are some
	ended       uint64 // their reconciles
	stands      bool   // by, for the leader
	leads       time.Time
}

// excuse clears UnusedSince of informers that may be unread because the program has nothing to do.
func (u *unread) excuse(all []state.Informer, work workload) {
	u.mu.Lock()
	defer u.mu.Unlock()
	ended := map[unused]uint64{}
	for i := range all {
		s := &all[i]
		if s.UnusedSince.IsZero() {
			continue
		}
		one := unused{s.Kind, s.UnusedSince}
		before, known := u.mu.ended[one]
		if !known {
			before = work.ended
		}
		ended[one] = before
		switch {
		case work.stands || work.controllers && work.ended-before < atWork:
			s.UnusedSince = time.Time{}
		case s.UnusedSince.Before(work.leads):
			s.UnusedSince = work.leads
		}
	}
	u.mu.ended = ended
}

// informerStates returns the states of all informers.
func (m *Manager) informerStates() []state.Informer {
	all := m.runnables.informers()
	work := workload{}
	for _, c := range m.runnables.controllers() {
		work.controllers = true
		for _, n := range c.Outcomes {
			work.ended += n
		}
	}
	if m.elector != nil {
		s := m.elector.State()
		if work.stands = !s.Leading; s.Leading {
			work.leads = s.Since
		}
	}
	m.unread.excuse(all, work)
	return all
}

// watch logs each informer that nothing uses, once, until ctx ends.
func (u *unread) watch(ctx context.Context, log logr.Logger, states func() []state.Informer) {
	ticker := time.NewTicker(unreadEvery)
	defer ticker.Stop()
	logged := map[schema.GroupVersionKind]bool{}
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			found := map[schema.GroupVersionKind]bool{}
			for _, s := range states() {
				for _, f := range s.Findings(now) {
					if f.Kind != state.UnreadWatch {
						continue
					}
					if found[s.Kind] = true; !logged[s.Kind] {
						textlog.Warn(log, nil, "An informer needs attention: "+string(f.Kind), "kind", s.Kind.Kind, "finding", f.String())
					}
				}
			}
			logged = found
		}
	}
}
