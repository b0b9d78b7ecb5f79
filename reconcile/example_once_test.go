// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/testing/webv1"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

func setupWithPassword(mgr *manager.Manager) error {
	websites := informer.For[*webv1.Website](mgr.Informers())
	secrets := informer.For[*corev1.Secret](mgr.Informers())
	children := reconcile.NewChildSet(mgr.Client(), mgr.Scheme(), []reconcile.ChildKind{reconcile.Children(secrets)},
		reconcile.ChildSetOptions{FieldOwner: "website"})
	c := reconcile.For(websites, func(ctx context.Context, site *webv1.Website) (reconcile.Result, error) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name}}
		_, err := children.Apply(ctx, site, reconcile.Once(secret, func(s *corev1.Secret) {
			s.StringData = map[string]string{"password": rand.Text()}
		}))
		return reconcile.Result{}, err // secret.Data has the password, whenever it was made
	}, reconcile.Options{Predicate: source.SpecChanged})
	c.Watch(source.Owned(secrets, websites)) // a deleted Secret is made again, with another password
	return mgr.Add(c)
}

// A password is generated when the Secret is created, and then kept.
func ExampleOnce() {
	var mgr *manager.Manager // of your program
	if err := setupWithPassword(mgr); err != nil {
		fmt.Println(err)
	}
}
