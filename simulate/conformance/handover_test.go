// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate"
)

var secretsResource = schema.GroupResource{Resource: "secrets"}

// parent is a replica of a program that makes one Secret for each ConfigMap, with a name
// that the server chooses, so that a stale read makes a second one.
type parent struct {
	*manager.Manager
	network *simulate.Network
	end     context.CancelFunc
	ended   chan error
	mu      struct {
		sync.Mutex
		first time.Time // reconcile
		log   []string
	}
}

// making is what a parent does with a ConfigMap of which it knows some Secrets.
type making func(ctx context.Context, p *parent, name string, secrets []*corev1.Secret) error

// makes one Secret.
func makes(ctx context.Context, p *parent, name string, secrets []*corev1.Secret) error {
	if len(secrets) > 0 {
		return nil
	}
	return p.Client().Create(ctx, childOf(name))
}

func childOf(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", GenerateName: name + "-", Labels: map[string]string{"of": name}}}
}

func (e *election) parent(name string, do making, scopes ...informer.Scope) *parent {
	e.t.Helper()
	p := &parent{network: e.connect(name), ended: make(chan error, 1)}
	log := funcr.New(func(prefix, args string) {
		e.t.Log(time.Now().Format("04:05.000"), name, prefix, args)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.mu.log = append(p.mu.log, args)
	}, funcr.Options{})
	var err error
	p.Manager, err = manager.New(manager.Options{
		Config:         e.config(p.network),
		LeaderElection: &manager.LeaderElection{ID: "website", Namespace: "ns", Identity: name},
		Logger:         log, HealthAddress: "0", MetricsAddress: "0",
	})
	e.must(err)
	maps, secrets := informer.For[cmap](p.Informers()), informer.For[*corev1.Secret](p.Informers(), scopes...)
	e.must(p.Add(reconcile.For(maps, func(ctx context.Context, m cmap) (reconcile.Result, error) {
		p.mu.Lock()
		if p.mu.first.IsZero() {
			p.mu.first = time.Now()
		}
		p.mu.Unlock()
		var have []*corev1.Secret
		for s := range secrets.Lister().All() {
			if s.Labels["of"] == m.Name {
				have = append(have, s)
			}
		}
		return reconcile.Result{}, do(ctx, p, m.Name, have)
	}, reconcile.Options{})))
	var ctx context.Context
	ctx, p.end = context.WithCancel(e.t.Context())
	e.group.Go(func() { p.ended <- p.Run(ctx) })
	return p
}

func (p *parent) stop() error {
	p.end()
	return <-p.ended
}

// firstReconcile is when p first reconciled; zero: it has not.
func (p *parent) firstReconcile() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.first
}

func (p *parent) logged(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.mu.log {
		if strings.Contains(line, text) {
			return true
		}
	}
	return false
}

func (p *parent) leads() bool { return p.Snapshot().Leadership.Leading }

// children counts the Secrets of a ConfigMap.
func (e *election) children(name string) (n int) {
	for _, s := range e.Objects(secretsResource) {
		if s.GetLabels()["of"] == name {
			n++
		}
	}
	return n
}

// asked are the requests of a verb for a resource by a client since the last call of forget.
type asked struct {
	writeLog
	reads []simulate.Request
}

func (a *asked) Asked(r simulate.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reads = append(a.reads, r)
}

func (a *asked) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reads = nil
}

func (a *asked) lists(client, kind string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.reads {
		if r.Client == client && r.Verb == "list" && r.Kind.Kind == kind {
			n++
		}
	}
	return n
}

// handingOver runs test with a leader and a standby that is warm.
func handingOver(t *testing.T, do making, scopes []informer.Scope, test func(t *testing.T, e *election, reads *asked, first, second *parent)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		reads := &asked{}
		e, end := newElection(t, reads, &reads.writeLog)
		defer end()
		first := e.parent("first", do, scopes...)
		pass(time.Second)
		second := e.parent("second", do, scopes...)
		pass(30 * time.Second)
		if !first.leads() || second.leads() || e.children("map-0") != 1 {
			t.Fatalf("first leads %v, second %v, %d children; want a leader that has made them", first.leads(), second.leads(), e.children("map-0"))
		}
		reads.forget()
		test(t, e, reads, first, second)
		e.must(second.stop())
	})
}

