// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/informertest"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

func doNothing(context.Context, *appsv1.Deployment) (reconcile.Result, error) {
	return reconcile.Result{}, nil
}

func TestFor_CallsTheFunctionWithTheObjectThatIsThere_R16(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.Write(deployment("a", generation(7)))
		i := watch(t, s)
		var j journal
		c := reconcile.For(i, func(_ context.Context, d *appsv1.Deployment) (reconcile.Result, error) {
			j.note(fmt.Sprint(d.Name, d.Generation))
			return reconcile.Result{}, nil
		}, reconcile.Options{})
		keys := make(chan reconcile.Key, 1)
		c.Watch(source.Channel(keys, source.ChannelOptions{}))
		start(t, c.Controller)
		s.Write(deployment("a", generation(8)))
		synctest.Wait()
		s.Delete(kube.Key{Namespace: "prod", Name: "a"})
		keys <- kube.Key{Namespace: "prod", Name: "never"}
		synctest.Wait()
		if got := j.notes(); got != "a7 a8" {
			t.Errorf("called with %q, want %q: each state once, and no call for a key without an object", got, "a7 a8")
		}
		if got := c.Snapshot().Outcomes; got[reconcile.OutcomeDone] != 3 {
			t.Errorf("outcomes %v, want 3 done: two states, and the key that a channel adds; a deletion wakes nobody", got)
		}
	})
}

func TestFor_EndsTheFailuresOfAnObjectThatIsGone_R16(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.Write(deployment("a"))
		c := reconcile.For(watch(t, s), func(context.Context, *appsv1.Deployment) (reconcile.Result, error) {
			return reconcile.Result{}, errors.New("no room")
		}, reconcile.Options{})
		start(t, c.Controller)
		time.Sleep(time.Minute) // the backoff is long now
		if got := len(c.Failures()); got != 1 {
			t.Fatalf("%d failures, want that of the object", got)
		}
		s.Delete(kube.Key{Namespace: "prod", Name: "a"})
		synctest.Wait()
		if got := c.Failures(); len(got) != 0 {
			t.Errorf("failures %v after the object is gone, want none", got)
		}
	})
}

func TestFor_StandbyForgetsObjectsThatAreGone_R16(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.Write(deployment("stays"))
		c := reconcile.For(watch(t, s), doNothing, reconcile.Options{})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Standby(ctx) }()
		for i := range 100 {
			name := fmt.Sprint("passes-", i)
			s.Write(deployment(name))
			synctest.Wait()
			if i == 50 { // one that comes back is not forgotten
				s.Delete(kube.Key{Namespace: "prod", Name: name})
				s.Write(deployment(name))
				continue
			}
			s.Delete(kube.Key{Namespace: "prod", Name: name})
			synctest.Wait()
		}
		if got := c.Snapshot().Queue.Ready; got != 2 {
			t.Errorf("the queue of a standby has %d keys, want 2: of the objects that exist", got)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestFor_EndsTheFailuresOfAnObjectThatGoesDuringItsRun_R16(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.Write(deployment("a"))
		var held atomic.Bool
		free := make(chan struct{})
		c := reconcile.For(watch(t, s), func(context.Context, *appsv1.Deployment) (reconcile.Result, error) {
			if held.Load() {
				<-free
			}
			return reconcile.Result{}, errors.New("no room")
		}, reconcile.Options{})
		start(t, c.Controller)
		time.Sleep(time.Minute)
		held.Store(true)
		time.Sleep(time.Hour) // a run has begun
		s.Delete(kube.Key{Namespace: "prod", Name: "a"})
		synctest.Wait()
		close(free)
		synctest.Wait()
		if got := c.Failures(); len(got) != 0 {
			t.Errorf("failures %v after the object is gone, want none", got)
		}
	})
}

