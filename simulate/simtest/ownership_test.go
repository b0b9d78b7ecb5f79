// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simtest_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/go-logr/logr/testr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/ownership"
	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

// noInformers have everything at once.
type noInformers struct{}

func (noInformers) HoldShards(...int) error                         { return nil }
func (noInformers) AwaitShards(ctx context.Context, _ ...int) error { return ctx.Err() }

// fleet are agents on one server.
type fleet struct {
	t      *testing.T
	server *simtest.Server
	count  int
	log    func(line string) // nil: nobody reads it
	all    []*member
	work   sync.WaitGroup
	second front // another API server in front of the store
}

type member struct {
	*ownership.Agent
	stop context.CancelCauseFunc
	done chan struct{}
}

func (r *fleet) start() *member { return r.startWith(r.server.Config) }

func (r *fleet) startWith(cfg *rest.Config, change ...func(*ownership.Options)) *member {
	r.t.Helper()
	log := logr.Discard()
	if testing.Verbose() {
		log = testr.New(r.t)
	}
	if r.log != nil {
		log = funcr.New(func(_, line string) { r.log(line) }, funcr.Options{})
	}
	opts := ownership.Options{
		ID: "op", Namespace: "default", Identity: fmt.Sprint("r", len(r.all)), Program: "test", By: shards.UID, Count: r.count, Weight: 1,
		LeaseDuration: 15 * time.Second, RetryPeriod: 2 * time.Second, Informers: noInformers{},
		Written: func(int) map[schema.GroupKind]kube.Version { return nil },
		CatchUp: func(ctx context.Context, _ []ownership.Taken) error { return ctx.Err() },
	}
	for _, f := range change {
		f(&opts)
	}
	a, err := ownership.New(opts, cfg, log)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, stop := context.WithCancelCause(logr.NewContext(context.Background(), log))
	one := &member{Agent: a, stop: stop, done: make(chan struct{})}
	r.all = append(r.all, one)
	r.work.Go(func() {
		defer close(one.done)
		if err := a.Run(ctx); err != nil {
			r.t.Error(err)
		}
	})
	return one
}

// end ends all members.
func (r *fleet) end() {
	for _, one := range r.all {
		one.stop(nil)
	}
	r.work.Wait()
}

// held returns how many shards each member holds, and fails if two hold one.
func (r *fleet) held() []int {
	r.t.Helper()
	owner := map[int]int{}
	out := make([]int, len(r.all))
	for i, one := range r.all {
		for _, s := range one.Guard().Held() {
			if other, taken := owner[s]; taken {
				r.t.Errorf("shard %d is held by members %d and %d", s, other, i)
			}
			owner[s] = i
		}
		out[i] = len(one.Guard().Held())
	}
	return out
}

// writes returns how many writes to Leases were served.
func (r *fleet) writes() (n int) {
	for _, one := range r.server.Served() {
		if one.Verb != "list" && one.Verb != "watch" && one.Verb != "get" {
			n++
		}
	}
	return n
}

func newFleet(t *testing.T, count int) *fleet {
	return &fleet{t: t, server: simtest.New(t, nil), count: count}
}

func TestOwnership_FourReplicasShareShards_M33(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFleet(t, 32)
		defer r.end()
		for range 4 {
			r.start()
		}
		time.Sleep(16 * time.Second)
		synctest.Wait()
		if got := r.held(); !slices.Equal(got, []int{8, 8, 8, 8}) {
			t.Fatalf("the fleet hold %v shards, want 8 each", got)
		}
		before := r.writes()
		time.Sleep(10 * time.Minute)
		if writes, most := r.writes()-before, (4+32/8)*10*60/15; writes > most {
			t.Errorf("%d writes in 10 minutes, want at most the members and an eighth of the shards for each lease duration: %d", writes, most)
		}
		if got := r.held(); !slices.Equal(got, []int{8, 8, 8, 8}) {
			t.Fatalf("after ten minutes the fleet hold %v shards", got)
		}
		leaving := r.all[1]
		leaving.stop(nil)
		<-leaving.done
		time.Sleep(time.Second)
		synctest.Wait()
		if got := r.held(); got[1] != 0 || got[0]+got[2]+got[3] != 32 {
			t.Fatalf("a second after one has left the fleet hold %v", got)
		}
		if leases := r.server.Objects(schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}); len(leases) != 1+32+3 {
			t.Errorf("%d Leases are left, want the plan, 32 shards and 3 members", len(leases))
		}
	})
}

