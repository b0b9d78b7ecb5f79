// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	leases "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/source"
)

var leasesResource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// stored is one write that the server has carried out.
type stored struct {
	client, verb, resource string
	at                     time.Time
}

// writeLog is a Tracer that notes the writes.
type writeLog struct {
	mu     sync.Mutex
	writes []stored
}

func (l *writeLog) Asked(simulate.Request)                   {}
func (l *writeLog) Stored(simulate.Change)                   {}
func (l *writeLog) Panicked(simulate.Request, any, []byte)   {}
func (l *writeLog) Answered(simulate.Request, int)           {}
func (l *writeLog) Sending(simulate.Request, simulate.Event) {}
func (l *writeLog) Answering(r simulate.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes = append(l.writes, stored{r.Client, r.Verb, r.Kind.Kind, time.Now()})
}

// of are the times of the writes of client to objects of a kind.
func (l *writeLog) of(client, kind string) (at []time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.writes {
		if w.client == client && w.resource == kind {
			at = append(at, w.at)
		}
	}
	return at
}

// election is a server and replicas of one program, in one bubble.
type election struct {
	*simulate.Server
	t       *testing.T
	log     *writeLog
	serving context.Context
	group   sync.WaitGroup
	lease   leases.LeaseInterface // as somebody else sees it
}

// elected runs test with a server that has some ConfigMaps.
func elected(t *testing.T, test func(t *testing.T, e *election)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		log := &writeLog{}
		e, end := newElection(t, log, log)
		defer end()
		test(t, e)
	})
}

// newElection starts the server. end stops it, and waits for all that runs.
func newElection(t *testing.T, tracer simulate.Tracer, log *writeLog) (e *election, end func()) {
	t.Helper()
	e = &election{Server: simulate.New(simulate.Options{Tracer: tracer, Namespaces: []string{"ns", "other"}}), t: t, log: log}
	var stop context.CancelFunc
	e.serving, stop = context.WithCancel(t.Context())
	client, err := leases.NewForConfig(e.config(e.connect("somebody")))
	e.must(err)
	e.lease = client.Leases("ns")
	for i := range 3 {
		_, err := e.Put(configMap(fmt.Sprintf("map-%d", i), ""))
		e.must(err)
	}
	return e, func() {
		stop()
		e.group.Wait()
	}
}

// connect is a network of client's own to the server.
func (e *election) connect(client string) *simulate.Network {
	n := simulate.NewNetwork()
	n.Pace(client, nil)
	e.group.Go(func() {
		if err := e.Run(e.serving, n.Listener()); err != nil {
			e.t.Errorf("serve %s: %v", client, err)
		}
	})
	return n
}

func (e *election) config(n *simulate.Network) *rest.Config {
	return &rest.Config{Host: "http://simulated", Transport: n.Transport()}
}

// replica is a manager with two controllers: one is of ConfigMaps, one ticks. With
// each tick it writes an object.
type replica struct {
	*manager.Manager
	e       *election
	name    string
	network *simulate.Network
	end     context.CancelFunc
	ended   chan error
	mu      struct {
		sync.Mutex
		saw   map[string]time.Time // first reconcile of each ConfigMap
		held  int                  // reconciles of ticks in flight
		cut   error                // why one of them was cut off
		error error                // of the last write
	}
	sim  simhook.Hooks // that its context brings; nil: none
	slow time.Duration // that a reconcile of a tick takes after its write
	deaf bool          // to the end of its context
}

