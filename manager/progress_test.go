// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// stage returns a manager with an informer of three ConfigMaps and, if keysOf is not
// nil, the controller "copier" that watches them.
func stage(t *testing.T, prepare func(i *informer.SharedInformer[*corev1.ConfigMap]), keysOf func(*corev1.ConfigMap) []reconcile.Key) *manager.Manager {
	t.Helper()
	m := newManager(t, manager.Options{})
	server := &configMaps{allowed: true, items: []*corev1.ConfigMap{newConfigMap("a"), newConfigMap("b"), newConfigMap("c")}}
	i := informer.New(server, configMapKind, informer.Options{PagedLists: true})
	prepare(i)
	must(t, m.AddTo(manager.StageInformers, i))
	if keysOf == nil {
		return m
	}
	c := reconcile.New("copier", func(context.Context, reconcile.Key) (reconcile.Result, error) {
		return reconcile.Result{}, nil
	}, reconcile.Options{})
	c.Watch(source.Mapped(i, keysOf))
	must(t, m.Add(c))
	return m
}

func nothing(*informer.SharedInformer[*corev1.ConfigMap]) {}

func noKeys(*corev1.ConfigMap) []reconcile.Key { return nil }

func TestManager_WhatBlocksAnInformerIsNotAlive_M10(t *testing.T) {
	for _, tc := range []struct {
		name  string
		make  func(t *testing.T, block func()) *manager.Manager
		want  string
		ready bool // the informer has synced
	}{
		{"a mapper", func(t *testing.T, block func()) *manager.Manager {
			return stage(t, nothing, func(*corev1.ConfigMap) []reconcile.Key { block(); return nil })
		}, `handler "source kind ConfigMap", or a mapper or predicate that it calls, has not returned for 2m`, false},
		{"a handler", func(t *testing.T, block func()) *manager.Manager {
			return stage(t, func(i *informer.SharedInformer[*corev1.ConfigMap]) {
				_, err := i.AddHandler(func(kube.Event[*corev1.ConfigMap]) { block() }, informer.HandlerOptions{Name: "mail"})
				must(t, err)
			}, noKeys)
		}, `handler "mail", or`, true},
		{"an index function", func(t *testing.T, block func()) *manager.Manager {
			return stage(t, func(i *informer.SharedInformer[*corev1.ConfigMap]) {
				must(t, i.AddIndex("x", func(*corev1.ConfigMap) []string { block(); return nil }))
			}, nil) // a goroutine that waits for the informer's lock stops virtual time
		}, "it has not finished to store a batch for 2m", false},
		{"a transform", func(t *testing.T, block func()) *manager.Manager {
			return stage(t, func(i *informer.SharedInformer[*corev1.ConfigMap]) {
				must(t, i.SetTransform(func(obj *corev1.ConfigMap) (*corev1.ConfigMap, error) { block(); return obj, nil }))
			}, noKeys)
		}, "it has not finished to transform an object in all namespaces for 2m", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				release := make(chan struct{})
				m := tc.make(t, func() { neverObeys(release) })
				stop, wait := run(t, m)
				time.Sleep(2*time.Minute - 10*time.Second)
				if code, text := probe(m, "/livez"); code != http.StatusOK {
					t.Errorf("/livez = %d %q before two minutes, want 200: it may be slow", code, text)
				}
				time.Sleep(20 * time.Second)
				for _, path := range []string{"/livez", "/healthz"} {
					code, text := probe(m, path)
					for _, want := range []string{"[-]informer/ConfigMap failed: " + tc.want, "manager_test.neverObeys("} {
						if code != http.StatusInternalServerError || !strings.Contains(text, want) {
							t.Errorf("%s = %d %q, want 500 and %q: what hangs, and where", path, code, text, want)
						}
					}
					if n := strings.Count(text, "\n\tgoroutine "); n != 1 {
						t.Errorf("%s shows %d stacks, want that of what hangs: %s", path, n, text)
					}
				}
				// None of these waits for what hangs: in a bubble the test would not
				// end.
				if code, text := probe(m, "/readyz"); tc.ready != (code == http.StatusOK) {
					t.Errorf("/readyz = %d %q, want ready: %v", code, text, tc.ready)
				}
				if s := m.Snapshot(); len(s.Informers) != 1 || len(s.Informers[0].Scopes) != 1 {
					t.Errorf("the snapshot shows %+v, want the informer and its scope", s.Informers)
				}
				if _, err := m.Metrics().Gather(); err != nil {
					t.Errorf("the metrics cannot be read: %v", err)
				}
				if code, _ := probe(m, "/livez?exclude=informer/ConfigMap"); code != http.StatusOK {
					t.Errorf("/livez without the check = %d, want 200", code)
				}
				close(release)
				time.Sleep(time.Second)
				if code, text := probe(m, "/livez"); code != http.StatusOK {
					t.Errorf("/livez = %d %q, want 200: it moves again", code, text)
				}
				stop()
				must(t, wait())
			})
		})
	}
}

