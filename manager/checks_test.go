// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

func TestManager_ReadyMeansSynced_M4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, manager.Options{})
		server := &configMaps{}
		i := informer.New(server, configMapKind, informer.Options{PagedLists: true})
		must(t, m.AddTo(manager.StageInformers, i))
		c := reconcile.New("copier", func(context.Context, reconcile.Key) (reconcile.Result, error) {
			return reconcile.Result{}, nil
		}, reconcile.Options{})
		c.Watch(source.Kind(i, source.Self))
		must(t, m.Add(c))

		stop, wait := run(t, m)
		time.Sleep(time.Minute)
		code, text := probe(m, "/readyz")
		if code != http.StatusServiceUnavailable {
			t.Errorf("/readyz = %d, want 503: nothing is synced", code)
		}
		for _, want := range []string{
			"[-]informer/ConfigMap failed: not synced in all namespaces: Forbidden since ",
			`User "robot" cannot list configmaps at the cluster scope`,
			`[-]controller/copier failed: not synced: running since `, "waits for kind ConfigMap",
			"[+]ping ok\n", "[+]shutdown ok\n", "readyz check failed\n",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("/readyz lacks %q:\n%s", want, text)
			}
		}
		if code, text := probe(m, "/livez"); code != http.StatusOK {
			t.Errorf("/livez = %d %q, want 200: no restart heals a missing right", code, text)
		}

		server.allow()
		time.Sleep(time.Hour)
		if code, text := probe(m, "/readyz"); code != http.StatusOK || text != "ok" {
			t.Errorf("/readyz = %d %q, want 200 ok: all is synced", code, text)
		}
		stop()
		must(t, wait())
	})
}

func TestManager_AliveMeansProgress_M4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, manager.Options{})
		release := make(chan struct{})
		keys := make(chan reconcile.Key)
		c := reconcile.New("website", func(context.Context, reconcile.Key) (reconcile.Result, error) {
			return neverObeys(release)
		}, reconcile.Options{Workers: 2, HardDeadline: 10 * time.Minute})
		c.Watch(source.Channel(keys, source.ChannelOptions{}))
		must(t, m.Add(c))
		stop, wait := run(t, m)
		keys <- reconcile.Key{Namespace: "shop", Name: "front"}

		time.Sleep(10*time.Minute + 59*time.Second)
		if code, text := probe(m, "/livez"); code != http.StatusOK {
			t.Errorf("/livez = %d %q after 10m59s, want 200: it is slow, and may yet obey", code, text)
		}
		time.Sleep(2 * time.Second)
		for _, path := range []string{"/livez", "/healthz"} {
			code, text := probe(m, path)
			want := "[-]controller/website failed: 1 of 2 workers are lost: the reconcile ignores its context, cancelled at the hard deadline of 10m0s: shop/front ("
			if code != http.StatusInternalServerError || !strings.Contains(text, want) {
				t.Errorf("%s = %d %q, want 500 and %q", path, code, text, want)
			}
			if where := "manager_test.neverObeys("; !strings.Contains(text, where) || strings.Count(text, "\tgoroutine ") != 1 {
				t.Errorf("%s = %q, want the stack of that worker, which has %q", path, text, where)
			}
		}
		if code, text := probe(m, "/readyz"); code != http.StatusOK {
			t.Errorf("/readyz = %d %q, want 200: it is synced", code, text)
		}
		close(release)
		synctest.Wait()
		if code, text := probe(m, "/livez"); code != http.StatusOK {
			t.Errorf("/livez = %d %q, want 200: the worker is back", code, text)
		}
		stop()
		must(t, wait())
	})
}

// neverObeys is a reconcile that ignores its context.
//
//go:noinline
func neverObeys(release <-chan struct{}) (reconcile.Result, error) {
	<-release
	return reconcile.Result{}, nil
}