func (e *election) replica(name string, change ...func(r *replica, opts *manager.Options)) *replica {
	e.t.Helper()
	r := &replica{e: e, name: name, network: e.connect(name), ended: make(chan error, 1)}
	r.mu.saw = map[string]time.Time{}
	opts := manager.Options{
		Config:         &rest.Config{Host: "http://simulated", Transport: r.network.Transport()},
		LeaderElection: &manager.LeaderElection{ID: "website", Namespace: "ns", Identity: name},
		Logger:         funcr.New(func(prefix, args string) { e.t.Log(time.Now().Format("04:05.000"), name, prefix, args) }, funcr.Options{}),
		HealthAddress:  "0", MetricsAddress: "0",
	}
	for _, c := range change {
		c(r, &opts)
	}
	var err error
	if r.Manager, err = manager.New(opts); err != nil {
		e.t.Fatal(err)
	}
	maps := informer.For[cmap](r.Informers(), informer.Scope{Namespaces: []string{"ns"}})
	sees := reconcile.New("sees", func(_ context.Context, key reconcile.Key) (reconcile.Result, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if _, known := r.mu.saw[key.Name]; !known {
			r.mu.saw[key.Name] = time.Now()
		}
		return reconcile.Result{}, nil
	}, reconcile.Options{})
	sees.Watch(source.Kind(maps, source.Self))
	ticks := reconcile.New("ticks", r.tick, reconcile.KeyedOptions[string]{Workers: 1})
	ticks.Watch(source.Ticker(100*time.Millisecond, func() iter.Seq[string] { return slices.Values([]string{"tick"}) }, source.TickerOptions{}))
	for _, c := range []manager.Runnable{sees, ticks} {
		if err := r.Add(c); err != nil {
			e.t.Fatal(err)
		}
	}
	var ctx context.Context
	ctx, r.end = context.WithCancel(e.t.Context())
	if r.sim != nil {
		ctx = simhook.With(ctx, r.sim)
	}
	e.group.Go(func() { r.ended <- r.Run(ctx) })
	return r
}

func (r *replica) tick(ctx context.Context, _ string) (reconcile.Result, error) {
	err := r.Client().Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", GenerateName: r.name + "-"}})
	r.mu.Lock()
	r.mu.held++
	r.mu.error = err
	r.mu.Unlock()
	if r.slow > 0 {
		end := ctx.Done()
		if r.deaf {
			end = nil
		}
		select {
		case <-time.After(r.slow):
		case <-end:
			r.mu.Lock()
			r.mu.cut = context.Cause(ctx)
			r.mu.Unlock()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.held--
	return reconcile.Result{}, err
}

func (r *replica) saw() map[string]time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.mu.saw)
}

func (r *replica) cut() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.cut
}

func (r *replica) lastError() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.error
}

func (r *replica) leads() bool { return r.Snapshot().Leadership.Leading }

// stop ends r as a signal does.
func (r *replica) stop() error {
	r.end()
	return <-r.ended
}

func (e *election) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}

// holder is whose name is in the Lease, without its random part.
func (e *election) holder() string {
	e.t.Helper()
	l, err := e.lease.Get(e.t.Context(), "website", metav1.GetOptions{})
	e.must(err)
	name, _, _ := strings.Cut(*l.Spec.HolderIdentity, "_")
	return name
}

// lateWrites are those of the first to ordinary objects after the other has taken
// the lease.
func (e *election) lateWrites(first, other string) (late []time.Duration) {
	taken := e.log.of(other, "Lease")
	if len(taken) == 0 {
		e.t.Fatalf("%s has never taken the lease", other)
	}
	for _, at := range e.log.of(first, "Secret") {
		if at.After(taken[0]) {
			late = append(late, at.Sub(taken[0]))
		}
	}
	return late
}

func TestManager_StandbyIsWarmAndTakesOverAtOnce_M5(t *testing.T) {
	elected(t, func(t *testing.T, e *election) {
		first := e.replica("first")
		pass(time.Second)
		second := e.replica("second")
		pass(time.Minute)
		if !first.leads() || second.leads() || e.holder() != "first" {
			t.Fatalf("first leads %v, second %v, holder %s", first.leads(), second.leads(), e.holder())
		}
		if got := second.saw(); len(got) > 0 {
			t.Errorf("a standby has reconciled %v", got)
		}
		for r, want := range map[*replica]string{first: "1", second: "0"} {
			if err := testutil.GatherAndCompare(r.Metrics(), strings.NewReader(`# HELP leader_election_master_status 1 if this process holds the lease of that name, 0 if it stands by.
# TYPE leader_election_master_status gauge
leader_election_master_status{name="website"} `+want+"\n"), "leader_election_master_status"); err != nil {
				t.Errorf("metrics of %s: %v", r.name, err)
			}
		}
		for _, c := range second.Snapshot().Controllers {
			if c.Name == "sees" && (!c.Synced || c.Queue.Ready != 3) {
				t.Errorf("controller of the standby: synced %v, %d keys ready, want true and 3", c.Synced, c.Queue.Ready)
			}
		}
		if n := len(e.log.of("second", "Secret")); n > 0 {
			t.Errorf("a standby has written %d objects", n)
		}
		select {
		case <-second.Elected():
			t.Error("Elected is closed on a standby")
		default:
		}
		e.must(first.stop())
		released := e.log.of("first", "Lease")
		pass(time.Second)
		<-second.Elected()
		for name, at := range second.saw() {
			if wait := at.Sub(released[len(released)-1]); wait > 100*time.Millisecond {
				t.Errorf("%s was reconciled %v after the release, want at once: it waits for nothing but the lease", name, wait)
			}
		}
		if got := len(second.saw()); got != 3 {
			t.Errorf("%d ConfigMaps were reconciled within a second, want 3", got)
		}
		e.must(second.stop())
		if got := e.holder(); got != "" {
			t.Errorf("the lease is held by %q after all have stopped", got)
		}
	})
}

