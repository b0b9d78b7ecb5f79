// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flyball-dev/flyball/manager/console"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

// served keeps the handlers that are added to a manager.
type served struct {
	ctrl.Manager
	mux *http.ServeMux
}

func (s served) AddMetricsServerExtraHandler(path string, h http.Handler) error {
	s.mux.Handle(path, h)
	return nil
}

// ask returns the answer to a request from an address.
func (s served) ask(path, from string) (code int, body string) {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.RemoteAddr = from
	w := httptest.NewRecorder()
	s.mux.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

const here, elsewhere = "127.0.0.1:1234", "192.0.2.7:1234"

// with runs a manager with a console and a controller of ConfigMaps, until test returns.
func withConsole(t *testing.T, o ConsoleOptions, of func(client.Client) reconcile.Reconciler, test func(s *simtest.Server, page served), objects ...runtime.Object) {
	t.Helper()
	simulated := simtest.New(t, nil, objects...)
	made, err := ctrl.NewManager(simulated.Config, Options(ctrl.Options{
		Metrics: server.Options{BindAddress: "0"},
	}))
	if err != nil {
		t.Fatal(err)
	}
	mgr := served{made, http.NewServeMux()}
	if err := o.AddConsole(mgr); err != nil {
		t.Fatal(err)
	}
	err = ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).
		WithOptions(controller.Options{NewQueue: NewQueue[reconcile.Request], SkipNameValidation: new(true), MaxConcurrentReconciles: 2}).
		Complete(of(mgr.GetClient()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := mgr.Start(ctx); err != nil {
			t.Error(err)
		}
	})
	defer running.Wait()
	defer cancel()
	test(simulated, mgr)
}

// keeper keeps a Secret of each ConfigMap, and fails or waits if that says so.
func keeper(cl client.Client) reconcile.Reconciler {
	next := right(cl)
	return reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		switch req.Name {
		case "bad":
			return ctrl.Result{}, errors.New("no route to the mailer")
		case "terminal":
			return ctrl.Result{}, reconcile.TerminalError(errors.New("the name is taken"))
		case "later":
			return ctrl.Result{RequeueAfter: time.Hour}, nil
		case "panics":
			panic("a hole")
		}
		return next(ctx, req)
	})
}

func objectsOfConsole() (all []runtime.Object) {
	for _, name := range []string{"good", "bad", "terminal", "later", "panics"} {
		cm := configMap("default", name, map[string]string{"content": "one"})
		cm.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		all = append(all, cm)
	}
	return all
}

type keyView struct {
	State    string
	Outcome  string
	Error    string
	Attempts int
	Timeline []struct {
		Outcome, Error            string
		AfterSeconds, TookSeconds float64
		Causes                    []struct {
			Text    string
			Changed []string
		}
		Requests []struct {
			Verb, Kind, Object, Effect string
			Code                       int
			Fields                     []string
		}
	}
}

func (s served) key(t *testing.T, name string) (k keyView) {
	t.Helper()
	_, body := s.ask(console.JSONPath+"controllers/configmap/key?key=default/"+name, here)
	if err := json.Unmarshal([]byte(body), &k); err != nil || len(k.Timeline) == 0 {
		t.Fatalf("%s: %v, %s", name, err, body)
	}
	return k
}

// The console shows the runs of controller-runtime's workers: why, how they ended, what they sent.
func TestAddConsole_ShowsTheRunsOfTheirWorkers_G17(t *testing.T) {
	for name, wrapped := range map[string]bool{"Recorded": true, "as it is": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				of := func(cl client.Client) reconcile.Reconciler {
					if wrapped {
						return Recorded(keeper(cl))
					}
					return keeper(cl)
				}
				withConsole(t, ConsoleOptions{}, of, func(s *simtest.Server, page served) {
					time.Sleep(10 * time.Second)
					good := page.key(t, "good")
					first := good.Timeline[len(good.Timeline)-1]
					if first.Outcome != "done" || first.Causes[0].Text != "listed ConfigMap default/good" || len(first.Requests) != 1 ||
						first.Requests[0].Verb != "create" || first.Requests[0].Kind != "Secret" || first.Requests[0].Effect != "created" || first.Requests[0].Code != 201 {
						t.Errorf("the first run is %+v, want one that was listed and has created a Secret", first)
					}
					changed := configMap("default", "good", map[string]string{"content": "two"})
					changed.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
					put(t, s, changed)
					time.Sleep(time.Second)
					good = page.key(t, "good")
					updated := good.Timeline[0]
					for _, r := range good.Timeline {
						if len(r.Requests) > 0 {
							updated = r
							break
						}
					}
					if fmt.Sprint(updated.Causes[0].Changed) != `[data["content"]]` || updated.Requests[0].Verb != "update" || updated.Requests[0].Effect != "changed" {
						t.Errorf("the run of a change is %+v, want one that was woken by data.content and has updated the Secret", updated)
					}

					bad, text := page.key(t, "bad"), "it returned an error, which the log has"
					if wrapped {
						text = "no route to the mailer"
					}
					if bad.Outcome != "error" || !strings.HasPrefix(bad.Error, text) || bad.Attempts < 5 || bad.State != "delayed" || !strings.HasPrefix(bad.Timeline[0].Causes[0].Text, "retry: "+text) {
						t.Errorf("a key that fails is %+v, want %q", bad, text)
					}
					if k := page.key(t, "terminal"); k.Outcome != "terminal" || wrapped && !strings.Contains(k.Error, "the name is taken") {
						t.Errorf("a terminal error is %+v", k)
					}
					if k := page.key(t, "later"); k.Outcome != "after" || k.Timeline[0].AfterSeconds != 3600 || k.State != "delayed" {
						t.Errorf("a result with RequeueAfter is %+v", k)
					}
					if k := page.key(t, "panics"); k.Outcome != "error" || wrapped && !strings.Contains(k.Error, "panicked") {
						t.Errorf("a panic is %+v", k)
					}
					code, overview := page.ask(console.Path, here)
					for _, want := range []string{"configmap", "kind ConfigMap", "kind Secret", "2 of its keys fail", "ConfigMap</a></th><td class=\"good\">Live"} {
						if code != http.StatusOK || !strings.Contains(overview, want) {
							t.Errorf("the overview lacks %q: %d, %s", want, code, overview)
						}
					}
					if _, body := page.ask(console.Path+"controllers/configmap/key?key=default/good", here); !strings.Contains(body, "content: two") {
						t.Errorf("the page of a key lacks its object: %s", body)
					}
				}, objectsOfConsole()...)
			})
		})
	}
}

