// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simtest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/ownership"
	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

// The tests of this file measure what docs/scale.md states, in virtual time. SCALE=1 measures all
// of it, which takes minutes; without it each test is a small one. SCALE=real measures throughput
// and moves by the clock of the machine, SCALE=million has ten times as many objects in real informers.
var scale, wall = os.Getenv("SCALE") != "", os.Getenv("SCALE") == "real"

// timed runs f in virtual time, unless SCALE is real.
func timed(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	if wall {
		f(t)
		return
	}
	synctest.Test(t, f)
}

var configMaps = schema.GroupResource{Resource: "configmaps"}

func sized[T any](small, full T) T {
	if scale {
		return full
	}
	return small
}

// scaleServer returns a server behind a network with a delay in each direction. wire: it does not
// select by shards.
func scaleServer(t *testing.T, delay time.Duration, wire bool, namespaces ...string) *simtest.Server {
	s := &simtest.Server{Server: simulate.New(simulate.Options{
		Namespaces: namespaces, IgnoreShardSelectors: wire,
	})}
	network := simulate.NewNetwork()
	network.Delay(delay)
	transport := network.Transport()
	transport.MaxIdleConnsPerHost = 4096 // all replicas share it
	s.Config = &rest.Config{Host: "http://simulated", Transport: transport, QPS: -1}
	ctx, end := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.Run(ctx, network.Listener()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		end()
		serving.Wait()
		transport.CloseIdleConnections()
	})
	return s
}

// putMaps stores ConfigMaps, of which each namespace has as many as another, give or take one.
func putMaps(t *testing.T, s *simtest.Server, n int, namespaces []string) {
	t.Helper()
	for i := range n {
		if _, err := s.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespaces[i%len(namespaces)], Name: fmt.Sprint("c-", i),
		}}); err != nil {
			t.Fatal(err)
		}
	}
}

func numbered(format string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf(format, i)
	}
	return out
}

// sharer is a replica of an operator.
type sharer struct {
	*manager.Manager
	stop context.CancelFunc
	done chan struct{}
}

// startOperator runs one replica of an operator of ConfigMaps.
func startOperator(t *testing.T, s *simtest.Server, number, count int, by manager.ShardBy,
	f func(context.Context, *manager.Manager, *corev1.ConfigMap) error) *sharer {
	t.Helper()
	return startReplica(t, manager.Options{
		Config: s.Config, Logger: logr.FromSlogHandler(slog.DiscardHandler), Sharding: &manager.Sharding{Shards: count, By: by},
	}, number, f)
}