func TestManager_LeaseIsGivenBackAfterTheGuardedWork_M2(t *testing.T) {
	elected(t, func(t *testing.T, e *election) {
		first := e.replica("first", func(r *replica, _ *manager.Options) { r.slow = 18 * time.Second })
		pass(time.Second)
		second := e.replica("second")
		pass(10 * time.Second) // a reconcile is in the middle
		begin := time.Now()
		e.must(first.stop())
		took := time.Since(begin)
		released := e.log.of("first", "Lease")
		at := released[len(released)-1].Sub(begin)
		if took < 7*time.Second || at < 7*time.Second {
			t.Errorf("the stop took %v and the lease was given back after %v, while a reconcile ran for 7s more", took, at)
		}
		renewals := 0
		for _, r := range released {
			if r.After(begin) {
				renewals++
			}
		}
		if renewals < 3 {
			t.Errorf("the lease was written %d times during the stop, want it renewed to the end and then given back", renewals)
		}
		if first.cut() != nil {
			t.Errorf("the reconcile was cut off: %v", first.cut())
		}
		pass(time.Second)
		if late := e.lateWrites("first", "second"); len(late) > 0 || !second.leads() {
			t.Errorf("second leads %v, late writes %v", second.leads(), late)
		}
		e.must(second.stop())
	})
}

func TestManager_LeaseIsKeptWhileGuardedWorkGoesOn_M2(t *testing.T) {
	elected(t, func(t *testing.T, e *election) {
		first := e.replica("first", func(r *replica, opts *manager.Options) {
			r.slow, r.deaf, opts.GracePeriod = time.Hour, true, 5*time.Second
		})
		pass(time.Second)
		second := e.replica("second")
		pass(5 * time.Second)
		if err := first.stop(); err == nil || !strings.Contains(err.Error(), `controller "ticks" (controllers)`) {
			t.Errorf("Run = %v, want the name of what did not end", err)
		}
		ended := time.Now()
		if got := e.holder(); got != "first" {
			t.Errorf("the lease is held by %q while what it guards goes on, want first until it expires", got)
		}
		pass(30 * time.Second)
		if wait := e.log.of("second", "Lease")[0].Sub(ended); wait < 12*time.Second || !second.leads() {
			t.Errorf("second leads %v, after %v, want when the lease's time is over", second.leads(), wait)
		}
		e.must(second.stop())
		pass(time.Hour) // the deaf one ends
	})
}

func TestManager_LeaderWithoutAServerWritesNothingLate_M3(t *testing.T) {
	elected(t, func(t *testing.T, e *election) {
		first := e.replica("first", func(r *replica, _ *manager.Options) { r.slow = 50 * time.Millisecond })
		pass(time.Second)
		second := e.replica("second")
		pass(time.Minute)

		first.network.Refuse(true)
		first.network.Cut()
		cut := time.Now()
		err := <-first.ended
		if !errors.Is(err, manager.ErrLeadershipLost) || !strings.Contains(err.Error(), "lease ns/website: it could not be renewed for 10s") {
			t.Errorf("Run = %v, want ErrLeadershipLost and why", err)
		}
		if took := time.Since(cut); took < 8*time.Second || took > 13*time.Second {
			t.Errorf("leadership was lost after %v, want the renew deadline", took)
		}
		first.network.Refuse(false)
		if err := first.Client().Create(t.Context(), configMap("late", "")); !errors.Is(err, manager.ErrNotLeading) {
			t.Errorf("a write after the end: %v, want ErrNotLeading", err)
		}
		pass(20 * time.Second)
		if late := e.lateWrites("first", "second"); len(late) > 0 || !second.leads() {
			t.Errorf("second leads %v, late writes %v", second.leads(), late)
		}
		e.must(second.stop())
	})
}

