// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	caches "github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

// shares returns a Lease of the operator shop with annotations, as pairs of name and value.
func shares(name, holder string, annotations ...string) *coordinationv1.Lease {
	l := lease("shop-system", name, holder)
	l.Labels, l.Annotations = map[string]string{sharingLabel: "shop"}, map[string]string{}
	for i := 0; i < len(annotations); i += 2 {
		l.Annotations[annotations[i]] = annotations[i+1]
	}
	return l
}

// The replicas that share objects are found together: by the Lease of their plan, by their
// Deployment, or as all that there is. A Pod that is named is asked alone.
func TestFind_ReplicasThatShareObjects(t *testing.T) {
	long := strings.Repeat("a", 65)
	server := simtest.New(t, nil,
		pod("shop-system", "shop-1"), pod("shop-system", "shop-2"), pod("shop-system", long), pod("shop-system", "shop-3", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }),
		shares("shop", "replicas-share-shards", programAnnotation, "shop", "flyball.dev/shards", "2/uid"),
		shares("shop-shop-1-abcdefgh", "shop-shop-1-abcdefgh", stateAnnotation, "active"),
		shares("shop-node-7-bcdefghi", "shop-node-7-bcdefghi", stateAnnotation, "active", podAnnotation, "shop-2"),
		shares("shop-"+long[:60]+"-cdefghij", "shop-"+long[:60]+"-cdefghij", stateAnnotation, "leaving"),
		shares("shop-shop-3-defghijk", "shop-shop-3-defghijk", stateAnnotation, "active"),
		shares("shop-shop-2-efghijkl", "", stateAnnotation, "active"), // it has ended
		shares("shop-shard-0", "shop-shop-1-abcdefgh"), shares("shop-shard-1", "shop-node-7-bcdefghi"),
		deployment("shop-system", "web"),
	)
	every := fmt.Sprintf("Pod shop-system/%s, which shares the Lease shop-system/shop; Pod shop-system/shop-1, which shares the Lease shop-system/shop; "+
		"Pod shop-system/shop-2, which shares the Lease shop-system/shop", long)
	for _, c := range []struct{ name, selector, want string }{
		{"shop", "", every}, {"", "", every}, {"web", "", every}, {"", "app=shop", every},
		{"shop-system/shop-2", "", "Pod shop-system/shop-2"},
		{"shop-node-7-bcdefghi", "", "Pod shop-system/shop-2, which shares the Lease shop-system/shop"},
		{"shop-shard-0", "", "Pod shop-system/shop-1, which shares the Lease shop-system/shop"},
	} {
		f, err := newFinder(server.Config, "default")
		if err != nil {
			t.Fatal(err)
		}
		found, err := f.find(t.Context(), c.name, c.selector)
		var all []string
		for _, one := range found {
			all = append(all, one.String())
		}
		if got := strings.Join(all, "; "); err != nil || got != c.want {
			t.Errorf("--operator %q -l %q: %v, %s\nwant %s", c.name, c.selector, err, got, c.want)
		}
	}
}

// replicaOf returns the answer of one of two replicas.
func replicaOf(t *testing.T, name string, change func(*overview)) answer {
	t.Helper()
	var o overview
	if err := json.Unmarshal([]byte(read(t, "testdata/overview.json")), &o); err != nil {
		t.Fatal(err)
	}
	o.Leadership = nil
	o.Sharing = &sharing{
		Identity: "shop-" + name, Plan: "4/uid", Replicas: []replica{
			{Name: "shop-a", Address: "https://10.0.0.1:8443", Weight: 1, Plan: "4/uid"}, {Name: "shop-b", Weight: 2, Plan: "4/uid", Leaving: true}, {Name: "shop-c", Plan: "8/uid"},
		},
		Shards: []shard{{0, "shop-a", ""}, {1, "shop-b", "shop-a"}, {2, "", ""}, {3, "shop-x", ""}},
	}
	change(&o)
	return answer{&operator{name: "Pod ops/" + name, pod: "ops/" + name, member: "shop-" + name}, json.RawMessage(`{"program":"` + name + `"}`), o}
}

