// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

func TestObject_GivesTheObjectThatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.Write(deployment("a", generation(7)))
		i := watch(t, s)
		calls := 0
		f := reconcile.Object(i.Lister(), func(_ context.Context, d *appsv1.Deployment) (reconcile.Result, error) {
			calls++
			return reconcile.After(time.Duration(d.Generation), "generation"), errors.New("fault")
		})
		res, err := f(t.Context(), reconcile.Key{Namespace: "prod", Name: "a"})
		if res != reconcile.After(7, "generation") || err == nil || calls != 1 {
			t.Errorf("got %+v, %v after %d calls, want what the function returned", res, err, calls)
		}
		if res, err := f(t.Context(), reconcile.Key{Namespace: "prod", Name: "gone"}); res != (reconcile.Result{}) || err != nil || calls != 1 {
			t.Errorf("an object that is not there gave %+v, %v, want done", res, err)
		}
	})
}

func TestObject_WaitsForAnEventWhereRetryingCannotHelp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		i := watch(t, s)
		s.Spoil(informer.Key{Namespace: "prod", Name: "bad"}, errors.New("replicas is a text"))
		c := reconcile.New("test", reconcile.Object(i.Lister(), func(context.Context, *appsv1.Deployment) (reconcile.Result, error) {
			return reconcile.Result{}, nil
		}), reconcile.Options{})
		keys := make(chan reconcile.Key, 1)
		c.Watch(source.Channel(keys, source.ChannelOptions{}))
		start(t, c)
		keys <- reconcile.Key{Namespace: "prod", Name: "bad"}
		time.Sleep(time.Hour)
		got := c.Snapshot().Outcomes
		if got[reconcile.OutcomeTerminal] != 1 || got[reconcile.OutcomeError] != 0 {
			t.Errorf("outcomes %v, want one terminal: an object that cannot be decoded heals with its next version", got)
		}
	})
}

// A Reconcile that returns what Get said is run once for each undecodable version,
// not again and again, and once more when the object heals.
func TestController_UndecodableObjectIsReportedOnceForEachVersion_I8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		key := informer.Key{Namespace: "prod", Name: "a"}
		s.Spoil(key, errors.New("replicas is a text"))
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
			{func() { s.Spoil(key, errors.New("replicas is a text still")) }, 2, 0},
			{func() { s.Write(deployment("a")) }, 2, 1},
			{func() { s.Spoil(key, errors.New("replicas is a text")) }, 3, 1},
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

func TestObject_BeforeTheFirstListIsAnErrorThatIsRetried(t *testing.T) {
	i := newInformer(t, newServer())
	f := reconcile.Object(i.Lister(), func(context.Context, *appsv1.Deployment) (reconcile.Result, error) {
		return reconcile.Result{}, nil
	})
	_, err := f(t.Context(), reconcile.Key{Namespace: "prod", Name: "a"})
	if _, ok := errors.AsType[*informer.NotSyncedError](err); !ok {
		t.Errorf("got %v, want a *NotSyncedError: nothing can be said of the object yet", err)
	}
}

func TestObject_NilFunctionIsMisuse(t *testing.T) {
	c := reconcile.New("test", reconcile.Object[*appsv1.Deployment](informer.Lister[*appsv1.Deployment]{}, nil), reconcile.Options{})
	if c.Err() == nil {
		t.Error("Err is nil, want the nil function named")
	}
}