func TestManager_ShortOutageCostsNoLeadership(t *testing.T) {
	elected(t, func(t *testing.T, e *election) {
		first := e.replica("first")
		second := e.replica("second")
		pass(time.Minute)
		leader, other := first, second
		if second.leads() {
			leader, other = second, first
		}
		leader.network.Refuse(true)
		leader.network.Cut()
		pass(7 * time.Second)
		leader.network.Refuse(false)
		pass(time.Minute)
		if !leader.leads() || other.leads() || leader.lastError() != nil {
			t.Errorf("the leader leads %v, the other %v, last error %v: an outage below the deadline is waited out", leader.leads(), other.leads(), leader.lastError())
		}
		e.must(other.stop())
		e.must(leader.stop())
	})
}

// A reconcile that is under way when another takes the lease is ended at once, and
// the process with it; whatever in it still writes has no effect.
func TestManager_StolenLeaseEndsTheLeaderAtOnce_M3(t *testing.T) {
	elected(t, func(t *testing.T, e *election) {
		first := e.replica("first", func(r *replica, _ *manager.Options) { r.slow = time.Minute })
		pass(time.Second)
		second := e.replica("second")
		pass(4 * time.Second)
		var refused error
		e.group.Go(func() { // beside all controllers, to the end of the test
			for tick := time.NewTicker(10 * time.Millisecond); e.serving.Err() == nil; <-tick.C {
				refused = first.Client().Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", GenerateName: "first-"}})
			}
		})
		pass(95 * time.Millisecond) // between two writes
		l, err := e.lease.Get(t.Context(), "website", metav1.GetOptions{})
		e.must(err)
		thief := "thief"
		l.Spec.HolderIdentity = &thief
		_, err = e.lease.Update(t.Context(), l, metav1.UpdateOptions{})
		e.must(err)
		stolen := time.Now()
		if err := <-first.ended; !errors.Is(err, manager.ErrLeadershipLost) || !strings.Contains(err.Error(), `"thief" has taken the lease`) {
			t.Errorf("Run = %v, want ErrLeadershipLost and who has it", err)
		}
		if took := time.Since(stolen); took > time.Second {
			t.Errorf("it ended after %v, want at once", took)
		}
		if !errors.Is(first.cut(), reconcile.ErrStopped) {
			t.Errorf("the reconcile in flight was cut off by %v, want at once", first.cut())
		}
		if got := e.holder(); got != "thief" {
			t.Errorf("the lease is held by %q, want it left to the thief", got)
		}
		pass(time.Minute)
		wrote := e.log.of("first", "Secret")
		if n := len(wrote); n < 5 || wrote[n-1].After(stolen) {
			t.Errorf("%d writes, the last %v after the lease was stolen, want some, and none then", n, wrote[n-1].Sub(stolen))
		}
		if !errors.Is(refused, manager.ErrNotLeading) {
			t.Errorf("a write after the end: %v, want ErrNotLeading", refused)
		}
		// The thief never renews.
		if late := e.lateWrites("first", "second"); len(late) > 0 || !second.leads() {
			t.Errorf("second leads %v, late writes %v", second.leads(), late)
		}
		e.must(second.stop())
	})
}