// Replicas that share objects are shown as one program: sums, what each says that is wrong, and who
// holds which shards.
func TestMerged_IsGolden(t *testing.T) {
	answers := []answer{
		replicaOf(t, "a", func(o *overview) {
			o.Sharing.Waits, o.Sharing.Plan = "the others divide into 4/uid", "8/uid" // another one is in effect
			o.Informers[0].Form, o.Informers[0].Dropped = "wire", 7
		}),
		replicaOf(t, "b", func(o *overview) {
			o.Since = o.Since.Add(-time.Hour)
			o.Problems = o.Problems[:1]
			o.Controllers[0].LastEnded, o.Controllers[0].MeanSeconds = o.Now, 1
			o.Controllers[0].Sources[1].Synced = true
			o.Informers[0].Form, o.Informers[0].Dropped = "wire", 70
		}),
	}
	c := clock{now: now, zone: time.UTC}
	golden(t, "replicas.txt", status(merged(answers), c, false))
	golden(t, "replicas-wide.txt", status(merged(answers), c, true))
	golden(t, "replicas-informers.txt", informers(merged(answers), true, c))
	raw, err := encoded(rawOf(answers, "overview", func(a answer) json.RawMessage { return a.raw }), "json")
	if err != nil || !strings.Contains(raw, `"pod": "ops/b"`) || !strings.Contains(raw, `"program": "b"`) {
		t.Errorf("the JSON is %s, %v; want the answer of each Pod", raw, err)
	}
}