func TestManager_StandbyOutageAndSlownessAreNeverDead_M4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, manager.Options{
			Config:         &rest.Config{Host: "http://judge", Transport: &judge{fails: errors.New("connection refused")}},
			LeaderElection: &manager.LeaderElection{ID: "website", Namespace: "ops"},
		})
		slow := func(context.Context, reconcile.Key) (reconcile.Result, error) {
			time.Sleep(9 * time.Minute)
			return reconcile.Result{}, errors.New("and in vain")
		}
		keys, waiting := make(chan reconcile.Key), make(chan reconcile.Key)
		everywhere := reconcile.New("everywhere", slow, reconcile.Options{Workers: 1})
		everywhere.Watch(source.Channel(keys, source.ChannelOptions{}))
		must(t, m.AddTo(manager.StageStandby, everywhere))
		led := reconcile.New("led", slow, reconcile.Options{})
		led.Watch(source.Channel(waiting, source.ChannelOptions{}))
		led.Watch(source.Kind(informer.For[*corev1.ConfigMap](m.Informers()), source.Self)) // which never syncs
		must(t, m.Add(led))
		stop, wait := run(t, m)
		keys <- reconcile.Key{Name: "x"}
		waiting <- reconcile.Key{Name: "y"}
		for range 3 * 60 {
			time.Sleep(time.Minute)
			if code, text := probe(m, "/livez"); code != http.StatusOK {
				t.Fatalf("/livez = %d %q, want 200: no restart heals a server, a standby or a slow reconcile", code, text)
			}
		}
		if n := everywhere.Snapshot().Outcomes[reconcile.OutcomeError]; n == 0 {
			t.Error("nothing was reconciled; this test looks at nothing")
		}
		if led.Snapshot().Queue.Ready != 1 {
			t.Errorf("%d keys wait for the election, want 1", led.Snapshot().Queue.Ready)
		}
		stop()
		must(t, wait())
	})
}

// prepared syncs when it runs.
type prepared struct {
	manager.RunnableFunc
	synced chan struct{}
}

func (p prepared) Synced() <-chan struct{} { return p.synced }

// A Runnable without Standby would keep a standby from ever being ready.
func TestManager_ReadyDoesNotWaitForTheElection_M4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, manager.Options{
			Config:         &rest.Config{Host: "http://judge", Transport: &judge{fails: errors.New("connection refused")}},
			LeaderElection: &manager.LeaderElection{ID: "website", Namespace: "ops"},
		})
		wait := func(ctx context.Context) error { <-ctx.Done(); return nil }
		must(t, m.Add(prepared{wait, make(chan struct{})}))
		stop, end := run(t, m)
		time.Sleep(time.Minute)
		want := "does not count: it waits to lead: not synced: waiting since "
		if code, text := probe(m, "/readyz?verbose"); code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("/readyz = %d, want 200 and %q:\n%s", code, want, text)
		}
		must(t, m.AddTo(manager.StageStandby, prepared{wait, make(chan struct{})}))
		if code, text := probe(m, "/readyz"); code != http.StatusServiceUnavailable {
			t.Errorf("/readyz = %d, want 503: this one runs, and is not synced\n%s", code, text)
		}
		stop()
		must(t, end())
	})
}

func TestManager_NoHardDeadlineMeansNoReconcileIsStuck_M4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, manager.Options{})
		keys := make(chan reconcile.Key)
		c := reconcile.New("patient", func(ctx context.Context, _ reconcile.Key) (reconcile.Result, error) {
			time.Sleep(100 * time.Hour)
			return reconcile.Result{}, nil
		}, reconcile.Options{HardDeadline: -1})
		c.Watch(source.Channel(keys, source.ChannelOptions{}))
		must(t, m.Add(c))
		stop, wait := run(t, m)
		keys <- reconcile.Key{Name: "x"}
		time.Sleep(99 * time.Hour)
		if code, text := probe(m, "/livez"); code != http.StatusOK {
			t.Errorf("/livez = %d %q, want 200: it has been given all the time it wants", code, text)
		}
		time.Sleep(2 * time.Hour)
		stop()
		must(t, wait())
	})
}

