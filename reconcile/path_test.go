// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

func generation(n int64) func(*appsv1.Deployment) {
	return func(d *appsv1.Deployment) { d.Generation = n }
}

// Whatever the timing of writes and the length of reconciles: at rest, the last
// reconcile of each key has begun with the last state of its object.
func TestController_LastReconcileSeesTheLastState_R1(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			s := newServer()
			i := newInformer(t, s)
			lister := i.Lister()
			seen := make([]atomic.Int64, 3)
			c := reconcile.New("test", func(_ context.Context, key reconcile.Key) (reconcile.Result, error) {
				slot := &seen[key.Name[0]-'a']
				obj, err := lister.Get(key)
				if apierrors.IsNotFound(err) {
					slot.Store(-1)
				} else {
					slot.Store(obj.Generation)
				}
				time.Sleep(time.Duration(len(key.Name)+int(slot.Load())%3) * time.Millisecond)
				return reconcile.Result{}, nil
			}, reconcile.Options{Workers: 2})
			c.Watch(source.Kind(i, source.Self, source.SpecChanged))
			run(t, i)
			start(t, c)

			var last [3]int64 // generation; -1: deleted; 0: never existed
			for n := range int64(200) {
				k := random.IntN(3)
				name := string(rune('a' + k))
				if last[k] > 0 && random.IntN(4) == 0 {
					s.Delete(kube.Key{Namespace: "prod", Name: name})
					last[k] = -1
				} else {
					s.Write(deployment(name, generation(n+1)))
					last[k] = n + 1
				}
				time.Sleep(time.Duration(random.IntN(3)) * time.Millisecond)
			}
			time.Sleep(time.Minute)
			for k := range last {
				if got := seen[k].Load(); got != last[k] {
					t.Errorf("seed %d: the last reconcile of %c saw generation %d, want %d (-1 is deleted)", seed, 'a'+k, got, last[k])
				}
			}
		})
	}
}

// However far the watch lags, the next reconcile reads the own write that was shown to
// the informer as a client does.
func TestController_OwnWriteIsVisibleToTheNextReconcile_R4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		i := newInformer(t, s)
		lister := i.Lister()
		var read []int64
		c := reconcile.New("test", func(_ context.Context, key reconcile.Key) (reconcile.Result, error) {
			obj, err := lister.Get(key)
			if err != nil {
				return reconcile.Result{}, err
			}
			read = append(read, obj.Generation)
			if len(read) == 10 {
				return reconcile.Result{}, nil
			}
			s.Hold()
			observe(i, s.Write(deployment(key.Name, generation(obj.Generation+1))))
			return reconcile.Retry("one more"), nil
		}, reconcile.Options{})
		c.Watch(source.Kind(i, source.Self, source.DeletionChanged))
		run(t, i)
		start(t, c)
		s.Write(deployment("a"))
		time.Sleep(time.Hour)
		synctest.Wait()
		if want := []int64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}; !slices.Equal(read, want) {
			t.Errorf("reconciles read generations %v, want %v: each its own last write", read, want)
		}
	})
}

func observe(i *informer.SharedInformer[*appsv1.Deployment], d *appsv1.Deployment) {
	i.Observe(kube.Written{
		Kind: i.Kind(), Effect: kube.Stored, Key: kube.KeyOf(d), UID: d.UID,
		Version: kube.ParseVersion(d.ResourceVersion), Object: d,
	})
}

// cacheConflict is a client's error for a write from an old version: it knows when the
// informer has passed it.
type cacheConflict struct {
	error
	informer *informer.SharedInformer[*appsv1.Deployment]
	stale    *appsv1.Deployment
}

func (c cacheConflict) Unwrap() error { return c.error }

func (c cacheConflict) WhenPassed(do func()) func() {
	than := kube.ParseVersion(c.stale.ResourceVersion)
	reg, err := c.informer.AddHandler(func(e kube.Event[*appsv1.Deployment]) {
		if e.Type != kube.Deleted && kube.ParseVersion(e.New.ResourceVersion) > than {
			do()
		}
	}, informer.HandlerOptions{})
	if err != nil {
		return nil
	}
	return reg.Remove
}

// A write that lost a race is retried with the state that won it, as soon as the cache
// shows that.
func TestController_RunAfterAConflictReadsWhatItMissed_R4(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		i := newInformer(t, s)
		lister := i.Lister()
		var read []string
		c := reconcile.New("test", func(_ context.Context, key reconcile.Key) (reconcile.Result, error) {
			obj, err := lister.Get(key)
			if err != nil {
				return reconcile.Result{}, err
			}
			read = append(read, obj.ResourceVersion)
			if len(read) == 1 {
				s.Hold() // the watch lags
				s.Write(deployment(key.Name, generation(2)))
				return reconcile.Result{}, fmt.Errorf("update: %w", cacheConflict{staleError(key.Name), i, obj})
			}
			return reconcile.Result{}, nil
		}, reconcile.Options{RateLimiter: never{}})
		c.Watch(source.Kind(i, source.Self, source.DeletionChanged)) // the event itself is dropped
		run(t, i)
		start(t, c)
		s.Write(deployment("a"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(read) != 1 {
			t.Fatalf("reconciles read versions %v, want one until the cache has passed the conflict", read)
		}
		s.Release()
		synctest.Wait()
		if len(read) != 2 || read[0] == read[1] {
			t.Errorf("reconciles read versions %v, want two, the second newer than the first", read)
		}
	})
}

// never is a RateLimiter that waits longer than any test.
type never struct{}

func (never) Delay(time.Time, int) time.Duration { return 1000 * time.Hour }

func staleError(name string) error {
	return apierrors.NewConflict(appsv1.Resource("deployments"), name, errors.New("the object has been modified"))
}
