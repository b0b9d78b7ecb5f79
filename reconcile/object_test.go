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

func TestObject_BeforeTheFirstListIsAnErrorThatIsRetried(t *testing.T) {
	i := newInformer(newServer())
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
