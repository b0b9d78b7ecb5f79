// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// entry is one change as a history has it.
type entry struct {
	at   time.Duration // since the start
	what string
}

// lived is what happens to Deployments of some names while actors work: all of
// it as a hash, and what is about each name.
func lived(t *testing.T, seed uint64, names ...string) (hash string, of map[string][]entry) {
	t.Helper()
	of = map[string][]entry{}
	sum := sha256.New()
	synctest.Test(t, func(t *testing.T) {
		s, start := New(Options{Seed: seed, Namespaces: []string{"ns"}}), time.Now()
		s.store.ObserveChanges(func(c revisions.Change) {
			text, err := json.Marshal([]any{c.Revision, time.Since(start), c.Resource, c.Key, c.After})
			if err == nil && c.After != nil {
				text, err = json.Marshal([]any{string(text), c.After.Fields})
			}
			if err != nil {
				t.Error(err)
			}
			_, _ = sum.Write(text)
			name, _, _ := strings.Cut(c.Key.Name, "-")
			of[name] = append(of[name], entry{time.Since(start), fmt.Sprintf("%s %s %v", c.Resource, c.Key, c.After == nil)})
		})
		ctx, stop := context.WithCancel(t.Context())
		var group sync.WaitGroup
		defer group.Wait()
		defer stop()
		group.Go(func() {
			if err := s.RunActors(ctx, Actors{GarbageCollector: true, Namespaces: true, Workloads: true}); err != nil {
				t.Error(err)
			}
		})
		send := func(method, path, body string) {
			w := httptest.NewRecorder()
			s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body)))
			if w.Code >= 300 {
				t.Errorf("%s %s: got %d %s", method, path, w.Code, w.Body)
			}
			time.Sleep(time.Microsecond)
		}
		for _, name := range names {
			send("POST", "/apis/apps/v1/namespaces/ns/deployments", fmt.Sprintf(
				`{"metadata":{"name":%q},"spec":{"replicas":3,"selector":{"matchLabels":{"app":%q}},"template":{"metadata":{"labels":{"app":%q}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`,
				name, name, name))
		}
		time.Sleep(5*time.Second - time.Since(start))
		send("DELETE", "/apis/apps/v1/namespaces/ns/deployments/"+names[0], "")
		time.Sleep(10*time.Second - time.Since(start))
		send("DELETE", "/api/v1/namespaces/ns", "")
		time.Sleep(time.Minute)
	})
	return fmt.Sprintf("%x", sum.Sum(nil)), of
}

func TestActors_OneSeedIsOneHistory_S22(t *testing.T) {
	first, of := lived(t, 1, "a", "b")
	if len(of["a"]) < 20 {
		t.Fatalf("got %d changes of a; want a rollout", len(of["a"]))
	}
	for range 3 {
		if again, _ := lived(t, 1, "a", "b"); again != first {
			t.Errorf("got history %s, then %s, with one seed", first, again)
		}
	}
	if other, _ := lived(t, 2, "a", "b"); other == first {
		t.Error("got one history with two seeds; want the seed to decide how long steps take")
	}
}

func TestActors_OneObjectMovesNoOther_S22(t *testing.T) {
	_, with := lived(t, 1, "a", "b")
	_, without := lived(t, 1, "a")
	// Until the namespace ends, which is about all that is in it.
	early := func(list []entry) (out []entry) {
		for _, e := range list {
			if e.at < 10*time.Second {
				out = append(out, e)
			}
		}
		return out
	}
	if got, want := early(without["a"]), early(with["a"]); !slices.Equal(got, want) {
		t.Errorf("without b a's history is\n%v, with b it was\n%v", got, want)
	}
}
