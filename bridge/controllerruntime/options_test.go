// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flyball-dev/flyball/simulate/simtest"
)

// A controller that creates a Secret for each ConfigMap reads it at once, with the one line.
func TestOptions_ReconcilerReadsWhatItWrote(t *testing.T) {
	const objects = 30
	simulated := simtest.New(t, nil)
	mgr, err := ctrl.NewManager(simulated.Config, Options(ctrl.Options{
		Metrics:    server.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	}))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, objects)
	reconciled := reconcile.Func(func(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
		cl := mgr.GetClient()
		secret := &corev1.Secret{}
		err := cl.Get(ctx, req.NamespacedName, secret)
		if client.IgnoreNotFound(err) != nil || err == nil {
			return ctrl.Result{}, err
		}
		secret.ObjectMeta = metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}
		if err := cl.Create(ctx, secret); err != nil {
			done <- fmt.Errorf("create %s: %w; the cache did not show the object of an earlier run", req, err)
			return ctrl.Result{}, nil
		}
		done <- cl.Get(ctx, req.NamespacedName, &corev1.Secret{})
		return ctrl.Result{}, nil
	})
	if err := ctrl.NewControllerManagedBy(mgr).Named("secrets").For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(reconciled); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	for n := range objects {
		if _, err := simulated.Put(configMap("default", fmt.Sprint("c", n), nil)); err != nil {
			t.Fatal(err)
		}
	}
	for range objects {
		if err := <-done; err != nil {
			t.Errorf("a read directly after a write: %v", err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the manager ended with %v", err)
	}
}

func TestOptions_OwnConstructorsStay(t *testing.T) {
	called := ""
	opts := Options(ctrl.Options{
		NewCache:  func(*rest.Config, cache.Options) (cache.Cache, error) { called += "cache "; return nil, nil },
		NewClient: func(*rest.Config, client.Options) (client.Client, error) { called += "client"; return nil, nil },
	})
	_, _ = opts.NewCache(nil, cache.Options{})
	_, _ = opts.NewClient(nil, client.Options{})
	if called != "cache client" {
		t.Errorf("called %q, want what the options had", called)
	}
}

// A cache that is not of NewCache has controller-runtime's client.
func TestNewClient_WithAnotherCacheIsControllerRuntimes(t *testing.T) {
	simulated := simtest.New(t, nil, configMap("default", "a", nil))
	for _, opts := range []client.Options{{}, {Cache: &client.CacheOptions{}}} {
		cl, err := NewClient(simulated.Config, opts)
		if err != nil {
			t.Fatal(err)
		}
		if err := cl.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "a"}, &corev1.ConfigMap{}); err != nil {
			t.Error(err)
		}
	}
}

// reasons are the log lines that name NewInformer. controller-runtime takes one logger for the
// whole process, and none later than half a minute after its start.
var reasons = func() chan string {
	said := make(chan string, 1)
	log.SetLogger(funcr.New(func(_, line string) {
		if strings.Contains(line, "NewInformer is set; remove it") {
			select {
			case said <- line:
			default:
			}
		}
	}, funcr.Options{}))
	return said
}()

// An operator with informers of its own keeps them, and reads why the line has no effect.
func TestNewCache_OwnInformersAreLogged(t *testing.T) {
	if _, err := NewCache(simtest.New(t, nil).Config, cache.Options{NewInformer: toolscache.NewSharedIndexInformer}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-reasons:
	default:
		t.Error("the log does not say that NewInformer is why flyball's informers are not used")
	}
}