// A member with another number of shards, or of another program, holds nothing and says why. When no
// member with the old number is left it takes over.
func TestOwnership_AnotherPlanWaits_M31(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFleet(t, 8)
		defer r.end()
		old := []*member{r.start(), r.start()}
		time.Sleep(20 * time.Second)
		next := r.startWith(r.server.Config, func(o *ownership.Options) { o.Count = 16 })
		other := r.startWith(r.server.Config, func(o *ownership.Options) { o.Program = "another" })
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := r.held(); !slices.Equal(got, []int{4, 4, 0, 0}) {
			t.Fatalf("the members hold %v shards, want those of the first two alone", got)
		}
		for m, want := range map[*member]string{next: "8/uid and this one into 16/uid", other: "is of another program"} {
			if got := m.State().Waits; !strings.Contains(got, want) {
				t.Errorf("a member waits because %q, want %q", got, want)
			}
		}
		for _, m := range old {
			m.stop(nil)
			<-m.done
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := r.held(); !slices.Equal(got, []int{0, 0, 16, 0}) {
			t.Errorf("when the first two have left, the members hold %v shards, want 16 of the third", got)
		}
	})
}

// A Lease of another program that has the name of a shard's is left alone. The log says why that shard is
// not taken; the others are. Once the Lease is gone, so is the shard.
func TestOwnership_LeasesOfOtherProgramsAreLeft_M31(t *testing.T) {
	for name, labels := range map[string]map[string]string{"another operator's": {ownership.Label: "op-shard-1"}, "a leader's": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newFleet(t, 4)
				defer r.end()
				var mu sync.Mutex
				said := 0
				r.log = func(line string) {
					mu.Lock()
					defer mu.Unlock()
					if strings.Contains(line, `"lease"="default/op-shard-1"`) && strings.Contains(line, "another program") {
						said++
					}
				}
				theirs := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "op-shard-1", Labels: labels}}
				if labels != nil {
					theirs.Spec.HolderIdentity = new("op-shard-1-host-abcdefgh")
				}
				if err := r.server.Client.Create(t.Context(), theirs); err != nil {
					t.Fatal(err)
				}
				m := r.start()
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				if got := m.Guard().Held(); !slices.Equal(got, []int{0, 2, 3}) {
					t.Errorf("beside another program's Lease %v are held, want all shards but 1", got)
				}
				if mu.Lock(); said != 1 {
					t.Errorf("the log names the Lease %d times, want once", said)
				}
				mu.Unlock()
				now := &coordinationv1.Lease{}
				if err := r.server.Client.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "op-shard-1"}, now); err != nil || now.ResourceVersion != theirs.ResourceVersion {
					t.Errorf("the other program's Lease: %v, written: %v", err, now.ResourceVersion != theirs.ResourceVersion)
				}
				if n := len(r.server.Objects(leases)); n != 1+4+1 {
					t.Errorf("there are %d Leases, want the plan, 4 with names of shards and a member", n)
				}
				if err := r.server.Client.Delete(t.Context(), theirs); err != nil {
					t.Fatal(err)
				}
				time.Sleep(80 * time.Second)
				synctest.Wait()
				if got := m.Guard().Held(); len(got) != 4 {
					t.Errorf("when the other program's Lease is gone %v are held, want all", got)
				}
			})
		})
	}
}

// A member whose Lease somebody deletes ends, and joins again under another name. Its shards are held again a
// lease duration later.
func TestOwnership_ADeletedMemberIsAnotherOne_M31(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFleet(t, 8)
		defer r.end()
		m, other := r.start(), r.start()
		time.Sleep(40 * time.Second)
		before := m.State().Identity
		if err := r.server.Remove(leases, types.NamespacedName{Namespace: "default", Name: before}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if now := m.State().Identity; now == before || len(m.Guard().Held()) != 0 || len(other.Guard().Held()) != 4 {
			t.Errorf("a second later it is %s and was %s, and %v shards are held; want another name, and none held", now, before, r.held())
		}
		r.watchFor(30 * time.Second)
		if got := r.held(); !slices.Equal(got, []int{4, 4}) {
			t.Errorf("31 s after a member's Lease was deleted the members hold %v shards, want 4 each", got)
		}
		for _, l := range r.server.Objects(leases) {
			if holder, _, _ := unstructured.NestedString(l.(*unstructured.Unstructured).Object, "spec", "holderIdentity"); holder == before {
				t.Errorf("the Lease %s names the identity that has ended", l.GetName())
			}
		}
	})
}