// A key that leaves the queue with its object leaves nothing else.
func TestFor_EndsTheFailuresOfACanceledKey_R16(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.Write(deployment("a"))
		free := make(chan struct{})
		c := reconcile.For(watch(t, s), func(_ context.Context, d *appsv1.Deployment) (reconcile.Result, error) {
			if d.Name == "busy" {
				<-free
			}
			return reconcile.Result{}, errors.New("no room")
		}, reconcile.Options{Workers: 1})
		start(t, c.Controller)
		time.Sleep(time.Minute)
		s.Write(deployment("busy"))
		synctest.Wait()
		s.Write(deployment("a", generation(2))) // which forgets its failures, and adds it
		synctest.Wait()
		s.Delete(kube.Key{Namespace: "prod", Name: "a"})
		synctest.Wait()
		if got := c.Failures(); len(got) != 0 {
			t.Errorf("failures %v of an object that is gone, and whose key is not in the queue", got)
		}
		close(free)
	})
}

func TestFor_TakesTheKindsName(t *testing.T) {
	i := newInformer(t, newServer())
	for _, tc := range []struct {
		opts reconcile.Options
		want string
	}{{reconcile.Options{}, "deployment"}, {reconcile.Options{Name: "roll-out"}, "roll-out"}} {
		c := reconcile.For(i, doNothing, tc.opts)
		if c.Name() != tc.want || c.Snapshot().Name != tc.want || c.Err() != nil {
			t.Errorf("with name %q: it is called %q, its snapshot %q, Err %v; want %q", tc.opts.Name, c.Name(), c.Snapshot().Name, c.Err(), tc.want)
		}
	}
}

func TestFor_PredicateDropsEventsOfItsOwnKindAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		i := watch(t, s)
		var calls atomic.Int32
		c := reconcile.For(i, func(context.Context, *appsv1.Deployment) (reconcile.Result, error) {
			calls.Add(1)
			return reconcile.Result{}, nil
		}, reconcile.Options{Predicate: source.SpecChanged})
		start(t, c.Controller)
		s.Write(deployment("a"))
		synctest.Wait()
		s.Write(deployment("a", func(d *appsv1.Deployment) { d.Status.ReadyReplicas = 1 }))
		synctest.Wait()
		s.Write(deployment("a", generation(2)))
		synctest.Wait()
		if got := calls.Load(); got != 2 {
			t.Errorf("called %d times, want 2: a change of the status does not matter", got)
		}
	})
}

func TestFor_WaitsForAnEventWhereRetryingCannotHelp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		i := watch(t, s)
		s.SetUndecodable(kube.Key{Namespace: "prod", Name: "bad"}, errors.New("replicas is a text"))
		c := reconcile.For(i, doNothing, reconcile.Options{})
		start(t, c.Controller)
		time.Sleep(time.Hour)
		got := c.Snapshot().Outcomes
		if got[reconcile.OutcomeTerminal] != 1 || got[reconcile.OutcomeError] != 0 {
			t.Errorf("outcomes %v, want one terminal: an object that cannot be decoded heals with its next version", got)
		}
	})
}

// A Reconcile that returns the error of Get runs once for each undecodable version, not
// repeatedly, and once more when the object is fixed.
func TestController_UndecodableObjectIsReportedOnceForEachVersion_I8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		key := kube.Key{Namespace: "prod", Name: "a"}
		s.SetUndecodable(key, errors.New("replicas is a text"))
		i := watch(t, s)
		c := reconcile.New("test", func(_ context.Context, key reconcile.Key) (reconcile.Result, error) {
			_, err := i.Lister().Get(key)
			return reconcile.Result{}, reconcile.IgnoreNotFound(err)
		}, reconcile.Options{})
		c.Watch(source.Kind(i, source.Self))
		start(t, c)
		for n, step := range []struct {
			do             func()
			terminal, done uint64
		}{
			{func() {}, 1, 0},
			{func() { s.SetUndecodable(key, errors.New("replicas is a text still")) }, 2, 0},
			{func() { s.Write(deployment("a")) }, 2, 1},
			{func() { s.SetUndecodable(key, errors.New("replicas is a text")) }, 3, 1},
			{func() { s.Delete(key) }, 3, 2},
		} {
			step.do()
			time.Sleep(time.Hour)
			got := c.Snapshot().Outcomes
			if got[reconcile.OutcomeTerminal] != step.terminal || got[reconcile.OutcomeDone] != step.done || got[reconcile.OutcomeError] != 0 {
				t.Errorf("step %d: outcomes %v, want %d terminal, %d done and no error that is retried", n, got, step.terminal, step.done)
			}
		}
	})
}

