// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/source"
)

// firstSyncReport is when sources that are not synced are first logged.
const firstSyncReport = 30 * time.Second

// sources are those of a controller that have not ended, in the order of their Watch.
type sources[K comparable] struct {
	mu struct {
		sync.Mutex
		all []*source.Source[K] // pointers, as a Source need not be comparable
	}
}

// add adds one, until drop is called.
func (s *sources[K]) add(one source.Source[K]) (drop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := &one
	s.mu.all = append(s.mu.all, at)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.mu.all = slices.DeleteFunc(s.mu.all, func(other *source.Source[K]) bool { return other == at })
	}
}

func (s *sources[K]) all() []source.Source[K] {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]source.Source[K], len(s.mu.all))
	for i, one := range s.mu.all {
		out[i] = *one
	}
	return out
}

// await blocks until every source present by then has synced. It reports false if ctx
// ends first. It periodically logs the sources that it waits for.
func (s *sources[K]) await(ctx context.Context, log logr.Logger) bool {
	wait := firstSyncReport
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		behind := s.unsynced()
		if len(behind) == 0 {
			return ctx.Err() == nil
		}
		select {
		case <-behind[0].Synced():
		case <-ctx.Done():
			return false
		case <-timer.C:
			textlog.Warn(log, nil, "Workers have not started, because sources are not synced", "sources", names(behind))
			wait *= 2
			timer.Reset(wait)
		}
	}
}

func (s *sources[K]) unsynced() []source.Source[K] {
	var behind []source.Source[K]
	for _, one := range s.all() {
		select {
		case <-one.Synced():
		default:
			behind = append(behind, one)
		}
	}
	return behind
}

func names[K comparable](sources []source.Source[K]) string {
	var all []string
	for _, s := range sources {
		all = append(all, s.String())
	}
	return strings.Join(all, ", ")
}