// A stop drains; a reconcile that is still under way when the lease is lost is ended at
// once nevertheless.
func TestManager_LeaseLostWhileDrainingEndsTheReconciles_M3(t *testing.T) {
	elected(t, func(t *testing.T, e *election) {
		first := e.replica("first", func(r *replica, _ *manager.Options) { r.slow = time.Minute })
		pass(time.Second)
		first.end()
		pass(2 * time.Second)
		if err := first.cut(); err != nil {
			t.Fatalf("the reconcile in flight was cut off by %v, want it drained", err)
		}
		l, err := e.lease.Get(t.Context(), "website", metav1.GetOptions{})
		e.must(err)
		thief := "thief"
		l.Spec.HolderIdentity = &thief
		_, err = e.lease.Update(t.Context(), l, metav1.UpdateOptions{})
		e.must(err)
		stolen := time.Now()
		if err := <-first.ended; !errors.Is(err, manager.ErrLeadershipLost) {
			t.Errorf("Run = %v, want ErrLeadershipLost", err)
		}
		if took := time.Since(stolen); took > time.Second || !errors.Is(first.cut(), reconcile.ErrStopped) {
			t.Errorf("it ended after %v, the reconcile cut off by %v; want at once", took, first.cut())
		}
	})
}

func TestManager_DeletedLeaseIsNoReleasedOne_M3(t *testing.T) {
	elected(t, func(t *testing.T, e *election) {
		first := e.replica("first")
		pass(time.Second)
		second := e.replica("second")
		pass(time.Minute)
		for range 5 {
			e.must(e.Remove(leasesResource, key("website")))
			pass(10 * time.Second)
			if e.holder() != "first" || second.leads() || !first.leads() {
				t.Errorf("after the Lease was deleted %q holds it, first leads %v, second %v; want the leader to make it anew", e.holder(), first.leads(), second.leads())
			}
		}
		if err := first.lastError(); err != nil {
			t.Errorf("the leader's writes end with %v, want them to pass again", err)
		}
		// Deleted while its holder is gone: another waits as long as that may write.
		first.network.Refuse(true)
		first.network.Cut()
		e.must(e.Remove(leasesResource, key("website")))
		gone := time.Now()
		if err := <-first.ended; !errors.Is(err, manager.ErrLeadershipLost) {
			t.Errorf("Run = %v", err)
		}
		pass(20 * time.Second)
		if took := e.log.of("second", "Lease")[0].Sub(gone); took < 9*time.Second {
			t.Errorf("the other has made the Lease %v after it was deleted, while the first could still write", took)
		}
		if late := e.lateWrites("first", "second"); len(late) > 0 {
			t.Errorf("late writes %v", late)
		}
		e.must(second.stop())
	})
}

// A rate limit that the controllers exhaust delays their writes, and no renewal.
func TestManager_RenewalsHaveNoRateLimit_M3(t *testing.T) {
	elected(t, func(t *testing.T, e *election) {
		first := e.replica("first", func(_ *replica, opts *manager.Options) {
			opts.Config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(0.1, 1)
		})
		pass(time.Second)
		second := e.replica("second")
		pass(5 * time.Minute)
		if e.holder() != "first" || !first.leads() || second.leads() {
			t.Errorf("%q holds the Lease, first leads %v, second %v; want the first still", e.holder(), first.leads(), second.leads())
		}
		if n := len(e.log.of("first", "Secret")); n == 0 || n > 40 {
			t.Errorf("the controllers have made %d writes in five minutes, want one in ten seconds", n)
		}
		if n := len(e.log.of("first", "Lease")); n < 140 {
			t.Errorf("the lease was renewed %d times in five minutes, want every two seconds", n)
		}
		e.must(first.stop())
		e.must(second.stop())
	})
}

func TestManager_ControllerAddedToAStandbyIsWarmToo(t *testing.T) {
	elected(t, func(t *testing.T, e *election) {
		first := e.replica("first")
		pass(time.Second)
		second := e.replica("second")
		pass(10 * time.Second)
		ran := make(chan string, 1)
		late := reconcile.New("late", func(_ context.Context, key string) (reconcile.Result, error) {
			ran <- key
			return reconcile.Result{}, nil
		}, reconcile.KeyedOptions[string]{})
		keys := make(chan string, 1)
		keys <- "a"
		late.Watch(source.Channel(keys, source.ChannelOptions{}))
		e.must(second.Add(late))
		pass(time.Second)
		if got := late.Snapshot(); !got.Synced || got.Queue.Ready != 1 || len(ran) > 0 {
			t.Errorf("a controller that was added to a standby: %+v, want it synced, with a key, and not at work", got)
		}
		e.must(first.stop())
		pass(time.Second)
		if len(ran) != 1 {
			t.Error("it does not work a second after the hand-over")
		}
		again := reconcile.New("again", func(_ context.Context, key string) (reconcile.Result, error) {
			ran <- key
			return reconcile.Result{}, nil
		}, reconcile.KeyedOptions[string]{})
		keys = make(chan string, 1)
		keys <- "b"
		again.Watch(source.Channel(keys, source.ChannelOptions{}))
		<-ran
		e.must(second.Add(again))
		pass(time.Second)
		if len(ran) != 1 {
			t.Error("a controller that was added to the one that leads does not work")
		}
		e.must(second.stop())
	})
}

