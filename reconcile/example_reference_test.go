// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

func setupWithReferences(mgr *manager.Manager) error {
	ingresses := informer.For[*networkingv1.Ingress](mgr.Informers())
	secrets := informer.For[*corev1.Secret](mgr.Informers())
	err := ingresses.AddIndex("secret", func(ingress *networkingv1.Ingress) (named []string) {
		for _, tls := range ingress.Spec.TLS {
			named = append(named, ingress.Namespace+"/"+tls.SecretName)
		}
		return named
	})
	if err != nil {
		return err
	}
	naming := func(secret *corev1.Secret) (keys []reconcile.Key) {
		found, err := ingresses.Lister().List(informer.QueryOptions{
			Index: "secret", IndexValue: secret.Namespace + "/" + secret.Name,
			Unsynced: true, // an error would lose the event; what is listed later is reconciled anyway
		})
		if err != nil {
			return nil // the index has another name
		}
		for _, ingress := range found {
			keys = append(keys, kube.KeyOf(ingress))
		}
		return keys
	}
	r := &ingressReconciler{secrets: secrets.Lister()}
	c := reconcile.For(ingresses, r.reconcile, reconcile.Options{})
	c.Watch(source.Mapped(secrets, naming))
	return mgr.Add(c)
}

type ingressReconciler struct {
	secrets informer.Lister[*corev1.Secret]
}

func (r *ingressReconciler) reconcile(_ context.Context, ingress *networkingv1.Ingress) (reconcile.Result, error) {
	for _, tls := range ingress.Spec.TLS {
		secret, err := r.secrets.Get(reconcile.Key{Namespace: ingress.Namespace, Name: tls.SecretName})
		if apierrors.IsNotFound(err) {
			return reconcile.Result{}, nil // its creation is an event; until then say so in the status
		}
		if err != nil {
			return reconcile.Result{}, err
		}
		serve(secret.Data[corev1.TLSCertKey])
	}
	return reconcile.Result{}, nil
}

func serve([]byte) {}

// An Ingress names Secrets, and is reconciled when one of them changes.
func ExampleObjectController_Watch_reference() {
	var mgr *manager.Manager // of your program
	if err := setupWithReferences(mgr); err != nil {
		fmt.Println(err)
	}
}