// A shard whose Lease loses its label is held again after a lease duration, with the label.
func TestOwnership_ALabelThatWasRemovedComesBack_M31(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFleet(t, 4)
		defer r.end()
		m := r.start()
		time.Sleep(40 * time.Second)
		key := types.NamespacedName{Namespace: "default", Name: "op-shard-3"}
		if err := r.server.Change(leases, key, func(o metav1.Object) { o.SetLabels(nil) }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := m.Guard().Held(); !slices.Equal(got, []int{0, 1, 2}) {
			t.Errorf("without the label of shard 3 the member holds %v, want the others", got)
		}
		r.watchFor(20 * time.Second)
		if got := m.Guard().Held(); len(got) != 4 {
			t.Errorf("21 s later the member holds %v, want all", got)
		}
	})
}

// stuck lets the first update hang that is sent from a time on.
type stuck struct {
	next http.RoundTripper
	from time.Time
	once atomic.Bool
}

func (s *stuck) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPut && time.Now().After(s.from) && s.once.CompareAndSwap(false, true) {
		return hanging{}.RoundTrip(req)
	}
	return s.next.RoundTrip(req)
}

// One renewal that hangs, sent late since there are few shards for each member, costs nothing.
func TestOwnership_ARenewalThatHangsIsRepeatedInTime_M33(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFleet(t, 1)
		defer r.end()
		cfg := rest.CopyConfig(r.server.Config)
		once := &stuck{next: r.server.Config.Transport, from: time.Now().Add(30 * time.Second)}
		cfg.Transport = once
		m := r.startWith(cfg)
		time.Sleep(29 * time.Second)
		before, begin := m.State().Identity, time.Now()
		for time.Since(begin) < time.Minute {
			time.Sleep(50 * time.Millisecond)
			if now := m.State().Identity; now != before || !m.Guard().Open(0) {
				t.Fatalf("%s after a renewal could hang the member is %s and was %s, and its shard is open: %v", time.Since(begin), now, before, m.Guard().Open(0))
			}
		}
		if !once.once.Load() {
			t.Error("no renewal hung")
		}
	})
}

// A plan with fewer shards leaves no Leases of the one before.
func TestOwnership_LeasesOfALargerPlanGo_M31(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFleet(t, 40)
		defer r.end()
		m := r.start()
		time.Sleep(20 * time.Second)
		m.stop(nil)
		<-m.done
		r.count = 4
		r.start()
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got, n := r.held(), len(r.server.Objects(leases)); got[1] != 4 || n != 1+4+1 {
			t.Errorf("with 4 shards instead of 40 the member holds %d, and there are %d Leases, want the plan, 4 shards and a member", got[1], n)
		}
	})
}

// A leader of a version without shards is not disturbed, and cannot lead any more afterwards.
func TestOwnership_WaitsForALeader_M31(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFleet(t, 8)
		defer r.end()
		leader := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "op"}}
		leader.Spec.HolderIdentity, leader.Spec.LeaseDurationSeconds = new("old"), new(int32(15))
		if err := r.server.Client.Create(t.Context(), leader); err != nil {
			t.Fatal(err)
		}
		m := r.start()
		for range 10 {
			time.Sleep(5 * time.Second)
			leader.Spec.RenewTime = new(metav1.NewMicroTime(time.Now()))
			if err := r.server.Client.Update(t.Context(), leader); err != nil {
				t.Fatal(err)
			}
		}
		if got := m.State().Waits; len(m.Guard().Held()) != 0 || !strings.Contains(got, `"old" leads`) {
			t.Errorf("beside a leader the member holds %v, and waits because %q", m.Guard().Held(), got)
		}
		time.Sleep(40 * time.Second)
		synctest.Wait()
		if got := r.held(); got[0] != 8 {
			t.Errorf("when the leader has ended the member holds %v shards, want 8", got)
		}
		if err := r.server.Client.Update(t.Context(), leader); err == nil {
			t.Error("the leader could renew its Lease")
		}
	})
}

// hanging is a transport that answers when the context of a request ends.
type hanging struct{}

func (hanging) RoundTrip(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, req.Context().Err()
}

