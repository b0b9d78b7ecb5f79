// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

// sharingView is what the JSON says about replicas and a key.
type sharingView struct {
	Sharing struct {
		Identity string
		Replicas []struct{ Name string }
		Shards   []struct{ Holder, Stage string }
	}
	Place *struct {
		Shard  int
		Holder string
		Here   bool
	}
	Error string
}

// sharing is a replica that serves its JSON.
type sharing struct {
	*manager.Manager
	t    *testing.T
	runs atomic.Int64
}

func (s *sharing) ask(method, path string) (code int, out sharingView) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.MetricsAddr()+"/debug/flyball/v1/"+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := json.Unmarshal(body, &out); err != nil {
		s.t.Fatalf("%s %s: %v in %s", method, path, err, body)
	}
	return answer.StatusCode, out
}

func startSharing(t *testing.T, server *simtest.Server, number int, by manager.ShardBy) *sharing {
	t.Helper()
	mgr, err := manager.New(manager.Options{
		Config: server.Config, HealthAddress: "0", MetricsAddress: "127.0.0.1:0", MetricsServing: manager.Serving{Actions: true},
		Sharding:       &manager.Sharding{Shards: 16, By: by, Address: fmt.Sprintf("http://10.0.0.%d:8080", number)},
		LeaderElection: &manager.LeaderElection{ID: "op", Namespace: "default", LeaseDuration: 5 * time.Second, Identity: fmt.Sprint("replica-", number)},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := &sharing{Manager: mgr, t: t}
	if err := mgr.Add(reconcile.For(informer.For[*corev1.ConfigMap](mgr.Informers()), func(context.Context, *corev1.ConfigMap) (reconcile.Result, error) {
		s.runs.Add(1)
		return reconcile.After(time.Hour, "poll"), nil
	}, reconcile.Options{Name: "site"})); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	eventually(t, func() bool { return mgr.MetricsAddr() != "" })
	return s
}

// Each replica says who holds which shard. A key is run by the replica that holds its shard, and by
// no other; another one names it, or says that it cannot tell.
func TestActions_OfAnotherReplica_M32(t *testing.T) {
	for _, by := range []manager.ShardBy{manager.Namespace, manager.UID} {
		t.Run(string(by), func(t *testing.T) {
			t.Parallel()
			var objects []runtime.Object
			for i := range 20 {
				objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("n-%d-team", i), Name: "web"}})
			}
			server := simtest.New(t, nil, objects...)
			all := []*sharing{startSharing(t, server, 1, by), startSharing(t, server, 2, by)}
			eventually(t, func() bool {
				held := map[string]int{}
				for _, s := range all {
					_, view := s.ask(http.MethodGet, "overview")
					for _, one := range view.Sharing.Shards {
						if one.Holder == view.Sharing.Identity && one.Stage == "held" {
							held[one.Holder]++
						}
					}
				}
				return len(held) == 2 && held[names(all)[0]] == 8 && held[names(all)[1]] == 8 && all[0].runs.Load()+all[1].runs.Load() >= 20
			})
			ran := []int{0, 0}
			for i := range 20 {
				path := fmt.Sprintf("controllers/site/run?key=n-%d-team/web", i)
				for n, s := range all {
					code, view := s.ask(http.MethodPost, path)
					if code == http.StatusOK {
						ran[n]++
						continue
					}
					other := names(all)[1-n]
					switch {
					case by == manager.Namespace && (code != http.StatusMisdirectedRequest || !strings.Contains(view.Error, other+" holds (http://10.0.0."+fmt.Sprint(2-n)+":8080)")):
						t.Errorf("%s at replica %d: %d %q, want 421 and that %s holds the shard", path, n, code, view.Error, other)
					case by == manager.UID && (code != http.StatusNotFound || !strings.Contains(view.Error, "another replica may have it")) && code != http.StatusMisdirectedRequest:
						t.Errorf("%s at replica %d: %d %q, want 404 and that another replica may have it", path, n, code, view.Error)
					}
				}
			}
			if ran[0]+ran[1] != 20 || ran[0] == 0 || ran[1] == 0 {
				t.Errorf("the replicas have run %v keys, want 20 in all, each by one", ran)
			}
		})
	}
}

// names returns the identities of replicas.
func names(all []*sharing) (out []string) {
	for _, s := range all {
		out = append(out, s.Snapshot().Sharing.Identity)
	}
	return out
}