// startReplica runs one replica of an operator of ConfigMaps. It sets the rest of its options.
func startReplica(t *testing.T, opts manager.Options, number int,
	f func(context.Context, *manager.Manager, *corev1.ConfigMap) error) *sharer {
	t.Helper()
	opts.MetricsAddress, opts.HealthAddress = "0", "0"
	opts.LeaderElection = &manager.LeaderElection{
		ID: "op", Namespace: "default", Identity: fmt.Sprint("replica-", number),
	}
	mgr, err := manager.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	c := reconcile.For(informer.For[*corev1.ConfigMap](mgr.Informers()),
		func(ctx context.Context, cm *corev1.ConfigMap) (reconcile.Result, error) {
			return reconcile.Result{}, f(ctx, mgr, cm)
		}, reconcile.Options{})
	if err := mgr.Add(c); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &sharer{mgr, stop, make(chan struct{})}
	go func() {
		defer close(r.done)
		if err := mgr.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	return r
}

// TestScale_Throughput measures keys per second of replicas whose reconciles each wait 20 ms for
// the server. Each changes its object, so that all keys are always due.
func TestScale_Throughput(t *testing.T) {
	for _, by := range []manager.ShardBy{manager.UID, manager.Namespace} {
		for _, wire := range sized([]bool{false}, []bool{false, true}) {
			one := 0.0
			for _, replicas := range sized([]int{1, 4}, []int{1, 2, 4, 8}) {
				what := fmt.Sprintf("by %s, %s, %d replicas", by, form(wire), replicas)
				t.Run(what, func(t *testing.T) {
					timed(t, func(t *testing.T) {
						rate, share := throughput(t, by, wire, replicas)
						if replicas == 1 {
							one = rate
						}
						t.Logf("%s: %.0f keys/s, %.2f times one; objects of each %v",
							what, rate, rate/one, share)
						if replicas == 4 && !wall && rate < 3.6*one {
							t.Errorf("4 replicas reconcile %.2f times what one does, want 3.6", rate/one)
						}
					})
				})
			}
		}
	}
}

func form(wire bool) string {
	if wire {
		return "wire"
	}
	return "server"
}

func throughput(t *testing.T, by manager.ShardBy, wire bool, replicas int) (rate float64, share []int) {
	spaces := numbered("n-%d-team", 200)
	server := scaleServer(t, 10*time.Millisecond, wire, spaces...)
	putMaps(t, server, sized(200, 2000), spaces)
	var begun atomic.Bool
	var ran atomic.Int64
	change := func(ctx context.Context, mgr *manager.Manager, cm *corev1.ConfigMap) error {
		if !begun.Load() {
			return nil
		}
		next := kube.Copy(cm)
		next.Labels = map[string]string{"seen": cm.ResourceVersion}
		_, err := mgr.Client().PatchChanges(ctx, cm, next)
		if err == nil {
			ran.Add(1)
		}
		return err
	}
	var all []*sharer
	for i := range replicas {
		all = append(all, startOperator(t, server, i, 32, by, change))
	}
	defer stopAll(all)
	time.Sleep(20 * time.Second)
	begun.Store(true)
	for _, o := range server.Objects(configMaps) {
		key := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
		if err := server.Change(configMaps, key, func(o metav1.Object) {
			o.SetLabels(map[string]string{"seen": "first"})
		}); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(100 * time.Millisecond)
	window, before := sized(200*time.Millisecond, 5*time.Second), ran.Load()
	time.Sleep(window)
	rate = float64(ran.Load()-before) / window.Seconds()
	for _, r := range all {
		n := 0
		for range informer.For[*corev1.ConfigMap](r.Informers()).Lister().All() {
			n++
		}
		share = append(share, n)
	}
	return rate, share
}

func stopAll(all []*sharer) {
	for _, r := range all {
		r.stop()
	}
	for _, r := range all {
		<-r.done
	}
}

// TestScale_PlannedMoves measures moves of shards that nothing reconciles, from the beginning of
// the drain to the hold, while replicas join and leave.
func TestScale_PlannedMoves(t *testing.T) {
	for _, wire := range []bool{false, true} {
		t.Run(form(wire), func(t *testing.T) {
			timed(t, func(t *testing.T) {
				const count = 32
				objects, changes := sized(10, 1000), sized(2, 128)
				if wall {
					changes = 16
				}
				server := scaleServer(t, time.Millisecond, wire, "n")
				putMaps(t, server, count*objects, []string{"n"})
				m := &moves{begun: map[int]drain{}}
				number := 0
				start := func() {
					m.all = append(m.all, startOperator(t, server, number, count, manager.UID,
						func(context.Context, *manager.Manager, *corev1.ConfigMap) error { return nil }))
					number++
				}
				defer func() { stopAll(m.all) }()
				start()
				start()
				time.Sleep(20 * time.Second)
				m.settle(t, count, time.Minute)
				m.took = nil
				for i := range changes {
					if i%4 < 2 {
						start()
					} else {
						leaving := m.all[0]
						m.all, m.left = m.all[1:], append(m.left, leaving)
						leaving.stop()
					}
					m.settle(t, count, time.Minute)
				}
				slices.Sort(m.took)
				p50, p99 := quantile(m.took, 0.5), quantile(m.took, 0.99)
				t.Logf("%d planned moves of shards of %d objects, form %s: p50 %v, p99 %v, worst %v",
					len(m.took), objects, form(wire), p50, p99, quantile(m.took, 1))
				if len(m.took) == 0 || !wall && p99 >= 500*time.Millisecond {
					t.Errorf("p99 of %d planned moves is %v, want less than 500 ms", len(m.took), p99)
				}
			})
		})
	}
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// moves notes how long shards move.
type moves struct {
	all, left []*sharer // that take part, and that leave
	begun     map[int]drain
	took      []time.Duration
}

type drain struct {
	at time.Time
	by *sharer
}

// settle looks each millisecond until the replicas hold all shards, evenly.
func (m *moves) settle(t *testing.T, count int, within time.Duration) {
	t.Helper()
	for end := time.Now().Add(within); ; time.Sleep(time.Millisecond) {
		if m.look(count) && len(m.begun) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the shards are not balanced within %v; %d move", within, len(m.begun))
		}
	}
	for _, r := range m.left {
		<-r.done
	}
	m.left = nil
	time.Sleep(time.Second)
}

// look reports whether the replicas hold all shards evenly.
func (m *moves) look(count int) bool {
	least, most, total := count, 0, 0
	for _, r := range slices.Concat(m.all, m.left) {
		held := 0
		for _, s := range r.Snapshot().Sharing.Shards {
			begun, moving := m.begun[s.Shard]
			switch {
			case s.Stage == "draining" && !moving:
				m.begun[s.Shard] = drain{time.Now(), r}
			case s.Stage == "held":
				held++
				if moving && begun.by != r {
					m.took = append(m.took, time.Since(begun.at))
					delete(m.begun, s.Shard)
				}
			}
		}
		total += held
		if slices.Contains(m.all, r) {
			least, most = min(least, held), max(most, held)
		}
	}
	return total == count && most-least <= 1
}

// shape is a number of members and one of shards.
type shape struct{ members, shards int }

// TestScale_RequestsAtRest counts what members send for their Leases when nothing changes.
func TestScale_RequestsAtRest(t *testing.T) {
	shapes := []shape{{1, 32}, {2, 32}, {4, 32}, {8, 32}, {16, 32}, {50, 32}, {8, 64}, {50, 512}}
	for _, at := range sized([]shape{{4, 32}}, shapes) {
		t.Run(fmt.Sprintf("%d-%d", at.members, at.shards), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newFleet(t, at.shards)
				defer r.end()
				for range at.members {
					r.start()
				}
				r.balance(10 * time.Minute)
				time.Sleep(time.Minute)
				begun := time.Now()
				length := sized(2*time.Minute, 10*time.Minute)
				if at.shards > 64 {
					length = 2 * time.Minute
				}
				time.Sleep(length)
				counts := r.requests(begun)
				writes := 0
				for _, verb := range []string{"create", "update", "patch", "delete"} {
					writes += counts[verb]
				}
				bound := (float64(at.members) + float64(at.shards)/8) / 15
				rate := float64(writes) / length.Seconds()
				t.Logf("%d members, %d shards: %.3f writes/s, bound %.3f; in %v %v",
					at.members, at.shards, rate, bound, length, counts)
				// Each may renew once more in a window than its length says.
				if most := bound*length.Seconds() + float64(at.members); float64(writes) > most && at.shards >= 4*at.members {
					t.Errorf("%d writes, want at most %.0f", writes, most)
				}
			})
		})
	}
}