// The log has the stack of the part that hangs, and no other.
func TestManager_HangIsLoggedWithItsStack_M10(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines []string
		var mu sync.Mutex
		m, err := manager.New(manager.Options{
			Config:         &rest.Config{Host: "http://127.0.0.1:1"},
			MetricsAddress: "0", HealthAddress: "0",
			Logger: funcr.New(func(_, args string) {
				mu.Lock()
				defer mu.Unlock()
				lines = append(lines, args)
			}, funcr.Options{}),
		})
		must(t, err)
		release := make(chan struct{})
		server := &configMaps{allowed: true, items: []*corev1.ConfigMap{newConfigMap("a"), newConfigMap("b")}}
		i := informer.New(server, configMapKind, informer.Options{PagedLists: true})
		_, err = i.AddHandler(func(kube.Event[*corev1.ConfigMap]) { neverObeys(release) }, informer.HandlerOptions{Name: "mail"})
		must(t, err)
		must(t, m.AddTo(manager.StageInformers, i))
		stop, wait := run(t, m)
		time.Sleep(10 * time.Minute)
		close(release)
		stop()
		must(t, wait())
		lines = slices.DeleteFunc(lines, func(line string) bool { return !strings.Contains(line, "Something has stopped making progress") })
		if len(lines) != 1 {
			t.Fatalf("%d lines report it, want 1: %q", len(lines), lines)
		}
		for _, want := range []string{`"check"="informer/ConfigMap"`, `handler \"mail\"`, `"stack"="goroutine `, "manager_test.neverObeys("} {
			if !strings.Contains(lines[0], want) {
				t.Errorf("the line is %s, want %q in it", lines[0], want)
			}
		}
		if n := strings.Count(lines[0], "[synctest bubble") + strings.Count(lines[0], ", synctest bubble"); n > 1 {
			t.Errorf("the line has %d stacks, want that of what hangs: %s", n, lines[0])
		}
	})
}

// A handler that does not return does not fail liveness while no event waits for it.
func TestManager_BlockedHandlerWithoutWorkIsAlive_M10(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, manager.Options{})
		server := &configMaps{allowed: true, items: []*corev1.ConfigMap{newConfigMap("a")}}
		i := informer.New(server, configMapKind, informer.Options{PagedLists: true})
		release := make(chan struct{})
		reg, err := i.AddHandler(func(e kube.Event[*corev1.ConfigMap]) {
			if e.Resync {
				<-release
			}
		}, informer.HandlerOptions{Name: "mail", Resync: time.Hour})
		must(t, err)
		must(t, m.AddTo(manager.StageInformers, i))
		stop, wait := run(t, m)
		time.Sleep(90 * time.Minute)
		if s := reg.Snapshot(); s.Running == 0 || s.Backlog != 0 {
			t.Fatalf("the handler stands at %+v; this test looks at nothing", s)
		}
		if code, text := probe(m, "/livez"); code != http.StatusOK {
			t.Errorf("/livez = %d %q, want 200: nothing waits", code, text)
		}
		close(release)
		stop()
		must(t, wait())
	})
}

// crowd returns a manager whose controller "website" has all its workers in do, and
// keys that wait.
func crowd(t *testing.T, opts manager.Options, of reconcile.Options, do func(context.Context)) (m *manager.Manager, end func()) {
	t.Helper()
	m = newManager(t, opts)
	keys := make(chan reconcile.Key)
	c := reconcile.New("website", func(ctx context.Context, _ reconcile.Key) (reconcile.Result, error) {
		do(ctx)
		return reconcile.Result{}, nil
	}, of)
	c.Watch(source.Channel(keys, source.ChannelOptions{}))
	must(t, m.Add(c))
	stop, wait := run(t, m)
	for n := range of.Workers + 3 {
		if n == of.Workers {
			synctest.Wait()
		}
		keys <- reconcile.Key{Namespace: "shop", Name: fmt.Sprintf("site%d", n)}
	}
	synctest.Wait()
	if s := c.Snapshot(); s.Active != of.Workers || s.Queue.Ready != 3 {
		t.Fatalf("%d workers are busy and %d keys wait, want %d and 3", s.Active, s.Queue.Ready, of.Workers)
	}
	return m, func() {
		stop()
		must(t, wait())
	}
}

func TestManager_HungWorkersAreNotAliveAndNotReady_M10(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		m, end := crowd(t, manager.Options{}, reconcile.Options{Workers: 2}, func(context.Context) { neverObeys(release) })
		time.Sleep(50 * time.Second)
		if code, text := probe(m, "/readyz?verbose"); code != http.StatusOK || !strings.Contains(text, "[+]saturation:website ok") {
			t.Errorf("/readyz = %d %q after 50s, want 200", code, text)
		}
		time.Sleep(20 * time.Second)
		want := "[-]saturation:website failed: none of 2 workers has ended a reconcile or made a request for 1m"
		if code, text := probe(m, "/readyz?verbose"); code != http.StatusServiceUnavailable || !strings.Contains(text, want) {
			t.Errorf("/readyz = %d %q, want 503 and %q", code, text, want)
		}
		if code, text := probe(m, "/readyz?exclude=saturation:website"); code != http.StatusOK {
			t.Errorf("/readyz without the check = %d %q, want 200", code, text)
		}
		if code, text := probe(m, "/livez"); code != http.StatusOK {
			t.Errorf("/livez = %d %q after 70s, want 200: that is for readiness alone", code, text)
		}
		time.Sleep(time.Minute)
		code, text := probe(m, "/livez")
		for _, want := range []string{"[-]controller/website failed: none of 2 workers", "; the longest are shop/site", "manager_test.neverObeys("} {
			if code != http.StatusInternalServerError || !strings.Contains(text, want) {
				t.Errorf("/livez = %d %q, want 500 and %q", code, text, want)
			}
		}
		close(release)
		synctest.Wait()
		for _, path := range []string{"/livez", "/readyz"} {
			if code, text := probe(m, path); code != http.StatusOK {
				t.Errorf("%s = %d %q, want 200: the workers are back", path, code, text)
			}
		}
		end()
	})
}

