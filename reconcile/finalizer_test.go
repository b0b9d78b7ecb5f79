// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/internal/ownevents"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

const ours = "example.com/test"

// writer sets finalizers on the server as a client does.
type writer struct {
	server server
	crash  func(point string)
	show   func(*appsv1.Deployment) // to the informer; nil: only the watch does
}

func (w writer) SetFinalizers(_ context.Context, obj kube.Object, finalizers []string) error {
	step := "remove"
	if slices.Contains(finalizers, ours) {
		step = "add"
	}
	w.crash(step + ":before")
	now := w.server.get(obj.GetName())
	switch {
	case now == nil:
		return apierrors.NewNotFound(appsv1.Resource("deployments"), obj.GetName())
	case now.ResourceVersion != obj.GetResourceVersion():
		return staleError(obj.GetName())
	}
	now.Finalizers = finalizers
	now = w.server.Write(now)
	if w.show != nil {
		w.show(now)
	}
	w.crash(step + ":after")
	return nil
}

// outside is something outside the cluster that body creates and cleanup frees.
type outside struct {
	t      *testing.T
	server server
	crash  func(point string)

	there   atomic.Bool
	bodies  atomic.Int32
	freed   atomic.Int32
	waiting atomic.Int32 // how often freeing is not done yet
}

func (o *outside) body(_ context.Context, d *appsv1.Deployment) (reconcile.Result, error) {
	o.crash("body:before")
	o.bodies.Add(1)
	if now := o.server.get(d.Name); now == nil || !slices.Contains(now.Finalizers, ours) || !slices.Contains(d.Finalizers, ours) {
		o.t.Errorf("the body runs for an object without the finalizer; what it makes could be left behind")
	}
	o.there.Store(true)
	o.crash("body:after")
	return reconcile.Result{}, nil
}

func (o *outside) cleanup(_ context.Context, d *appsv1.Deployment) (reconcile.Result, error) {
	o.crash("cleanup:before")
	if o.waiting.Add(-1) >= 0 {
		return reconcile.After(time.Second, "still deleting"), nil
	}
	if o.server.get(d.Name) == nil {
		o.t.Error("cleanup runs after the object is gone")
	}
	o.there.Store(false)
	o.freed.Add(1)
	o.crash("cleanup:after")
	return reconcile.Result{}, nil
}

func crashAt(point string) func(string) {
	var crashed atomic.Bool
	return func(at string) {
		if at == point && !crashed.Swap(true) {
			panic("crash at " + point)
		}
	}
}

func finalized(t *testing.T, crash func(string)) (server, *outside, *reconcile.ObjectController[*appsv1.Deployment]) {
	s := newServer()
	o := &outside{t: t, server: s, crash: crash}
	i := newInformer(t, s)
	c := reconcile.For(i, o.body, reconcile.Options{Predicate: source.SpecChanged})
	c.Finalize(ours, writer{s, crash, nil}, o.cleanup)
	run(t, i)
	start(t, c.Controller)
	return s, o, c
}

func TestFinalize_SurvivesACrashBetweenAnyTwoSteps(t *testing.T) {
	for _, point := range []string{
		"none", "add:before", "add:after", "body:before", "body:after",
		"cleanup:before", "cleanup:after", "remove:before", "remove:after",
	} {
		t.Run(point, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, o, c := finalized(t, crashAt(point))
				s.Write(deployment("a"))
				time.Sleep(time.Minute)
				if !o.there.Load() {
					t.Fatal("the body has not run")
				}
				s.remove("a")
				time.Sleep(time.Minute)
				if o.there.Load() || o.freed.Load() < 1 {
					t.Errorf("the thing outside is left behind; cleanup ran %d times", o.freed.Load())
				}
				if got := s.get("a"); got != nil {
					t.Errorf("the object still has finalizers %v, want it gone", got.Finalizers)
				}
				want := uint64(1)
				if point == "none" {
					want = 0
				}
				if got := c.Snapshot().Outcomes; got[reconcile.OutcomePanic] != want || got[reconcile.OutcomeError] != 0 || got[reconcile.OutcomeTerminal] != 0 {
					t.Errorf("outcomes %v, want %d panic and no error", got, want)
				}
			})
		})
	}
}