// cutOff lets a member send a write of a shard that is cut off: the server may carry it out later.
func (r *fleet) cutOff(m *member, shard int) {
	r.t.Helper()
	in, leave, _ := m.Guard().Enter(r.t.Context(), shard)
	if leave == nil {
		r.t.Fatalf("shard %d is not held", shard)
	}
	defer leave()
	ctx, cancel := context.WithTimeout(in, time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://server/api", strings.NewReader("body"))
	if err != nil {
		r.t.Fatal(err)
	}
	if _, err = m.Guard().Wrap(hanging{}).RoundTrip(req); err == nil {
		r.t.Fatal("a write that hangs was answered")
	}
}

// A shard is given away when no write can arrive any more that its owner has sent, and the others at once. A
// process that ends does not wait for that: its Lease expires.
func TestOwnership_AShardWaitsForWritesThatWereCutOff_M31(t *testing.T) {
	for _, ends := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newFleet(t, 4)
			defer r.end()
			m := r.start()
			time.Sleep(20 * time.Second)
			r.cutOff(m, 2)
			other := r.start()
			if m.Leave(); ends {
				m.stop(nil)
			}
			time.Sleep(6 * time.Second)
			synctest.Wait()
			if got := other.Guard().Held(); !slices.Equal(got, []int{0, 1, 3}) {
				t.Errorf("six seconds later the other member holds %v, want all but shard 2", got)
			}
			select {
			case <-m.done:
				if !ends {
					t.Error("the member has left, though its write may arrive")
				}
			default:
				if ends {
					t.Error("the member has not ended after its grace period")
				}
			}
			time.Sleep(8 * time.Second)
			synctest.Wait()
			if got := other.Guard().Held(); len(got) != 3 {
				t.Errorf("14 s after the write was cut off the other member holds %v, want all but shard 2", got)
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if got := other.Guard().Held(); len(got) != 4 {
				t.Errorf("when the write cannot arrive any more the other member holds %v, want all", got)
			}
		})
	}
}

// A process whose write is cut off when it ends renews its Lease once more: its shards are free a lease
// duration after that, however old the renewal before is.
func TestOwnership_ARenewalCoversTheWritesOfTheEnd_M31(t *testing.T) {
	for cause, grace := range map[error]time.Duration{nil: 5 * time.Second, ownership.ErrAbandoned: 0} {
		synctest.Test(t, func(t *testing.T) {
			r := newFleet(t, 4)
			defer r.end()
			m := r.start()
			time.Sleep(27 * time.Second)
			in, leave, _ := m.Guard().Enter(t.Context(), 2)
			if leave == nil {
				t.Fatal("shard 2 is not held")
			}
			req, err := http.NewRequestWithContext(in, http.MethodPut, "http://server/api", nil)
			if err != nil {
				t.Fatal(err)
			}
			r.work.Go(func() {
				defer leave()
				if _, err := m.Guard().Wrap(hanging{}).RoundTrip(req); err == nil {
					t.Error("a write that hangs was answered")
				}
			})
			other := r.start()
			time.Sleep(time.Second)
			m.stop(cause)
			time.Sleep(grace + 14900*time.Millisecond)
			synctest.Wait()
			if got := other.Guard().Held(); slices.Contains(got, 2) {
				t.Errorf("%v: a write of shard 2 may arrive, and the other member holds %v", cause, got)
			}
			time.Sleep(6 * time.Second)
			synctest.Wait()
			if got := other.Guard().Held(); len(got) != 4 {
				t.Errorf("%v: when it cannot any more the other member holds %v, want all", cause, got)
			}
		})
	}
}

// Without the right to write Leases a process holds nothing, and is not ready after two minutes.
func TestOwnership_ForbiddenIsSaid_M31(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFleet(t, 8)
		defer r.end()
		cfg := rest.CopyConfig(r.server.Config)
		forbid := &forbidding{next: r.server.Config.Transport, verbs: []string{"create", "update", "delete"}}
		forbid.on.Store(true)
		cfg.Transport = forbid
		m := r.startWith(cfg)
		time.Sleep(time.Minute)
		if err := m.Trouble(); err != nil {
			t.Errorf("Trouble = %v after a minute", err)
		}
		time.Sleep(2 * time.Minute)
		if err := m.Trouble(); err == nil || !strings.Contains(err.Error(), "verbs: [get, list, watch, create, update, delete]") {
			t.Errorf("Trouble = %v after three minutes, want the rule that is missing", err)
		}
		forbid.on.Store(false)
		time.Sleep(90 * time.Second) // a request that was refused is repeated after a minute
		synctest.Wait()
		if err := m.Trouble(); err != nil || len(m.Guard().Held()) != 8 {
			t.Errorf("when it is allowed: Trouble = %v, and %v are held", err, m.Guard().Held())
		}
	})
}

