// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
)

// A scope with undecodable objects reports them, keeps working, and is Live
// when they have healed.
func TestInformer_ScopeWithUndecodableObjectsSaysSo_I9(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.put("a", "1")
		i := informer.New[cmap](s, configMaps, informer.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go i.Run(ctx)
		<-i.Synced()
		stands := func(when string, current state.State, n int, since time.Time, parts ...string) {
			t.Helper()
			synctest.Wait()
			snapshot := i.Snapshot()
			got := snapshot.Scopes[0]
			if got.State != current || got.Undecodable != n || !got.Synced || !snapshot.Synced || !got.Since.Equal(since) || (len(parts) == 0) != (got.Reason == "") {
				t.Errorf("%s: got %s, %d undecodable, synced %v; want %s since %v, %d, synced", when, got, got.Undecodable, got.Synced, current, since, n)
			}
			for _, part := range parts {
				if !strings.Contains(got.String(), part) {
					t.Errorf("%s: got %q, want it to say %q", when, got, part)
				}
			}
		}
		key := func(name string) kube.Key { return kube.Key{Namespace: "ns", Name: name} }
		live := time.Now()
		stands("at first", state.Live, 0, live)
		time.Sleep(time.Minute)
		s.SetUndecodable(key("b"), errors.New("bad bytes"))
		spoilt := time.Now()
		stands("one cannot be decoded", state.DecodingErrors, 1, spoilt, "1 undecodable, the first is ns/b: bad bytes", "correct the objects")
		time.Sleep(time.Minute)
		s.SetUndecodable(key("a"), errors.New("other bad bytes"))
		s.SetUndecodable(key("b"), errors.New("bad bytes again"))
		stands("two cannot", state.DecodingErrors, 2, spoilt, "2 undecodable, the first is ns/b: bad bytes again")
		s.put("b", "1")
		stands("the first has healed", state.DecodingErrors, 1, spoilt.Add(time.Minute), "1 undecodable, the first is ns/a: other bad bytes")
		s.Delete(key("a"))
		stands("the last has gone", state.Live, 0, live)

		s.SetUndecodable(key("b"), errors.New("bad bytes"))
		s.Fail(errors.New("away"))
		s.Cut(errors.New("cut"))
		synctest.Wait()
		if got := i.Snapshot().Scopes[0]; got.State == state.DecodingErrors || got.State == state.Live {
			t.Errorf("got %s while the server is away; what cannot be decoded must not hide it", got)
		}
	})
}
