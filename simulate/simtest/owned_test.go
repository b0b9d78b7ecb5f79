// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simtest_test

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/simulate/simtest"
	"github.com/flyball-dev/flyball/source"
)

// refusing answers requests for the resources of a group with 503 while it is set.
type refusing struct {
	next http.RoundTripper
	set  *atomic.Bool
}

func (f refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	if f.set.Load() && (r.URL.Path == "/apis/apps/v1" || r.URL.Path == "/apis/rbac.authorization.k8s.io/v1") {
		return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: http.NoBody, Request: r}, nil
	}
	return f.next.RoundTrip(r)
}

// Children are known before discovery answers for their owners: no key is added that no owner
// can have, and each that one has is added once it is known.
func TestOwned_WaitsForTheScopeOfItsOwners_R27(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		yes := true
		server := simtest.New(t, nil, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "child",
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "Deployment", Name: "local", UID: "1", Controller: &yes},
				{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole", Name: "global", UID: "2"},
			}}})
		var refused atomic.Bool
		refused.Store(true)
		server.Config.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return refusing{next, &refused} }
		factory, err := informer.NewSharedInformerFactory(server.Config, clientscheme.Scheme, informer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		maps := informer.For[*corev1.ConfigMap](factory)
		locals := source.Owned(maps, informer.For[*appsv1.Deployment](factory))
		globals := source.OwnedByAny(maps, informer.For[*rbacv1.ClusterRole](factory))
		released := informer.For[*corev1.ConfigMap](factory)
		ending := source.Owned(released, informer.For[*appsv1.Deployment](factory))

		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		running.Go(func() { _ = factory.Run(ctx) })
		var keys [2][]source.Key
		var mu sync.Mutex
		for i, s := range []source.Source[source.Key]{locals, globals} {
			running.Go(func() {
				if err := s.Run(ctx, func(key source.Key, _ source.Cause) {
					mu.Lock()
					defer mu.Unlock()
					keys[i] = append(keys[i], key)
				}); err != nil {
					t.Error(err)
				}
			})
		}
		ended := make(chan error, 1)
		running.Go(func() { ended <- ending.Run(ctx, func(source.Key, source.Cause) {}) })
		added := func() [2][]source.Key {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return keys
		}

		time.Sleep(10 * time.Second)
		if got := added(); got[0] != nil || got[1] != nil || locals.Snapshot().Synced || globals.Snapshot().Synced {
			t.Errorf("before discovery has answered %v were added, and the sources are synced: %t, %t", got, locals.Snapshot().Synced, globals.Snapshot().Synced)
		}
		if <-maps.Synced(); !maps.Snapshot().Synced {
			t.Error("the informer of the children has not synced")
		}
		released.Release()
		time.Sleep(2 * time.Second)
		select {
		case err := <-ended:
			if err == nil {
				t.Error("a source whose informer was released before it had synced returned nil")
			}
		default:
			t.Error("a source whose informer was released waits on")
		}
		refused.Store(false)
		time.Sleep(5 * time.Second)
		got := added()
		if want := []source.Key{{Namespace: "default", Name: "local"}}; !slices.Equal(got[0], want) {
			t.Errorf("keys of a namespaced owner: %v, want %v", got[0], want)
		}
		if want := []source.Key{{Name: "global"}}; !slices.Equal(got[1], want) {
			t.Errorf("keys of a cluster-scoped owner: %v, want %v", got[1], want)
		}
	})
}