// requests counts the requests since a time, by verb.
func (r *fleet) requests(since time.Time) map[string]int {
	counts := map[string]int{}
	for _, one := range r.server.Served() {
		if !one.At.Before(since) {
			counts[one.Verb]++
		}
	}
	return counts
}

// live returns how many shards each live member holds.
func (r *fleet) live() (held []int) {
	for _, one := range r.all {
		select {
		case <-one.done:
		default:
			held = append(held, len(one.Guard().Held()))
		}
	}
	return held
}

// balance waits until all live members hold all shards evenly, and returns how long that took.
func (r *fleet) balance(within time.Duration) time.Duration {
	r.t.Helper()
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		held, total := r.live(), 0
		for _, n := range held {
			total += n
		}
		if total == r.count && slices.Max(held)-slices.Min(held) <= 1 {
			return time.Since(begun)
		}
		if time.Since(begun) > within {
			r.t.Fatalf("after %v the live members hold %v of %d shards", within, held, r.count)
		}
	}
}

// owners returns which member holds each shard.
func (r *fleet) owners() map[int]int {
	out := map[int]int{}
	for i, one := range r.all {
		for _, s := range one.Guard().Held() {
			out[s] = i
		}
	}
	return out
}

// moved returns how many shards have another owner after f, and how long that took.
func (r *fleet) moved(f func()) (n int, took time.Duration) {
	before := r.owners()
	f()
	took = r.balance(5 * time.Minute)
	time.Sleep(5 * time.Second)
	for shard, owner := range r.owners() {
		if before[shard] != owner {
			n++
		}
	}
	return n, took
}