// Requests of other goroutines belong to the reconcile of their context.
func TestRecorded_RequestsOfOtherGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := func(cl client.Client) reconcile.Reconciler {
			next := right(cl)
			return Recorded(reconcile.Func(func(ctx context.Context, req ctrl.Request) (res ctrl.Result, err error) {
				done := make(chan struct{})
				go func() {
					defer close(done)
					res, err = next(ctx, req)
				}()
				<-done
				return res, err
			}))
		}
		withConsole(t, ConsoleOptions{}, of, func(_ *simtest.Server, page served) {
			time.Sleep(time.Second)
			k := page.key(t, "good")
			if first := k.Timeline[len(k.Timeline)-1]; len(first.Requests) != 1 {
				t.Errorf("the first run is %+v, want one request", first)
			}
		}, objectsOfConsole()[0])
	})
}

// Pages show objects, so only this machine is answered unless that is asked for.
func TestAddConsole_OnlyThisMachine_G17(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, o := range []ConsoleOptions{{}, {Remote: true}} {
			withConsole(t, o, keeper, func(_ *simtest.Server, page served) {
				time.Sleep(time.Second)
				for _, path := range []string{console.Path, console.JSONPath + "overview"} {
					if code, _ := page.ask(path, here); code != http.StatusOK {
						t.Errorf("%s from here: %d, want 200", path, code)
					}
					want := http.StatusForbidden
					if o.Remote {
						want = http.StatusOK
					}
					if code, _ := page.ask(path, elsewhere); code != want {
						t.Errorf("%s from elsewhere with %+v: %d, want %d", path, o, code, want)
					}
				}
				if err := AddConsole(page); err == nil || !strings.Contains(err.Error(), "another manager") {
					t.Errorf("a second console: %v, want an error", err)
				}
			}, objectsOfConsole()[0])
		}
		if theConsole.Load() != nil {
			t.Error("the console outlives its manager")
		}
	})
}

// More workers than are recorded, and a console that ends meanwhile, delay nothing.
func TestMirror_NoWorkerWaitsForTheConsole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &display{running: make(chan struct{}), began: time.Now()}
		theConsole.Store(s)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var console, workers sync.WaitGroup
		console.Go(func() { _ = s.Start(ctx) })
		synctest.Wait()
		q := NewQueue[string]("many", nil)
		const keys, most = 2000, 2 * mostMirrored
		for i := range keys {
			q.Add(fmt.Sprint("key-", i))
		}
		var worked atomic.Int64
		for range most {
			workers.Go(func() {
				for {
					key, shutdown := q.Get()
					if shutdown {
						return
					}
					if time.Sleep(time.Millisecond); worked.Add(1) == keys/2 {
						cancel()
					}
					q.Forget(key)
					q.Done(key)
				}
			})
		}
		time.Sleep(500 * time.Microsecond)
		one := s.Controller("many").Snapshot()
		if one.Workers != mostMirrored || one.Active != mostMirrored || one.Queue.Held != most {
			t.Errorf("%d of %d are shown at work, and %d keys are held; want %d of %[4]d, and %d", one.Active, one.Workers, one.Queue.Held, mostMirrored, most)
		}
		time.Sleep(time.Second)
		if n := worked.Load(); n != keys {
			t.Errorf("%d keys have been worked on, want all %d", n, keys)
		}
		q.ShutDown()
		workers.Wait()
		console.Wait()
		time.Sleep(time.Second) // the queue's timer ends
	})
}
