// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simtest_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/ownership"
)

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// line is the network of one member.
type line struct {
	next  http.RoundTripper
	cut   atomic.Bool  // nothing passes
	late  atomic.Int64 // answers come so much later
	blind atomic.Bool  // watches show nothing
}

var errCut = errors.New("the network is cut")

func (l *line) RoundTrip(req *http.Request) (*http.Response, error) {
	if l.cut.Load() {
		return nil, errCut
	}
	if l.blind.Load() && req.URL.Query().Get("watch") != "" {
		return nil, errCut
	}
	resp, err := l.next.RoundTrip(req)
	if d := l.late.Load(); d > 0 && req.Method != http.MethodGet {
		<-time.After(time.Duration(d))
	}
	if err == nil && l.cut.Load() {
		_ = resp.Body.Close()
		return nil, errCut
	}
	return resp, err
}

// TestOwnership_NoShardIsOpenTwice_M31 lets members join, leave, end, lose their network, get late answers and no events,
// and people delete and edit Leases. Their clocks are wrong, and some use an API server that lags behind the store or
// loses it. At no moment two members may write for one shard; when all is quiet each shard is held.
func TestOwnership_NoShardIsOpenTwice_M31(t *testing.T) {
	seeds := 15
	if n, err := strconv.Atoi(os.Getenv("SEEDS")); err == nil {
		seeds = n
	}
	first := uint64(1)
	if n, err := strconv.ParseUint(os.Getenv("SEED"), 0, 64); err == nil {
		first, seeds = n, 1
	}
	for seed := first; seed < first+uint64(seeds); seed++ {
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { runSeed(t, seed) }) }) {
			return
		}
	}
}

// A member with a lease duration of a minute that is cut off trusts itself for longer than one with 15 s
// lasts. Shards whose Leases were deleted are not taken from it before.
func TestOwnership_WaitsForTheLongestLeaseDuration_M31(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFleet(t, 4)
		l := &line{next: r.server.Config.Transport}
		cfg := rest.CopyConfig(r.server.Config)
		cfg.Transport = l
		r.startWith(cfg, func(o *ownership.Options) { o.LeaseDuration = time.Minute })
		time.Sleep(62 * time.Second)
		if got := r.held(); got[0] != 4 {
			t.Fatalf("%v shards are held, want 4", got)
		}
		l.cut.Store(true)
		r.server.CloseWatches(leases)
		r.start()
		time.Sleep(2 * time.Second)
		for s := range 4 {
			if err := r.server.Remove(leases, types.NamespacedName{Namespace: "default", Name: fmt.Sprint("op-shard-", s)}); err != nil {
				t.Fatal(err)
			}
		}
		r.watchFor(80 * time.Second)
		if got := r.held(); got[1] != 4 {
			t.Errorf("when the member that was cut off has ended %v shards are held, want 4 by the other", got)
		}
		l.cut.Store(false)
		r.end()
	})
}

func runSeed(t *testing.T, seed uint64) {
	draw, own := rand.New(rand.NewPCG(seed, 7)), rand.New(rand.NewPCG(seed, 8))
	r := newFleet(t, 6)
	lines := map[*member]*line{}
	start := func() *member {
		cfg, change := clocked(rest.CopyConfig(r.server.Config), time.Duration(own.IntN(3)-1)*time.Hour, seconds[own.IntN(3)])
		if own.IntN(3) == 0 {
			cfg.Transport = fronted{&r.second, cfg.Transport}
		}
		l := &line{next: cfg.Transport}
		cfg.Transport = l
		m := r.startWith(cfg, change)
		lines[m] = l
		return m
	}
	var live []*member
	for range 3 {
		live = append(live, start())
	}
	defer func() {
		r.second.set(false, false)
		for _, l := range lines {
			l.cut.Store(false)
			l.blind.Store(false)
			l.late.Store(0)
		}
		r.end()
	}()
	for range 40 {
		r.watchFor(time.Duration(draw.IntN(8000)) * time.Millisecond)
		if t.Failed() {
			return
		}
		r.disturb(draw, &live, lines, start)
	}
	r.second.set(false, false)
	for _, m := range live {
		lines[m].cut.Store(false)
		lines[m].blind.Store(false)
		lines[m].late.Store(0)
	}
	if len(live) == 0 {
		live = append(live, start())
	}
	const calm = 110 * time.Second
	r.watchFor(calm)
	total := 0
	for _, m := range live {
		total += len(m.Guard().Held())
	}
	if total != r.count {
		for _, m := range live {
			t.Logf("%+v", m.State())
		}
		t.Errorf("%v after the last fault %d of %d shards are held", calm, total, r.count)
	}
}