const late = 400 * time.Millisecond

// The watch of the children is late when the leader writes its last and releases the lease.
func TestManager_NewLeaderKnowsTheLastWrites_M13(t *testing.T) {
	whole := []informer.Scope{{}}
	for _, row := range []struct {
		name   string
		scopes []informer.Scope
		do     making
	}{
		{"whole kind", whole, makes},
		{"namespace", []informer.Scope{{Namespaces: []string{"ns"}}}, makes},
		{"two namespaces", []informer.Scope{{Namespaces: []string{"ns", "other"}}}, makes},
		{"selector", []informer.Scope{{LabelSelector: "of"}}, makes},
		{"last write out of the scope", []informer.Scope{{LabelSelector: "of"}}, func(ctx context.Context, p *parent, name string, have []*corev1.Secret) error {
			if err := makes(ctx, p, name, have); err != nil || len(have) > 0 {
				return err
			}
			return p.Client().Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", GenerateName: "beside-"}})
		}},
		{"clientset", whole, func(ctx context.Context, p *parent, name string, have []*corev1.Secret) error {
			if len(have) > 0 {
				return nil
			}
			api, err := kubernetes.NewForConfig(p.Config())
			if err == nil {
				_, err = api.CoreV1().Secrets("ns").Create(ctx, childOf(name), metav1.CreateOptions{})
			}
			return err
		}},
		{"a deletion last", whole, func(ctx context.Context, p *parent, name string, have []*corev1.Secret) error {
			if len(have) > 0 {
				return nil
			}
			old := childOf("old-" + name)
			if err := errors.Join(p.Client().Create(ctx, old), makes(ctx, p, name, have)); err != nil {
				return err
			}
			return p.Client().Delete(ctx, old)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			handingOver(t, row.do, row.scopes, func(t *testing.T, e *election, _ *asked, first, second *parent) {
				e.LagKindTo(secretsResource, e.Revision())
				begun := time.Now()
				_, err := e.Put(configMap("last", ""))
				e.must(err)
				pass(50 * time.Millisecond)
				if n := e.children("last"); n != 1 {
					t.Fatalf("the leader has made %d children of the last object, want 1", n)
				}
				e.must(first.stop())
				pass(time.Until(begun.Add(late)))
				if !second.leads() || !second.firstReconcile().IsZero() {
					t.Errorf("the second leads %v and has reconciled at %v, want it to lead and to wait for its watch", second.leads(), second.firstReconcile())
				}
				e.CatchUpKind(secretsResource)
				caught := time.Now()
				pass(time.Second)
				if n := e.children("last"); n != 1 {
					t.Errorf("the object has %d children, want 1: the new leader read what was there before its predecessor's last write", n)
				}
				second.beganSoonAfter(t, caught)
				if !second.logged(`"msg"="The informers have what the previous leader wrote last" "previous"="first_`) {
					t.Error("the log does not say what was waited for")
				}
			})
		})
	}
}

// The leader dies after its last write, and its watch is late for longer than its lease
// lasts.
func TestManager_NewLeaderKnowsTheLastWritesOfOneThatCrashed_M14(t *testing.T) {
	for name, scopes := range map[string][]informer.Scope{"whole kind": nil, "selector": {{LabelSelector: "of"}}, "two namespaces": {{Namespaces: []string{"ns", "other"}}}} {
		t.Run(name, func(t *testing.T) {
			handingOver(t, makes, scopes, func(t *testing.T, e *election, reads *asked, first, second *parent) {
				e.LagKindTo(secretsResource, e.Revision())
				_, err := e.Put(configMap("last", ""))
				e.must(err)
				pass(50 * time.Millisecond)
				first.crash()
				for !second.leads() {
					pass(10 * time.Millisecond)
				}
				pass(late)
				if !second.firstReconcile().IsZero() {
					t.Error("the new leader reconciles while its watch is behind")
				}
				e.CatchUpKind(secretsResource)
				caught := time.Now()
				pass(time.Second)
				if n := e.children("last"); n != 1 {
					t.Errorf("the object has %d children, want 1", n)
				}
				second.beganSoonAfter(t, caught)
			})
		})
	}
}