// With a client that reports its writes, the body need not wait for the watch.
func TestFinalize_GoesOnWithItsOwnWrite_R4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		i := watch(t, s)
		o := &outside{t: t, server: s, crash: crashAt("")}
		w := &remembering{writer: writer{s, o.crash, func(d *appsv1.Deployment) { observe(i, d) }}}
		var same []bool // whether each body runs in the context of the run that wrote the finalizer
		c := reconcile.For(i, func(ctx context.Context, d *appsv1.Deployment) (reconcile.Result, error) {
			same = append(same, ctx == w.written)
			return o.body(ctx, d)
		}, reconcile.Options{Workers: 1})
		c.Finalize(ours, w, o.cleanup)
		s.Write(deployment("a"))
		synctest.Wait()
		s.Hold()
		start(t, c.Controller)
		if len(same) == 0 || !same[0] {
			t.Errorf("bodies in the run that has written the finalizer: %v, want the first to be, while the watch lags", same)
		}
	})
}

// The event of the write is an own event, also where the informer does not show own writes before
// the watch does: nothing but the run that wrote it can run the body.
func TestFinalize_RunsTheBodyThoughTheCacheShowsTheFinalizerLate_R15(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		i := watch(t, s)
		o := &outside{t: t, server: s, crash: crashAt("")}
		c := reconcile.For(i, o.body, reconcile.Options{Workers: 1})
		c.Finalize(ours, reporting{writer{s, o.crash, nil}}, o.cleanup)
		s.Write(deployment("a"))
		synctest.Wait()
		s.Hold()
		start(t, c.Controller)
		s.Release()
		time.Sleep(time.Second)
		if o.bodies.Load() == 0 {
			t.Errorf("the body has not run, outcomes %v", c.Snapshot().Outcomes)
		}
	})
}

// reporting reports writes as those of their reconcile, as package client does, but not to
// the informer.
type reporting struct{ writer }

func (r reporting) SetFinalizers(ctx context.Context, obj kube.Object, finalizers []string) error {
	err := r.writer.SetFinalizers(ctx, obj, finalizers)
	now := r.server.get(obj.GetName())
	ownevents.RunOf(ctx).Wrote(ownevents.Write{
		Kind: appsv1.SchemeGroupVersion.WithKind("Deployment").GroupKind(), Key: kube.KeyOf(obj), UID: obj.GetUID(),
		From: kube.ParseVersion(obj.GetResourceVersion()), To: kube.ParseVersion(now.ResourceVersion),
	})
	return err
}

type remembering struct {
	writer
	written context.Context
}

func (r *remembering) SetFinalizers(ctx context.Context, obj kube.Object, finalizers []string) error {
	r.written = ctx
	return r.writer.SetFinalizers(ctx, obj, finalizers)
}

func TestFinalize_RunsCleanupOnceWithoutACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o, _ := finalized(t, crashAt(""))
		s.Write(deployment("a"))
		time.Sleep(time.Minute)
		s.remove("a")
		time.Sleep(time.Minute)
		if o.bodies.Load() != 1 || o.freed.Load() != 1 {
			t.Errorf("the body ran %d times and cleanup %d times, want once each", o.bodies.Load(), o.freed.Load())
		}
	})
}

func TestFinalize_WaitsUntilCleanupIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o, _ := finalized(t, crashAt(""))
		o.waiting.Store(3)
		s.Write(deployment("a"))
		time.Sleep(time.Minute)
		s.remove("a")
		time.Sleep(2500 * time.Millisecond)
		if s.get("a") == nil || o.freed.Load() != 0 {
			t.Error("the object went before cleanup was done")
		}
		time.Sleep(time.Second)
		if s.get("a") != nil || o.freed.Load() != 1 {
			t.Errorf("the object is there: %t, cleanups done: %d, want it gone after one", s.get("a") != nil, o.freed.Load())
		}
	})
}