// watchFor lets time pass, and checks all the time that no shard is open twice.
func (r *fleet) watchFor(d time.Duration) {
	const step = 50 * time.Millisecond
	for end := time.Now().Add(d); time.Now().Before(end) && !r.t.Failed(); time.Sleep(step) {
		for s := range r.count {
			var open []*member
			for _, m := range r.all {
				if m.Guard().Open(s) {
					open = append(open, m)
				}
			}
			if len(open) > 1 {
				r.t.Errorf("shard %d is open in %s and %s", s, open[0].State().Identity, open[1].State().Identity)
			}
		}
	}
}

// disturb does one thing by chance.
func (r *fleet) disturb(draw *rand.Rand, live *[]*member, lines map[*member]*line, start func() *member) {
	one := func() (*member, int) {
		i := draw.IntN(len(*live))
		return (*live)[i], i
	}
	drop := func(i int) { *live = append((*live)[:i:i], (*live)[i+1:]...) }
	switch what := draw.IntN(12); {
	case len(*live) == 0 || what == 0 && len(*live) < 5:
		*live = append(*live, start())
	case what == 11: // the other API server lags behind, or loses the store, or is well again
		how := draw.IntN(3)
		r.second.set(how == 1, how == 2)
	case what == 1: // it leaves
		m, i := one()
		drop(i)
		m.stop(nil)
	case what == 2: // the process ends
		m, i := one()
		drop(i)
		lines[m].cut.Store(true)
		m.stop(ownership.ErrAbandoned)
	case what < 5:
		m, _ := one()
		lines[m].cut.Store(!lines[m].cut.Load())
	case what < 7:
		m, _ := one()
		lines[m].late.Store(int64(draw.IntN(4)) * int64(3*time.Second))
	case what < 8:
		m, _ := one()
		lines[m].blind.Store(!lines[m].blind.Load())
		r.server.CloseWatches(leases)
	case what == 10: // somebody deletes the Lease of a member
		m, _ := one()
		_ = r.server.Remove(leases, types.NamespacedName{Namespace: "default", Name: m.State().Identity})
	case what < 10:
		if all := r.server.Objects(leases); len(all) > 0 {
			victim := all[draw.IntN(len(all))]
			key := types.NamespacedName{Namespace: victim.GetNamespace(), Name: victim.GetName()}
			if draw.IntN(3) > 0 {
				_ = r.server.Remove(leases, key)
			} else {
				edit := []func(metav1.Object){
					func(o metav1.Object) { o.SetAnnotations(map[string]string{"edited": "by hand"}) },
					func(o metav1.Object) { o.SetLabels(nil) },
					func(o metav1.Object) {
						if l, ok := o.(*unstructured.Unstructured); ok {
							_ = unstructured.SetNestedField(l.Object, "bob", "spec", "holderIdentity")
						}
					},
				}
				_ = r.server.Change(leases, key, func(o metav1.Object) {
					labels, annotations := o.GetLabels(), o.GetAnnotations()
					edit[draw.IntN(len(edit))](o)
					if len(o.GetLabels()) == 0 && o.GetAnnotations()["flyball.dev/shards"] == "" {
						o.SetLabels(labels) // otherwise it could not be told from another program's
						o.SetAnnotations(annotations)
					}
				})
			}
		}
	}
}