func TestProbe_AnswersAsKubernetesComponentsDo(t *testing.T) {
	m := newManager(t, manager.Options{})
	must(t, m.AddReadyCheck("database", func(context.Context) error { return errors.New("no route\nto host") }))
	must(t, m.AddReadyCheck("cache", func(context.Context) error { panic("boom") }))
	must(t, m.AddLiveCheck("disk", func(context.Context) error { return nil }))
	for _, tc := range []struct {
		path string
		code int
		text string // ends with "…": only the beginning
	}{
		{"/livez", 200, "ok"},
		{"/healthz", 200, "ok"},
		{"/livez?verbose", 200, "[+]ping ok\n[+]disk ok\nlivez check passed\n"},
		{"/livez?verbose=true", 200, "[+]ping ok\n[+]disk ok\nlivez check passed\n"},
		{"/livez/disk", 200, "ok"},
		{"/livez/disk?verbose", 200, "[+]disk ok\nlivez check passed\n"},
		{"/livez/nothing", 404, "livez has no check \"nothing\"\n"},
		{"/readyz", 503, "[+]ping ok\n[+]shutdown ok\n[-]database failed: no route\n\tto host\n[-]cache failed: panic: boom…"},
		{"/readyz/database", 503, "[-]database failed: no route\n\tto host\nreadyz check failed\n"},
		{"/readyz?exclude=database&exclude=cache", 200, "ok"},
		{"/readyz?exclude=database&exclude=cache&exclude=typo&verbose", 200,
			"[+]ping ok\n[+]shutdown ok\n[+]database excluded: ok\n[+]cache excluded: ok\nwarn: exclude=typo names no check\nreadyz check passed\n"},
		{"/", 404, "404 page not found\n"},
	} {
		code, text := probe(m, tc.path)
		begin, part := strings.CutSuffix(tc.text, "…")
		if code != tc.code || (text != tc.text && !(part && strings.HasPrefix(text, begin))) {
			t.Errorf("GET %s = %d %q\nwant %d %q", tc.path, code, text, tc.code, tc.text)
		}
	}
}

func TestProbe_MisusedChecksAreRefused(t *testing.T) {
	m := newManager(t, manager.Options{})
	yes := func(context.Context) error { return nil }
	must(t, m.AddReadyCheck("a", yes))
	must(t, m.AddLiveCheck("a", yes)) // another probe
	for _, err := range []error{m.AddReadyCheck("a", yes), m.AddReadyCheck("", yes), m.AddLiveCheck("b", nil)} {
		if err == nil {
			t.Error("a check of a taken or empty name, or a nil one, was accepted")
		}
	}
}

// The state, the log and /readyz say what is the case before the first list.
func TestManager_WhatWasNeverListedIsNotReadable(t *testing.T) {
	for _, row := range []struct {
		what    string
		refusal error
		state   state.State
		says    []string
	}{
		{"unreachable", &url.Error{Op: "Get", URL: "https://127.0.0.1:6443/api/v1/configmaps", Err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}},
			state.Stale, []string{"https://127.0.0.1:6443/", "it has never been listed: reads fail, and readiness and controllers wait for it"}},
		{"a field that nobody can select by", apierrors.NewBadRequest("field label not supported: spec.nope"),
			state.Misuse, []string{"the server cannot select by this field: field label not supported: spec.nope; select by a label"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var lines strings.Builder
			log := funcr.New(func(_, args string) {
				mu.Lock()
				defer mu.Unlock()
				lines.WriteString(args + "\n")
			}, funcr.Options{})
			m := newManager(t, manager.Options{})
			server := &configMaps{refusal: row.refusal}
			i := informer.New(server, configMapKind, informer.Options{PagedLists: true, Logger: log})
			must(t, m.AddTo(manager.StageInformers, i))
			keys := make(chan reconcile.Key, 1)
			var read error
			c := reconcile.New("reader", func(_ context.Context, key reconcile.Key) (reconcile.Result, error) {
				_, read = i.Lister().Get(key)
				return reconcile.Result{}, nil
			}, reconcile.Options{})
			c.Watch(source.Channel(keys, source.ChannelOptions{}))
			must(t, m.Add(c))
			stop, wait := run(t, m)
			keys <- reconcile.Key{Namespace: "default", Name: "a"}
			time.Sleep(time.Minute)
			_, ready := probe(m, "/readyz")
			mu.Lock()
			logged := lines.String()
			mu.Unlock()
			scope := i.Snapshot().Scopes[0]
			if scope.State != row.state {
				t.Errorf("%s: the state is %s, want %s", row.what, scope.State, row.state)
			}
			for _, want := range row.says {
				for where, text := range map[string]string{"the log": logged, "/readyz": ready, "the state": scope.String()} {
					if !strings.Contains(text, want) {
						t.Errorf("%s: %s lacks %q:\n%s", row.what, where, want, text)
					}
				}
			}
			if strings.Contains(logged+ready, "stays readable") {
				t.Errorf("%s: something is said to be readable:\n%s%s", row.what, logged, ready)
			}
			if read == nil || !strings.Contains(read.Error(), "give the controller a source of this kind with Watch") {
				t.Errorf("%s: a read in Reconcile gives %v, want the advice to watch the kind", row.what, read)
			}
			if next := time.Until(scope.NextTry); row.state == state.Misuse && next < 10*time.Second {
				t.Errorf("%s: it is tried again after %s, want a slow pace", row.what, next)
			}
			stop()
			must(t, wait())
		})
	}
}
