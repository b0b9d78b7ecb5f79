// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package sourcetest

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/source"
)

// patience is how long a source may take to sync, in the bubble's time.
const patience = time.Hour

// Run checks the sources that newSource makes. Each must sync on its own within
// an hour of the bubble's time.
func Run[K comparable](t *testing.T, newSource func() source.Source[K]) {
	t.Helper()
	for name, check := range map[string]func(testing.TB, source.Source[K]){
		"names itself, always the same":   names[K],
		"is not synced before Run":        notSyncedBefore[K],
		"syncs, and returns nil with ctx": syncsAndEnds[K],
		"ends when ctx has ended before":  endsAtOnce[K],
		"adds nothing after Run":          addsNothingAfter[K],
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { check(t, newSource()) })
		})
	}
}

func names[K comparable](t testing.TB, s source.Source[K]) {
	if first := s.String(); first == "" || first != s.String() {
		t.Errorf("String gave %q, then %q, want a name that stays", first, s.String())
	}
}

func notSyncedBefore[K comparable](t testing.TB, s source.Source[K]) {
	time.Sleep(patience)
	if isSynced(s) {
		t.Error("Synced is closed before Run; a controller would start with keys missing")
	}
}

func syncsAndEnds[K comparable](t testing.TB, s source.Source[K]) {
	if err := during(t, s, patience, func(K, source.Cause) {}); err != nil {
		t.Errorf("Run returned %v, want nil: ctx ended it", err)
	}
	if !isSynced(s) {
		t.Error("Synced is not closed within an hour; a controller would never start")
	}
}

func endsAtOnce[K comparable](t testing.TB, s source.Source[K]) {
	if err := during(t, s, 0, func(K, source.Cause) {}); err != nil {
		t.Errorf("Run returned %v, want nil: ctx had ended", err)
	}
}

func addsNothingAfter[K comparable](t testing.TB, s source.Source[K]) {
	var ended atomic.Bool
	err := during(t, s, patience, func(K, source.Cause) {
		if ended.Load() {
			t.Error("a key was added after Run had returned")
		}
	})
	if err != nil {
		t.Errorf("Run returned %v, want nil: ctx ended it", err)
	}
	ended.Store(true)
	time.Sleep(patience)
	synctest.Wait()
}

// during runs s for that long and returns the result of Run.
func during[K comparable](t testing.TB, s source.Source[K], long time.Duration, add func(K, source.Cause)) error {
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	return s.Run(ctx, add)
}

func isSynced[K comparable](s source.Source[K]) bool {
	select {
	case <-s.Synced():
		return true
	default:
		return false
	}
}