// beganSoonAfter checks when p has begun to reconcile.
func (p *parent) beganSoonAfter(t *testing.T, caught time.Time) {
	t.Helper()
	if took := p.firstReconcile().Sub(caught); p.firstReconcile().IsZero() || took > 200*time.Millisecond {
		t.Errorf("the new leader began %v after its watch had caught up, want soon", took)
	}
}

// crash cuts p off from its server, and ends it.
func (p *parent) crash() {
	p.network.Refuse(true)
	p.network.Cut()
	p.end()
}

// What the standby has, and the server's answer shows, needs no event: a kind may be quiet
// for an hour.
func TestManager_QuietKindsDelayNoTakeover_M14(t *testing.T) {
	handingOver(t, makes, nil, func(t *testing.T, e *election, reads *asked, first, second *parent) {
		first.crash()
		_, err := e.Put(&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
		e.must(err)
		for !second.leads() {
			pass(time.Millisecond)
		}
		led := time.Now()
		pass(time.Second)
		if took := second.firstReconcile().Sub(led); second.firstReconcile().IsZero() || took > 100*time.Millisecond {
			t.Errorf("the new leader began after %v, want at once: its informers have all", took)
		}
		for _, kind := range []string{"ConfigMap", "Secret"} {
			if n := reads.lists("second", kind); n != 1 {
				t.Errorf("%d lists of %ss, want the one that shows what the server has", n, kind)
			}
		}
	})
}

// A watch that stays late is replaced by a list; a list that is refused holds the controllers
// up for a bounded time.
func TestManager_TakeoverWaitsForABoundedTime_M14(t *testing.T) {
	for _, denied := range []bool{false, true} {
		t.Run(fmt.Sprintf("lists denied %v", denied), func(t *testing.T) {
			handingOver(t, makes, nil, func(t *testing.T, e *election, _ *asked, first, second *parent) {
				e.LagKindTo(secretsResource, e.Revision())
				_, err := e.Put(configMap("last", ""))
				e.must(err)
				pass(50 * time.Millisecond)
				first.crash()
				if denied {
					e.Deny("list", secretsResource)
				}
				for !second.leads() {
					pass(10 * time.Millisecond)
				}
				led := time.Now()
				pass(time.Minute)
				took := second.firstReconcile().Sub(led)
				switch children := e.children("last"); {
				case denied && (took < 14*time.Second || took > 16*time.Second || !second.logged("Starting the controllers although")):
					t.Errorf("the new leader began after %v, want 15s and a warning", took)
				case !denied && (took < 2*time.Second || took > 3*time.Second || children != 1):
					t.Errorf("the new leader began after %v, and there are %d children; want 2s, a list, and 1", took, children)
				}
			})
		})
	}
}

// Where the watch is not late, nothing is asked and nothing waits.
func TestManager_HandOverIsFast_M15(t *testing.T) {
	for _, wrote := range []bool{false, true} {
		t.Run(fmt.Sprintf("wrote %v", wrote), func(t *testing.T) {
			handingOver(t, makes, nil, func(t *testing.T, e *election, reads *asked, first, second *parent) {
				if wrote {
					_, err := e.Put(configMap("last", ""))
					e.must(err)
					pass(10 * time.Millisecond)
				}
				e.must(first.stop())
				released := e.log.of("first", "Lease")
				pass(time.Second)
				if took := second.firstReconcile().Sub(released[len(released)-1]); second.firstReconcile().IsZero() || took > 100*time.Millisecond {
					t.Errorf("the new leader began %v after the release, want within 100ms", took)
				}
				for _, kind := range []string{"ConfigMap", "Secret"} {
					if n := reads.lists("second", kind); n != 0 {
						t.Errorf("%d lists of %ss, want none: the Lease says what was written", n, kind)
					}
				}
			})
		})
	}
}