// TestScale_MovesPerChange counts the shards that move when one member comes, goes or ends.
func TestScale_MovesPerChange(t *testing.T) {
	for _, at := range sized([]shape{{4, 32}}, []shape{{4, 32}, {8, 64}, {50, 512}}) {
		t.Run(fmt.Sprintf("%d-%d", at.members, at.shards), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { measureChanges(t, newFleet(t, at.shards), at) })
		})
	}
}

// startCut starts a member whose network can be cut.
func (r *fleet) startCut() (m *member, l *line) {
	l = &line{next: r.server.Config.Transport}
	cfg := rest.CopyConfig(r.server.Config)
	cfg.Transport = l
	return r.startWith(cfg), l
}

func measureChanges(t *testing.T, r *fleet, at shape) {
	defer r.end()
	begun := time.Now()
	for range at.members - 1 {
		r.start()
	}
	first, network := r.startCut()
	took := r.balance(5 * time.Minute)
	t.Logf("%d members, %d shards: balanced from nothing after %v", at.members, at.shards, took)
	if took > 16*time.Second {
		t.Errorf("balanced after %v, want a second after the lease duration for which a plan is new", took)
	}
	report := func(what string, members int, f func()) {
		asked := time.Now()
		n, took := r.moved(f)
		most := at.shards/members + 1
		t.Logf("%d members, %d shards, %s: %d moves (at most %d), balanced after %v, requests until 5 s later %v",
			at.members, at.shards, what, n, most, took, r.requests(asked))
		if n > most {
			t.Errorf("%s moved %d shards, want at most %d", what, n, most)
		}
	}
	for range sized(1, 3) {
		before := len(r.server.Served())
		report("join", at.members+1, func() { r.start() })
		created := 0
		for _, one := range r.server.Served()[before:] {
			if one.Verb == "create" && strings.HasSuffix(one.Path, "/leases") {
				created++
			}
		}
		if created != 1 {
			t.Errorf("a join sent %d requests to create Leases, want that of the member alone", created)
		}
		report("leave", at.members+1, func() {
			last := r.all[len(r.all)-1]
			last.stop(nil)
			<-last.done
		})
	}
	report("crash", at.members, func() {
		network.cut.Store(true)
		first.stop(ownership.ErrAbandoned)
		<-first.done
	})
	network.cut.Store(false)
	t.Logf("virtual time: %v", time.Since(begun))
}