func TestFor_MisuseIsRemembered(t *testing.T) {
	i := newInformer(t, newServer())
	var none *informer.SharedInformer[*appsv1.Deployment]
	pods := informer.New[*corev1.Pod](informertest.NewServer[*corev1.Pod](), corev1.SchemeGroupVersion.WithKind("Pod"), informer.Options{})
	for name, tc := range map[string]struct {
		c    interface{ Err() error }
		want string
	}{
		"nil informer": {reconcile.For(none, doNothing, reconcile.Options{}), "the informer is nil"},
		"nil function": {reconcile.For(i, nil, reconcile.Options{}), "the reconcile function is nil"},
		"wrong predicate": {reconcile.For(i, doNothing, reconcile.Options{
			Predicate: source.Where(func(*corev1.Pod) bool { return true }),
		}), "is for *v1.Pod"},
		"name of New": {reconcile.New("test", func(context.Context, reconcile.Key) (reconcile.Result, error) {
			return reconcile.Result{}, nil
		}, reconcile.Options{Name: "other"}), "Options.Name"},
		"predicate of New": {reconcile.New("test", func(context.Context, reconcile.Key) (reconcile.Result, error) {
			return reconcile.Result{}, nil
		}, reconcile.Options{Predicate: source.SpecChanged}), "Options.Predicate"},
		"owners and children confused": {func() *reconcile.ObjectController[*appsv1.Deployment] {
			c := reconcile.For(i, doNothing, reconcile.Options{})
			c.Watch(source.Optional[reconcile.Key](source.Owned(i, pods)))
			return c
		}(), "it names keys of owners of kind Pod, and the controller is for kind Deployment"},
	} {
		if err := tc.c.Err(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q in it", name, err, tc.want)
		}
	}
	c := reconcile.For(i, doNothing, reconcile.Options{})
	c.Watch(source.Owned(pods, i), source.OwnedByAny(i, i))
	if err := c.Err(); err != nil {
		t.Errorf("got %v for children of the controller's own kind, want nil", err)
	}
}

// The child of a former owner blocks the child of the new owner: its deletion
// reconciles the new owner, although the UID differs.
func TestFor_EndOfAFormerOwnersChildWakesTheOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		pods := informertest.NewServer[*corev1.Pod]()
		children := informer.New[*corev1.Pod](pods, corev1.SchemeGroupVersion.WithKind("Pod"), informer.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- children.Run(ctx) }()
		defer func() { cancel(); <-ended }()
		i := watch(t, s)
		var calls atomic.Int32
		c := reconcile.For(i, func(context.Context, *appsv1.Deployment) (reconcile.Result, error) {
			calls.Add(1)
			return reconcile.Result{}, nil
		}, reconcile.Options{})
		c.Watch(source.Owned(children, i))
		child := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "a", OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "Deployment", Name: "a", UID: "former", Controller: new(true)},
		}}}
		pods.Write(child)
		s.Write(deployment("a", func(d *appsv1.Deployment) { d.UID = "new" }))
		start(t, c.Controller)
		before := calls.Load()
		pods.Delete(kube.Key{Namespace: "prod", Name: "a"})
		synctest.Wait()
		if calls.Load() != before+1 {
			t.Errorf("called %d times, then %d, want once more when the name is free", before, calls.Load())
		}
	})
}