// A cleanup may write its own object, also each time that it runs: if the cache shows the write,
// it runs once. If others have changed the spec meanwhile, it runs again with that.
func TestFinalize_CleanupMayWriteItsObject_R26(t *testing.T) {
	for _, row := range []struct {
		what  string
		shown bool
		write func(d *appsv1.Deployment, attempt int32)
		runs  int32
	}{
		{"its status each time", true, func(d *appsv1.Deployment, n int32) { d.Status.Replicas = n }, 1},
		{"its annotations each time", true, func(d *appsv1.Deployment, n int32) { d.Annotations = map[string]string{"n": fmt.Sprint(n)} }, 1},
		{"its status, shown by the late watch alone", false, func(d *appsv1.Deployment, _ int32) { d.Status.Replicas = 1 }, 9}, // with backoff
		{"its finalizers", true, func(d *appsv1.Deployment, _ int32) { d.Finalizers = nil }, 1},
		{"its spec once", true, func(d *appsv1.Deployment, _ int32) { d.Spec.Paused, d.Generation = true, 2 }, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			i := newInformer(t, s)
			show := func(d *appsv1.Deployment) {
				if row.shown {
					i.Observe(kube.Written{
						Kind: i.Kind(), Key: kube.KeyOf(d), Effect: kube.Stored, Object: d, Version: kube.ParseVersion(d.ResourceVersion),
					})
				}
			}
			var runs atomic.Int32
			c := reconcile.For(i, func(context.Context, *appsv1.Deployment) (reconcile.Result, error) { return reconcile.Result{}, nil }, reconcile.Options{})
			c.Finalize(ours, writer{s, crashAt(""), show}, func(_ context.Context, d *appsv1.Deployment) (reconcile.Result, error) {
				now, n := s.get(d.Name), runs.Add(1)
				if !row.shown && n > 1 || n > 20 {
					return reconcile.Result{}, nil
				}
				row.write(now, n)
				s.Hold() // the watch is late
				show(s.Write(now))
				return reconcile.Result{}, nil
			})
			run(t, i)
			start(t, c.Controller)
			s.Write(deployment("a"))
			time.Sleep(time.Minute)
			s.remove("a")
			time.Sleep(time.Second)
			s.Release()
			time.Sleep(time.Hour)
			if is := s.get("a"); is != nil && len(is.Finalizers) > 0 || runs.Load() != row.runs {
				t.Errorf("%s: the cleanup ran %d times, want %d, and the server has %v", row.what, runs.Load(), row.runs, is)
			}
		})
	}
}

func TestFinalize_LeavesOthersFinalizersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, o, _ := finalized(t, crashAt(""))
		theirs := "example.org/other"
		s.Write(deployment("a", func(d *appsv1.Deployment) { d.Finalizers = []string{theirs} }))
		time.Sleep(time.Minute)
		if got := s.get("a").Finalizers; !slices.Equal(got, []string{theirs, ours}) {
			t.Errorf("finalizers %v, want theirs and ours", got)
		}
		s.remove("a")
		time.Sleep(time.Minute)
		if got := s.get("a"); got == nil || !slices.Equal(got.Finalizers, []string{theirs}) || o.freed.Load() != 1 {
			t.Errorf("object %v after %d cleanups, want it waiting for theirs after 1", got, o.freed.Load())
		}
		bodies := o.bodies.Load()
		s.Write(s.get("a")) // another change during the deletion
		time.Sleep(time.Minute)
		if o.bodies.Load() != bodies || o.freed.Load() != 1 {
			t.Error("the body or cleanup ran again for an object that only others hold")
		}
	})
}

func TestFinalize_MisuseIsRemembered(t *testing.T) {
	s := newServer()
	o := &outside{t: t, server: s, crash: crashAt("")}
	i, w := newInformer(t, s), writer{s, o.crash, nil}
	var none *writer
	for name, tc := range map[string]struct {
		do   func(c *reconcile.ObjectController[*appsv1.Deployment])
		want string
	}{
		"empty name":  {func(c *reconcile.ObjectController[*appsv1.Deployment]) { c.Finalize("", w, o.cleanup) }, "not qualified"},
		"no domain":   {func(c *reconcile.ObjectController[*appsv1.Deployment]) { c.Finalize("test", w, o.cleanup) }, "no domain"},
		"nil writer":  {func(c *reconcile.ObjectController[*appsv1.Deployment]) { c.Finalize(ours, nil, o.cleanup) }, "writer is nil"},
		"nil pointer": {func(c *reconcile.ObjectController[*appsv1.Deployment]) { c.Finalize(ours, none, o.cleanup) }, "writer is nil"},
		"nil cleanup": {func(c *reconcile.ObjectController[*appsv1.Deployment]) { c.Finalize(ours, w, nil) }, "cleanup function is nil"},
		"twice": {func(c *reconcile.ObjectController[*appsv1.Deployment]) {
			c.Finalize(ours, w, o.cleanup)
			c.Finalize("example.com/more", w, o.cleanup)
		}, `has the finalizer "example.com/test"`},
	} {
		c := reconcile.For(i, o.body, reconcile.Options{})
		tc.do(c)
		if err := c.Err(); err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), `controller "deployment"`) {
			t.Errorf("%s: got %v, want %q in it", name, err, tc.want)
		}
		if err := c.Run(t.Context()); err == nil {
			t.Errorf("%s: Run returned nil, want the misuse", name)
		}
	}
}

func TestFinalize_AfterTheBeginIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, o, c := finalized(t, crashAt(""))
		c.Finalize("example.com/late", writer{crash: o.crash}, o.cleanup)
		if err := c.Err(); err == nil || !strings.Contains(err.Error(), "has begun to run") {
			t.Errorf("got %v, want it said that the controller has begun", err)
		}
	})
}