// startInformed starts a member whose informers hold the ConfigMaps of its shards.
func (r *fleet) startInformed() (m *member, f *informer.SharedInformerFactory, l *line) {
	r.t.Helper()
	l = &line{next: r.server.Config.Transport}
	cfg := rest.CopyConfig(r.server.Config)
	cfg.Transport = l
	f, err := informer.NewSharedInformerFactory(cfg, clientscheme.Scheme, informer.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	informer.For[*corev1.ConfigMap](f)
	if err := f.Divide(r.count, func(schema.GroupKind) string { return string(shards.UID) }); err != nil {
		r.t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	m = r.startWith(cfg, func(o *ownership.Options) { o.Informers = f })
	r.work.Go(func() {
		<-m.done
		end()
	})
	r.work.Go(func() {
		if err := f.Run(ctx); err != nil {
			r.t.Error(err)
		}
	})
	return m, f, l
}

// TestScale_Informed lets 50 members hold 100,000 objects, or 1,000,000, in 512 shards with real informers.
func TestScale_Informed(t *testing.T) {
	at := sized(shape{4, 32}, shape{50, 512})
	objects := sized(320, 100_000)
	if os.Getenv("SCALE") == "million" {
		objects = 1_000_000
	}
	synctest.Test(t, func(t *testing.T) {
		r := &fleet{t: t, server: scaleServer(t, time.Millisecond, false, "n"), count: at.shards}
		defer r.end()
		putMaps(t, r.server, objects, []string{"n"})
		var held []*informer.SharedInformerFactory
		var networks []*line
		start := func() {
			_, f, l := r.startInformed()
			held, networks = append(held, f), append(networks, l)
		}
		for range at.members {
			start()
		}
		took := r.balance(10 * time.Minute)
		time.Sleep(5 * time.Second)
		var each []int
		for _, f := range held {
			n := 0
			for range informer.For[*corev1.ConfigMap](f).Lister().All() {
				n++
			}
			each = append(each, n)
		}
		total := 0
		for _, n := range each {
			total += n
		}
		t.Logf("%d members, %d shards, %d objects: balanced after %v; of each %d to %d objects, %d in all; %d watches of them",
			at.members, at.shards, objects, took, slices.Min(each), slices.Max(each), total,
			r.server.Watches(configMaps))
		if total != objects {
			t.Errorf("the informers hold %d objects, want each of %d once", total, objects)
		}
		for _, what := range []string{"join", "crash"} {
			asked := time.Now()
			n, took := r.moved(func() {
				if what == "join" {
					start()
					return
				}
				networks[0].cut.Store(true)
				r.all[0].stop(ownership.ErrAbandoned)
				<-r.all[0].done
			})
			t.Logf("%s: %d moves, balanced after %v; requests until 5 s later %v", what, n, took, r.requests(asked))
		}
		networks[0].cut.Store(false)
	})
}

// TestScale_Heap measures the heap of an informer that holds a quarter of the shards, as a part of one
// that holds all of them.
func TestScale_Heap(t *testing.T) {
	for _, wire := range []bool{false, true} {
		t.Run(form(wire), func(t *testing.T) {
			server := scaleServer(t, 0, wire, "n")
			objects := sized(500, 20_000)
			for i := range objects {
				text := map[string]string{"text": strings.Repeat(fmt.Sprint(i, " "), 1000/len(fmt.Sprint(i, " ")))}
				if _, err := server.Put(&corev1.ConfigMap{Data: text, ObjectMeta: metav1.ObjectMeta{
					Namespace: "n", Name: fmt.Sprint("c-", i),
				}}); err != nil {
					t.Fatal(err)
				}
			}
			heapOf(t, server, 32) // caches of the server
			whole, part := heapOf(t, server, 32), heapOf(t, server, 8)
			t.Logf("%d objects, form %s: 32 of 32 shards %.1f MB, 8 of them %.1f MB, %.3f of that",
				objects, form(wire), whole/1e6, part/1e6, part/whole)
		})
	}
}

// heapOf returns what a factory takes whose informer holds some of 32 shards.
func heapOf(t *testing.T, server *simtest.Server, held int) float64 {
	t.Helper()
	heap := func() float64 {
		var is runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&is)
		return float64(is.HeapAlloc)
	}
	before := heap()
	f, err := informer.NewSharedInformerFactory(server.Config, clientscheme.Scheme, informer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	informer.For[*corev1.ConfigMap](f)
	some := make([]int, held)
	for i := range some {
		some[i] = i
	}
	err = errors.Join(f.Divide(32, func(schema.GroupKind) string { return string(shards.UID) }), f.HoldShards(some...))
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := f.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	defer running.Wait()
	defer end()
	if _, err := f.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	if err := f.AwaitShards(ctx, some...); err != nil {
		t.Fatal(err)
	}
	taken := heap() - before
	runtime.KeepAlive(f)
	return taken
}

// TestScale_Balance shows how evenly shards and replicas share keys.
func TestScale_Balance(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	uid := func(int) string {
		a, b := draw.Uint64(), draw.Uint64()
		return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>52, b&(1<<48-1))
	}
	named := func(format string) func(int) string {
		return func(i int) string { return fmt.Sprintf(format, i) }
	}
	for _, c := range []struct {
		what   string
		keys   int
		value  func(int) string
		shards []int
	}{
		{"uid", 1_000, uid, []int{32}},
		{"uid", 100_000, uid, []int{32, 512}},
		{"uid", sized(200_000, 1_000_000), uid, []int{32, 512}},
		{"namespace tenant-%d", 100, named("tenant-%d"), []int{32}},
		{"namespace tenant-%d", 1_000, named("tenant-%d"), []int{32, 512}},
		{"namespace tenant-%d", 10_000, named("tenant-%d"), []int{32, 512}},
		{"namespace tenant-%04d", 10_000, named("tenant-%04d"), []int{32, 512}},
		{"namespace %d-tenant", 100, named("%d-tenant"), []int{32}},
		{"namespace %d-tenant", 1_000, named("%d-tenant"), []int{32, 512}},
		{"namespace %d-tenant", 10_000, named("%d-tenant"), []int{32, 512}},
		{"namespace t-%d-production", 1_000, named("t-%d-production"), []int{32, 512}},
		{"namespace of 8 random letters at the end", 1_000, func(int) string { return "tenant-" + uid(0)[:8] }, []int{32, 512}},
	} {
		for _, count := range c.shards {
			members := map[int]int{32: 4, 512: 50}[count]
			per, empty, each := balanceOf(c.keys, c.value, count, members)
			t.Logf("%s, %d keys, %d shards: per shard %d to %d, %d empty; per replica of %d %d to %d, most %.2f of the mean",
				c.what, c.keys, count, slices.Min(per), slices.Max(per), empty, members,
				slices.Min(each), slices.Max(each), float64(slices.Max(each)*members)/float64(c.keys))
			if most := float64(slices.Max(each) * members); strings.HasPrefix(c.what, "uid") && c.keys/count > 1000 &&
				most > 1.1*float64(c.keys) {
				t.Errorf("%s: the largest part is %.2f of the mean", c.what, most/float64(c.keys))
			}
		}
	}
}

// balanceOf returns the keys of each shard and of each member, and how many shards have none.
func balanceOf(keys int, value func(int) string, count, members int) (per []int, empty int, each []int) {
	per, each = make([]int, count), make([]int, members)
	for i := range keys {
		per[shards.Of(value(i), count)]++
	}
	var all []ownership.Member
	for i := range members {
		all = append(all, ownership.Member{Name: fmt.Sprintf("op-pod-%d", i), Weight: 1})
	}
	for shard, owner := range ownership.Assign(all, count, nil) {
		i := slices.IndexFunc(all, func(m ownership.Member) bool { return m.Name == owner })
		each[i] += per[shard]
		if per[shard] == 0 {
			empty++
		}
	}
	return per, empty, each
}
