// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simtest_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

// A Secret that the program makes for the parent beside its set stays, in typed and in
// unstructured form, while the watch is 400 ms late and when it has caught up.
func TestChildSet_LateWatchPrunesNothingMadeBesideIt_R9(t *testing.T) {
	kind := corev1.SchemeGroupVersion.WithKind("Secret")
	for _, form := range []string{"typed", "unstructured"} {
		t.Run(form, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := simtest.New(t, nil, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}})
				factory, err := informer.NewSharedInformerFactory(server.Config, clientscheme.Scheme, informer.Options{})
				if err != nil {
					t.Fatal(err)
				}
				own, err := client.New(server.Config, clientscheme.Scheme, client.Options{Observer: factory, FieldOwner: "me"})
				if err != nil {
					t.Fatal(err)
				}
				var children reconcile.ChildKind
				var secret func(name string) kube.Object
				if form == "typed" {
					children = reconcile.Children(informer.For[*corev1.Secret](factory))
					secret = func(name string) kube.Object {
						return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Data: map[string][]byte{"a": {1}}}
					}
				} else {
					children = reconcile.Children(informer.ForKind(factory, kind))
					secret = func(name string) kube.Object {
						u := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"a": "AQ=="}}}
						u.SetGroupVersionKind(kind)
						u.SetNamespace("default")
						u.SetName(name)
						return u
					}
				}
				set := reconcile.NewChildSet(own, clientscheme.Scheme, []reconcile.ChildKind{children}, reconcile.ChildSetOptions{})
				ctx, cancel := context.WithCancel(t.Context())
				var running sync.WaitGroup
				running.Go(func() {
					if err := factory.Run(ctx); err != nil {
						t.Error(err)
					}
				})
				defer running.Wait()
				defer cancel()
				synctest.Wait()

				ctx = t.Context()
				parent := &corev1.ConfigMap{}
				if err := server.Client.Get(ctx, kube.Key{Namespace: "default", Name: "p"}, parent); err != nil {
					t.Fatal(err)
				}
				// lag makes the watch late until the returned function is called, 400 ms later.
				lag := func() (catchUp func()) {
					secrets := schema.GroupResource{Resource: "secrets"}
					server.LagKindTo(secrets, server.Revision())
					return func() {
						time.Sleep(400 * time.Millisecond)
						server.CatchUpKind(secrets)
						synctest.Wait()
					}
				}
				apply := func(want string, wanted ...kube.Object) {
					t.Helper()
					beside := secret("password")
					if _, err := own.CreateOrUpdate(ctx, beside, func() error {
						return reconcile.SetControllerReference(parent, beside, clientscheme.Scheme)
					}); err != nil {
						t.Fatal(err)
					}
					if report, err := set.Apply(ctx, parent, wanted...); err != nil || report.String() != want {
						t.Errorf("got %v, %v; want %s", report, err, want)
					}
				}
				stored := func() *corev1.Secret {
					t.Helper()
					out := &corev1.Secret{}
					if err := server.Client.Get(ctx, kube.Key{Namespace: "default", Name: "password"}, out); err != nil {
						t.Fatal(err)
					}
					return out
				}

				catchUp := lag()
				apply("created Secret default/a, Secret default/b, Secret default/c; 0 unchanged", secret("a"), secret("b"), secret("c"))
				first := stored().UID
				apply("pruned Secret default/b; 2 unchanged", secret("a"), secret("c"))
				catchUp()
				apply("2 unchanged", secret("a"), secret("c"))

				catchUp = lag() // others write, which the cache does not show
				if err := server.Client.Patch(ctx, stored(), client.MergePatch(map[string]any{"metadata": map[string]any{"labels": map[string]any{"by": "others"}}})); err != nil {
					t.Fatal(err)
				}
				left := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}}
				if err := server.Client.Patch(ctx, left, client.MergePatch(map[string]any{"metadata": map[string]any{"ownerReferences": nil}})); err != nil {
					t.Fatal(err)
				}
				apply("1 unchanged", secret("a"))
				catchUp()
				apply("1 unchanged", secret("a"))
				if report, err := set.PruneAll(ctx, parent); err != nil || report.String() != "pruned Secret default/a; 0 unchanged" {
					t.Errorf("got %v, %v; want the set's child pruned alone", report, err)
				}
				if is := stored().UID; is != first {
					t.Errorf("the Secret made beside the set has the UID %s, want %s of the first", is, first)
				}
			})
		})
	}
}
