// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simtest_test

import (
	"context"
	"crypto/rand"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/simtest"
	"github.com/flyball-dev/flyball/source"
)

// beforeCreate calls do before each POST of a Secret.
type beforeCreate struct {
	next http.RoundTripper
	do   func()
}

func (b beforeCreate) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPost && r.URL.Path == "/api/v1/namespaces/default/secrets" {
		b.do()
	}
	return b.next.RoundTrip(r)
}

// A generated password is made once: it survives changes of the parent, of the Secret and
// restarts; after a deletion the parent is woken and makes a new one; one that another process
// has created in between is kept.
func TestOnce_KeepsAPassword_R17(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := simtest.New(t, nil, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}})
		users, err := client.New(server.Config, clientscheme.Scheme, client.Options{FieldOwner: "user"})
		if err != nil {
			t.Fatal(err)
		}
		between := func() {}
		cfg := rest.CopyConfig(server.Config)
		cfg.WrapTransport = func(next http.RoundTripper) http.RoundTripper {
			return beforeCreate{next, func() { between() }}
		}
		var filled int
		var seen string
		// process starts a process, whose cache is new.
		process := func() (*reconcile.ObjectController[*corev1.ConfigMap], func()) {
			factory, err := informer.NewSharedInformerFactory(server.Config, clientscheme.Scheme, informer.Options{})
			if err != nil {
				t.Fatal(err)
			}
			own, err := client.New(cfg, clientscheme.Scheme, client.Options{Observer: factory, FieldOwner: "db"})
			if err != nil {
				t.Fatal(err)
			}
			parents, secrets := informer.For[*corev1.ConfigMap](factory), informer.For[*corev1.Secret](factory)
			children := reconcile.NewChildSet(own, clientscheme.Scheme, []reconcile.ChildKind{reconcile.Children(secrets)}, reconcile.ChildSetOptions{FieldOwner: "db"})
			c := reconcile.For(parents, func(ctx context.Context, parent *corev1.ConfigMap) (reconcile.Result, error) {
				secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: parent.Namespace, Name: parent.Name}}
				_, err := children.Apply(ctx, parent, reconcile.Once(secret, func(s *corev1.Secret) {
					filled++
					s.StringData = map[string]string{"password": rand.Text()}
				}))
				seen = string(secret.Data["password"])
				return reconcile.Result{}, err
			}, reconcile.Options{})
			c.Watch(source.Owned(secrets, parents))

			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			for _, run := range []func(context.Context) error{factory.Run, c.Run} {
				running.Go(func() {
					if err := run(ctx); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			end := func() {
				cancel()
				running.Wait()
			}
			return c, end
		}
		c, end := process()

		get := func() *corev1.Secret {
			t.Helper()
			secret := &corev1.Secret{}
			if err := users.Get(t.Context(), kube.Key{Namespace: "default", Name: "db"}, secret); err != nil {
				t.Fatalf("there is no Secret: %v", err)
			}
			return secret
		}
		check := func(what, password string, fills int) {
			t.Helper()
			synctest.Wait()
			if is := string(get().Data["password"]); is == "" || is != password || seen != is || filled != fills {
				t.Errorf("%s: the password on the server is %q, Reconcile has %q, after %d fills; want %q after %d", what, is, seen, filled, password, fills)
			}
		}
		first := get()
		check("new", string(first.Data["password"]), 1)

		parent := &corev1.ConfigMap{}
		if err := users.Get(t.Context(), kube.KeyOf(first), parent); err != nil {
			t.Fatal(err)
		}
		parent.Data = map[string]string{"changed": "yes"}
		if err := users.Update(t.Context(), parent); err != nil {
			t.Fatal(err)
		}
		check("changed parent", string(first.Data["password"]), 1)
		first.Data["password"] = []byte("a person's")
		if err := users.Update(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		check("changed by a person", "a person's", 1)

		if err := users.Delete(t.Context(), get()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		second := string(get().Data["password"])
		if second == "a person's" {
			t.Error("the Secret was not deleted")
		}
		check("deleted", second, 2)

		between = func() { // another process is first
			between = func() {}
			theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}, StringData: map[string]string{"password": "theirs"}}
			if err := reconcile.SetControllerReference(parent, theirs, clientscheme.Scheme); err != nil {
				t.Error(err)
			}
			if err := users.Create(context.Background(), theirs); err != nil {
				t.Error(err)
			}
		}
		if err := users.Delete(t.Context(), get()); err != nil {
			t.Fatal(err)
		}
		check("created by another", "theirs", 3)
		if done := c.Snapshot().Outcomes; done[reconcile.OutcomeError]+done[reconcile.OutcomeConflict] > 0 {
			t.Errorf("the reconciles ended as %v, want none with an error: what is there is kept", done)
		}

		end()
		seen = ""
		c, end = process()
		defer end()
		check("restarted", "theirs", 3)
		if done := c.Snapshot().Outcomes; done[reconcile.OutcomeDone] == 0 {
			t.Errorf("after the restart the reconciles ended as %v, want one that is done", done)
		}
	})
}