func TestManager_SlowWorkersAreAlive_M10(t *testing.T) {
	sleeps := func(d time.Duration) func(context.Context) {
		return func(ctx context.Context) {
			select {
			case <-time.After(d):
			case <-ctx.Done():
			}
		}
	}
	for _, tc := range []struct {
		name string
		opts manager.Options
		of   reconcile.Options
		do   func(context.Context)
		dead bool // at the end
	}{
		{"slower than the bound", manager.Options{}, reconcile.Options{Workers: 2}, sleeps(9 * time.Minute), true},
		{"a reconcile ends in time", manager.Options{}, reconcile.Options{Workers: 2}, sleeps(100 * time.Second), false},
		{"a longer hard deadline is chosen", manager.Options{}, reconcile.Options{Workers: 2, HardDeadline: 10 * time.Minute}, sleeps(9 * time.Minute), false},
		{"no hard deadline", manager.Options{}, reconcile.Options{Workers: 2, HardDeadline: -1}, sleeps(time.Hour), false},
		{"a longer bound", manager.Options{StuckAfter: 10 * time.Minute}, reconcile.Options{Workers: 2}, sleeps(9 * time.Minute), false},
		{"no bound", manager.Options{StuckAfter: -1}, reconcile.Options{Workers: 2}, sleeps(9 * time.Minute), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tc.opts.ReadyWhenSaturated = true
				m, end := crowd(t, tc.opts, tc.of, tc.do)
				dead := false
				for range 60 {
					time.Sleep(10 * time.Second)
					code, text := probe(m, "/livez")
					dead = dead || code != http.StatusOK
					if dead && !tc.dead {
						t.Fatalf("/livez = %d %q, want 200", code, text)
					}
					if code, text := probe(m, "/readyz"); code != http.StatusOK {
						t.Fatalf("/readyz = %d %q, want 200: saturation does not count", code, text)
					}
				}
				if tc.dead != dead {
					t.Errorf("it was reported dead: %v, want %v", dead, tc.dead)
				}
				end()
			})
		})
	}
}

// A reconcile whose requests are answered late, as in an outage, is not stuck.
func TestManager_WorkersThatMakeRequestsAreAlive_M10(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m *manager.Manager
		opts := manager.Options{Config: &rest.Config{Host: "http://judge", Transport: &judge{takes: 90 * time.Second, fails: errors.New("no answer")}}}
		ask := func(ctx context.Context) {
			for ctx.Err() == nil {
				var cm corev1.ConfigMap
				_ = m.Client().Get(ctx, reconcile.Key{Namespace: "shop", Name: "x"}, &cm)
			}
		}
		started := make(chan struct{})
		m, end := crowd(t, opts, reconcile.Options{Workers: 2}, func(ctx context.Context) { <-started; ask(ctx) })
		close(started)
		for range 50 {
			time.Sleep(10 * time.Second)
			if code, text := probe(m, "/livez"); code != http.StatusOK {
				t.Fatalf("/livez = %d %q, want 200: no restart heals a server that does not answer", code, text)
			}
		}
		time.Sleep(2 * time.Minute) // until the hard deadline ends them
		end()
	})
}

// mute is a transport that never answers, even if the request is cancelled.
type mute struct{ release chan struct{} }

func (d mute) RoundTrip(*http.Request) (*http.Response, error) {
	<-d.release
	return nil, errors.New("released")
}

func TestManager_BlockedElectorIsNotAlive_M10(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := mute{make(chan struct{})}
		m := newManager(t, manager.Options{
			Config:         &rest.Config{Host: "http://judge", Transport: d},
			LeaderElection: &manager.LeaderElection{ID: "website", Namespace: "ops"},
		})
		stop, wait := run(t, m)
		time.Sleep(110 * time.Second)
		if code, text := probe(m, "/livez"); code != http.StatusOK {
			t.Errorf("/livez = %d %q before two minutes, want 200", code, text)
		}
		time.Sleep(20 * time.Second)
		want := "[-]leader-election failed: lease ops/website has been neither requested nor renewed for 2m"
		if code, text := probe(m, "/livez"); code != http.StatusInternalServerError || !strings.Contains(text, want) {
			t.Errorf("/livez = %d %q, want 500 and %q", code, text, want)
		}
		close(d.release)
		stop()
		must(t, wait())
	})
}