// Without a right a process repeats what needs it ever more rarely, says which right it lacks, and leaves no
// Leases behind for ever. With it all is well again.
func TestOwnership_WhatIsForbiddenIsTriedRarely_M31(t *testing.T) {
	for _, verb := range []string{"get", "list", "watch", "create", "update", "delete"} {
		t.Run(verb, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newFleet(t, 4)
				defer r.end()
				// An ended member is to be deleted, and to learn of the Lease of another program it is read.
				for name, labels := range map[string]map[string]string{"op-dead-abcdefgh": {ownership.Label: "op"}, "op-shard-1": nil} {
					l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: labels}}
					if err := r.server.Client.Create(t.Context(), l); err != nil {
						t.Fatal(err)
					}
				}
				cfg := rest.CopyConfig(r.server.Config)
				forbid := &forbidding{next: r.server.Config.Transport, verbs: []string{verb}, refused: map[string]int{}}
				cfg.Transport = forbid
				forbid.on.Store(true)
				all := []*member{r.startWith(cfg), r.startWith(cfg)}
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				before := len(r.server.Objects(leases))
				for what, n := range forbid.counts() {
					t.Logf("refused: %d times %s", n, what)
					most := 2 * 16
					if what == "list " || what == "watch " {
						most = 200 // of informers, which have a pace of their own
					}
					if n > most {
						t.Errorf("in ten minutes two members try %d times to %s, want at most %d", n, what, most)
					}
				}
				for _, m := range all {
					if got := m.Progress().Campaigning; got != (verb != "list") {
						t.Errorf("the member campaigns: %v; without a list it does not, and a new start would change nothing", got)
					}
					if err := m.Trouble(); (err == nil || !strings.Contains(err.Error(), verb)) && verb != "watch" {
						t.Errorf("Trouble = %v, want that the right to %s is missing", err, verb)
					}
				}
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if verb == "watch" {
					before += 8 // nothing is trusted, so members join again and again, and collect what they were
				}
				if after := len(r.server.Objects(leases)); after > before {
					t.Errorf("there are %d Leases after ten minutes and %d after 20", before, after)
				}
				forbid.on.Store(false)
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				if got := r.held(); !slices.Contains([]string{"[1 2]", "[2 1]"}, fmt.Sprint(got)) {
					t.Errorf("when the right is there the members hold %v shards, want all but the one whose name another program has", got)
				}
				for _, m := range all {
					if err := m.Trouble(); err != nil {
						t.Errorf("when the right is there: Trouble = %v", err)
					}
				}
			})
		})
	}
}

// forbidding refuses requests of some verbs.
type forbidding struct {
	next  http.RoundTripper
	verbs []string
	on    atomic.Bool

	mu      sync.Mutex
	refused map[string]int // by verb and Lease; nil: nobody counts
}

// counts returns how many requests were refused, by verb and Lease.
func (f *forbidding) counts() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.refused)
}

// identities have a member of the tests and a random end.
var identities = regexp.MustCompile(`^(op-r\d+)-.*`)

// tries returns the verb of a request, and the name of the Lease, without what is random.
func tries(req *http.Request) (verb, name string) {
	defer func() { name = identities.ReplaceAllString(name, "$1") }()
	_, name, named := strings.Cut(req.URL.Path, "/leases/")
	switch {
	case req.Method == http.MethodPost:
		if body, err := req.GetBody(); err == nil {
			defer body.Close()
			text, _ := io.ReadAll(body)
			name = string(regexp.MustCompile(`op-[a-z0-9-]*|op`).Find(text))
		}
		return "create", name
	case req.Method == http.MethodPut:
		return "update", name
	case req.Method == http.MethodDelete:
		return "delete", name
	case req.URL.Query().Get("watch") != "":
		return "watch", ""
	case named:
		return "get", name
	}
	return "list", ""
}

func (f *forbidding) RoundTrip(req *http.Request) (*http.Response, error) {
	if verb, name := tries(req); f.on.Load() && slices.Contains(f.verbs, verb) {
		f.mu.Lock()
		if f.refused != nil {
			f.refused[verb+" "+name]++
		}
		f.mu.Unlock()
		body := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"leases is forbidden"}`
		return &http.Response{
			StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(body)), Request: req,
		}, nil
	}
	return f.next.RoundTrip(req)
}