// Two who were both given one name are still two.
func TestManager_TwoOfOneIdentityAreTwo(t *testing.T) {
	elected(t, func(t *testing.T, e *election) {
		same := func(_ *replica, opts *manager.Options) { opts.LeaderElection.Identity = "same" }
		a, b := e.replica("a", same), e.replica("b", same)
		pass(time.Minute)
		if a.leads() == b.leads() {
			t.Errorf("a leads %v, b %v, want one", a.leads(), b.leads())
		}
		e.must(a.stop())
		e.must(b.stop())
	})
}

// A hand-over does not need the right to watch the Lease; it then takes longer.
func TestManager_LeaseThatNobodyWatchesIsPolled(t *testing.T) {
	elected(t, func(t *testing.T, e *election) {
		e.Deny("watch", leasesResource)
		e.Deny("list", leasesResource)
		first := e.replica("first")
		pass(time.Second)
		second := e.replica("second")
		pass(10 * time.Second)
		e.must(first.stop())
		pass(5 * time.Second)
		if !second.leads() {
			t.Error("the standby does not lead 5s after the release, want it to ask every few seconds")
		}
		e.must(second.stop())
	})
}

// fate is a simulation in which chance is always the same.
type fate struct {
	ahead atomic.Int64  // nanoseconds that the wall clock is
	drawn atomic.Uint64 // random parts of names
}

func (*fate) Step(context.Context, string, string)      {}
func (*fate) Instant(at time.Time) time.Time            { return at }
func (f *fate) Wall() time.Time                         { return time.Now().Round(0).Add(time.Duration(f.ahead.Load())) }
func (*fate) Stands() bool                              { return false }
func (*fate) Reconcile(context.Context, string, string) {}
func (*fate) Note(simhook.Note)                         {}

// Random is the same each time, except for generated names, which must differ.
func (f *fate) Random(what string) float64 {
	if !strings.HasPrefix(what, "name ") {
		return 0.5
	}
	return rand.New(rand.NewPCG(f.drawn.Add(1), 0)).Float64()
}
func (*fate) Listen(context.Context, string) (net.Listener, error) {
	return nil, errors.New("no port is needed")
}

func TestManager_SimulationDecidesNameClockAndPatienceOfAnElector(t *testing.T) {
	elected(t, func(t *testing.T, e *election) {
		e.Deny("watch", leasesResource)
		e.Deny("list", leasesResource)
		f := &fate{}
		simulated := func(r *replica, _ *manager.Options) { r.sim = f }
		first := e.replica("first", simulated)
		pass(time.Second)
		second := e.replica("second", simulated)
		pass(10 * time.Second)
		if got := first.Snapshot().Leadership.Identity; got != "first_80000000" {
			t.Errorf("the identity is %q, want the random part drawn from the simulation", got)
		}
		asked := len(e.Served())
		pass(30 * time.Second)
		looks := 0
		for _, r := range e.Served()[asked:] {
			if r.Verb == "get" && strings.HasSuffix(r.Path, "/leases/website") {
				looks++
			}
		}
		if looks < 19 || looks > 21 { // each second and a half
			t.Errorf("the standby has looked %d times within 30s, want 20: no other chance decides", looks)
		}
		f.ahead.Store(int64(time.Minute))
		if err := first.Client().Create(t.Context(), configMap("late", "")); !errors.Is(err, manager.ErrNotLeading) {
			t.Errorf("a write after the wall clock has jumped: %v, want it refused", err)
		}
		pass(5 * time.Second)
		if err := first.lastError(); err != nil || !first.leads() {
			t.Errorf("a renewal later: leads %v, %v, want it to write again", first.leads(), err)
		}
		e.must(first.stop())
		e.must(second.stop())
	})
}
