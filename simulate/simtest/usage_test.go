// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simtest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

// using is a program with an informer of ConfigMaps, which a controller has, and another one.
type using struct {
	maps    informer.Lister[*corev1.ConfigMap]
	secrets *informer.SharedInformer[*corev1.Secret]
}

// Whether an informer is used, and how, is found where it costs, and not otherwise.
func TestInformer_UseThatCosts_I13(t *testing.T) {
	idle := func(using) {}
	marked := labels.SelectorFromSet(labels.Set{"mark": "1"})
	for name, c := range map[string]struct {
		reconcile func(using)   // each run
		outside   func(using)   // every minute
		every     time.Duration // the next run
		want      []string      // what is found after two hours
	}{
		"nothing reads the Secrets": {idle, idle, 20 * time.Second, []string{"Secret unread watch"}},
		"a program at rest":         {idle, idle, 0, nil},
		"a few reconciles":          {idle, idle, 2 * time.Minute, nil},
		"Get": {func(u using) {
			_, _ = u.secrets.Lister().Get(kube.Key{Namespace: "default", Name: "none"})
		}, idle, 20 * time.Second, nil},
		"List outside of reconciles": {idle, func(u using) {
			_, _ = u.secrets.Lister().List(informer.QueryOptions{})
			_, _ = u.maps.List(informer.QueryOptions{})
		}, 20 * time.Second, nil},
		"List of all": {func(u using) { _, _ = u.maps.List(informer.QueryOptions{}) }, func(u using) {
			for range u.secrets.Lister().All() {
			}
		}, 20 * time.Second, []string{"ConfigMap expensive read TestInformer_UseThatCosts_I13.func"}},
		"List by labels": {func(u using) { _, _ = u.maps.List(informer.QueryOptions{Selector: marked}) }, idle, 20 * time.Second, []string{"ConfigMap expensive read TestInformer_UseThatCosts_I13.func", "Secret unread watch"}},
		"All, and the loop ends early": {func(u using) {
			for range u.maps.All() {
				break
			}
		}, func(u using) {
			_, _ = u.secrets.AddHandler(func(kube.Event[*corev1.Secret]) {}, informer.HandlerOptions{})
		}, 20 * time.Second, nil},
		"List of a namespace": {func(u using) { _, _ = u.maps.List(informer.QueryOptions{Namespace: "many", Selector: marked}) }, func(u using) {
			_, _ = u.secrets.Lister().List(informer.QueryOptions{Namespace: "default"})
		}, 20 * time.Second, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lines := map[string]int{}
				log := funcr.New(func(_, args string) {
					for _, kind := range []state.FindingKind{state.UnreadWatch, state.ExpensiveRead} {
						if strings.Contains(args, string(kind)) {
							lines[string(kind)]++
						}
					}
				}, funcr.Options{})
				objects := []runtime.Object{configMap("default", "site"), &corev1.Secret{ObjectMeta: configMap("default", "password").ObjectMeta}}
				for i := range 1000 {
					objects = append(objects, configMap("many", fmt.Sprint("map-", i)))
				}
				server := simtest.New(t, nil, objects...)
				mgr, err := manager.New(manager.Options{Config: server.Config, MetricsAddress: "0", HealthAddress: "0", Logger: log})
				if err != nil {
					t.Fatal(err)
				}
				maps := informer.For[*corev1.ConfigMap](mgr.Informers())
				u := using{maps.Lister(), informer.For[*corev1.Secret](mgr.Informers())}
				r := reconcile.For(maps, func(_ context.Context, obj *corev1.ConfigMap) (reconcile.Result, error) {
					if obj.Name != "site" {
						return reconcile.Result{}, nil
					}
					c.reconcile(u)
					return reconcile.After(c.every, "again"), nil
				}, reconcile.Options{})
				if c.every == 0 {
					r = reconcile.For(maps, func(context.Context, *corev1.ConfigMap) (reconcile.Result, error) { return reconcile.Result{}, nil }, reconcile.Options{})
				}
				if err := mgr.Add(r); err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				done := make(chan error, 1)
				go func() { done <- mgr.Run(ctx) }()
				time.Sleep(time.Minute) // the reconciles of the first list do not count
				for n := range 180 {
					c.outside(u)
					time.Sleep(time.Minute)
					if found := findingsOf(mgr); n < 55 && slices.Contains(found, "Secret unread watch") {
						t.Fatalf("after %d minutes %q is found", n, found)
					}
				}
				found := findingsOf(mgr)
				if len(found) != len(c.want) {
					t.Fatalf("found %q, want %q", found, c.want)
				}
				for i, want := range c.want {
					if !strings.Contains(found[i], want) {
						t.Errorf("found %q, want %q", found, c.want)
					}
				}
				if len(lines) != len(c.want) {
					t.Errorf("%v is logged, want %q", lines, c.want)
				}
				for kind, n := range lines {
					if n != 1 {
						t.Errorf("%s is logged %d times, want once", kind, n)
					}
				}
				_, _ = u.secrets.Lister().Get(kube.Key{Namespace: "default", Name: "password"})
				if found := findingsOf(mgr); slices.Contains(found, "Secret unread watch") {
					t.Errorf("after a read %q is found", found)
				}
				stop()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// findingsOf returns what is wrong with the informers.
func findingsOf(mgr *manager.Manager) (found []string) {
	for _, i := range mgr.Snapshot().Informers {
		for _, f := range i.Findings(time.Now()) {
			found = append(found, strings.TrimSpace(fmt.Sprintf("%s %s %s", i.Kind.Kind, f.Kind, strings.TrimPrefix(f.Caller, "github.com/flyball-dev/flyball/simulate/simtest_test."))))
			if f.Kind == state.UnreadWatch && (f.Bytes == 0 || f.Objects != 1) {
				found = append(found, fmt.Sprintf("of %d bytes for %d objects", f.Bytes, f.Objects))
			}
		}
	}
	return found
}