// A key that several replicas know is there once, and the order and the limit are those of all.
func TestKeysOfAll_AreMerged(t *testing.T) {
	var answers []answer
	for _, rows := range []string{
		`{"key":"a","state":"idle","ended":"2026-03-01T11:00:00Z"},{"key":"b","state":"ready","ended":"2026-03-01T10:00:00Z","attempts":3},{"key":"d","state":"idle","ageSeconds":5,"ended":"2026-03-01T07:00:00Z"}`,
		`{"key":"a","state":"idle","ended":"2026-03-01T12:00:00Z","runs":2},{"key":"b","state":"idle","ended":"2026-03-01T11:30:00Z"},{"key":"c","state":"idle","ended":"2026-03-01T09:00:00Z"}`,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"version":"v1","controller":"order","known":3,"matched":3,"keys":[%s]}`, rows)
		}))
		t.Cleanup(server.Close)
		answers = append(answers, answer{operator: newOperator("x", server.Listener.Addr().String(), nil, nil)})
	}
	for _, c := range []struct {
		sort  string
		limit int
		want  string
	}{
		{"", 0, "a b c d"}, {"key", 3, "a b c"}, {"failures", 0, "b a c d"}, {"age", 0, "d a b c"},
	} {
		page, err := keysOfAll(t.Context(), answers, "order", query{sort: c.sort, limit: c.limit})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, raw := range page.Keys {
			var row keyRow
			if err := json.Unmarshal(raw, &row); err != nil {
				t.Fatal(err)
			}
			got = append(got, row.Key)
			if row.Key == "a" && row.Runs != 2 || row.Key == "b" && row.State != "ready" {
				t.Errorf("the key is %+v, want the last run, or that of the queue", row)
			}
		}
		if strings.Join(got, " ") != c.want || page.Matched != 6 || (page.Next > 0) != (c.limit > 0) {
			t.Errorf("by %q, at most %d: %q of %d, next %d; want %s", c.sort, c.limit, got, page.Matched, page.Next, c.want)
		}
	}
}

// startReplica runs one of the replicas of an operator, which visits ConfigMaps, in a Pod.
func startReplica(t *testing.T, server *simtest.Server, name string, by manager.ShardBy) string {
	t.Helper()
	mgr, err := manager.New(manager.Options{
		Config: server.Config, HealthAddress: "0", MetricsAddress: "127.0.0.1:0", MetricsServing: manager.Serving{Actions: true},
		Sharding:       &manager.Sharding{Shards: 16, By: by},
		LeaderElection: &manager.LeaderElection{ID: "shop", Namespace: "shop-system", LeaseDuration: 5 * time.Second, Identity: name},
	})
	if err != nil {
		t.Fatal(err)
	}
	visit := func(context.Context, *corev1.ConfigMap) (reconcile.Result, error) { return reconcile.Result{}, nil }
	if err := mgr.Add(reconcile.For(caches.For[*corev1.ConfigMap](mgr.Informers()), visit, reconcile.Options{Name: "visit"})); err != nil {
		t.Fatal(err)
	}
	return runManager(t, mgr)
}

// The whole way with two replicas: status is that of both, a key is asked for and run at the
// replica that holds its shard, and what is paused is so on both.
func TestCluster_KeysAreAskedForWhereTheyAre_M32(t *testing.T) {
	for _, by := range []manager.ShardBy{manager.UID, manager.Namespace} {
		t.Run(string(by), func(t *testing.T) {
			t.Parallel()
			var objects []runtime.Object
			ports := map[string]string{"shop-1": "8441", "shop-2": "8442"}
			for name, port := range ports {
				objects = append(objects, pod("shop-system", name, func(p *corev1.Pod) {
					p.Spec.Containers[0].Args = []string{"--metrics-bind-address=127.0.0.1:" + port}
				}))
			}
			for i := range 12 {
				objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("team-%d-web", i*7), Name: "web"}})
			}
			server := simtest.New(t, nil, objects...)
			k := &kubelet{t: t, ports: map[string]string{}, websocket: true}
			for _, name := range []string{"shop-1", "shop-2"} {
				k.ports[ports[name]] = startReplica(t, server, name, by)
			}
			file := kubeconfig(t, server, k.start(), "")
			flyball := func(args string) (out, problems string, err error) {
				return commandAt(t.Context(), append(strings.Fields(args), "--kubeconfig", file, "--operator", "shop")...)
			}
			var out, problems string
			eventually(t, func() bool {
				var err error
				out, problems, err = flyball("status")
				return err == nil && strings.Count(out, "active   8 ") == 2 && strings.Contains(out, " 12           0")
			})
			for _, want := range []string{"Nothing is wrong now.", ", 2 replicas share 16 shards by " + string(by)} {
				if !strings.Contains(out, want) {
					t.Errorf("the status is\n%s\nwant %q", out, want)
				}
			}
			const pods = "Pod shop-system/shop-1, which shares the Lease shop-system/shop, port 8441\nPod shop-system/shop-2, which shares the Lease shop-system/shop, port 8442\n"
			if problems != pods {
				t.Errorf("it says %q, want %q", problems, pods)
			}
			out, _, err := flyball("keys visit --sort key")
			if err != nil || strings.Count(out, "/web ") != 12 {
				t.Errorf("%v, and the keys are\n%s\nwant all 12", err, out)
			}
			asked := map[string]bool{}
			for i := range 12 {
				key := fmt.Sprintf("team-%d-web/web", i*7)
				out, problems, err := flyball("why " + key)
				told, holder, _ := strings.Cut(strings.TrimPrefix(problems, pods), ", which Pod ")
				asked[strings.TrimSpace(holder)] = true
				if err != nil || !strings.HasPrefix(out, key+" of controller visit is idle. It has run once") || !strings.HasPrefix(told, key+" of controller visit is in shard ") {
					t.Errorf("why %s: %v\n%s\n%s\nwant its run, and which Pod holds its shard", key, err, out, problems)
				}
				if out, _, err := flyball("run visit " + key); err != nil || !strings.Contains(out, "runs now") {
					t.Errorf("run %s: %v\n%s", key, err, out)
				}
			}
			if len(asked) != 2 || !asked["shop-system/shop-1 holds"] {
				t.Errorf("the Pods that are asked are %v, want both", asked)
			}
			if out, _, err := flyball("pause visit"); err != nil || !strings.Contains(out, "is paused") {
				t.Errorf("pause: %v\n%s", err, out)
			}
			eventually(t, func() bool {
				out, _, err = flyball("status")
				return err == nil && strings.Contains(out, "it is paused")
			})
			if _, _, err := flyball("why team-0-web/gone"); err == nil || !strings.Contains(err.Error(), "do you mean") && !strings.Contains(err.Error(), "no controller has the key") {
				t.Errorf("why of a key that does not exist: %v", err)
			}
			if out, _, err := flyball("informers -o json"); err != nil || !slices.Equal([]int{strings.Count(out, `"pod":`), strings.Count(out, `"division": "shards `)}, []int{2, 2}) {
				t.Errorf("informers: %v\n%s\nwant those of both Pods", err, out)
			}
		})
	}
}