// An object that is deleted while it is reconciled is no longer there when its status is
// written: that is quiet, as long as the cache may be late. Whatever else is not found is an
// error.
func TestFor_ItsObjectMayGoBeforeItIsWritten_R18(t *testing.T) {
	notFound := func(group, resource, name string) error {
		return fmt.Errorf("patch status of it: %w", apierrors.NewNotFound(schema.GroupResource{Group: group, Resource: resource}, name))
	}
	own := notFound("apps", "deployments", "a")
	key := kube.Key{Namespace: "prod", Name: "a"}
	for _, row := range []struct {
		what   string
		err    error
		remove bool // from the cache, during the reconcile
		again  bool // as another object
		want   reconcile.Outcome
	}{
		{"the cache has the deletion", own, true, false, reconcile.OutcomeDone},
		{"the cache has another object of the name", own, true, true, reconcile.OutcomeDone},
		{"the cache is late", own, false, false, reconcile.OutcomeConflict},
		{"an object of another name", notFound("apps", "deployments", "b"), true, false, reconcile.OutcomeError},
		{"an object of another kind", notFound("apps", "replicasets", "a"), true, false, reconcile.OutcomeError},
		{"an object of another group", notFound("example.dev", "deployments", "a"), true, false, reconcile.OutcomeError},
		{"another error beside it", errors.Join(own, errors.New("no room")), true, false, reconcile.OutcomeError},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer()
			s.Write(deployment("a"))
			calls := 0
			c := reconcile.For(watch(t, s), func(context.Context, *appsv1.Deployment) (reconcile.Result, error) {
				if calls++; calls > 1 {
					return reconcile.Result{}, nil
				}
				if row.remove {
					s.Delete(key)
				}
				if row.again {
					s.Write(deployment("a"))
				}
				time.Sleep(time.Second) // until the cache has it
				return reconcile.Result{}, row.err
			}, reconcile.Options{})
			start(t, c.Controller)
			time.Sleep(1500 * time.Millisecond)
			outcomes := c.Snapshot().Outcomes
			for _, outcome := range []reconcile.Outcome{reconcile.OutcomeConflict, reconcile.OutcomeError} {
				if got, want := outcomes[outcome] > 0, outcome == row.want; got != want {
					t.Errorf("%s: %d reconciles ended as %s, want some: %v", row.what, outcomes[outcome], outcome, want)
				}
			}
		})
	}
}

// The plural of a kind follows no rule; see 0082.
func TestFor_KnowsItsObjectByAnyPlural_R18(t *testing.T) {
	for _, row := range []struct {
		kind, resource string
		done           bool
	}{
		{"Gateway", "gateways", true},
		{"Sandbox", "sandboxes", true},
		{"Branch", "branches", true},
		{"APIKey", "apikeys", true},
		{"NetworkPolicy", "networkpolicies", true},
		{"Ingress", "ingresses", true},
		{"Gateway", "branches", false},
	} {
		kind := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: row.kind}
		obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		err := apierrors.NewNotFound(schema.GroupResource{Group: kind.Group, Resource: row.resource}, "a")
		if got := reconcile.IsNotFoundOf(kind, obj, err); got != row.done {
			t.Errorf("%s and %s: it is the object: %t, want %t", row.kind, row.resource, got, row.done)
		}
	}
}

// What is not found in spite of the cache, again and again, is an error.
func TestFor_ItsObjectIsNotMissingForEver_R18(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.Write(deployment("a"))
		c := reconcile.For(watch(t, s), func(context.Context, *appsv1.Deployment) (reconcile.Result, error) {
			return reconcile.Result{}, apierrors.NewNotFound(appsv1.Resource("deployments"), "a")
		}, reconcile.Options{})
		start(t, c.Controller)
		time.Sleep(time.Minute)
		if got := c.Snapshot().Outcomes; got[reconcile.OutcomeConflict] != 10 || got[reconcile.OutcomeError] == 0 {
			t.Errorf("outcomes %v, want ten conflicts and then errors", got)
		}
	})
}
