// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/flyball-dev/flyball/simulate/kit"
)

type secretReconciler struct{ client client.Client }

// Reconcile creates the Secret of a ConfigMap.
func (r *secretReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	source := &corev1.ConfigMap{}
	if err := r.client.Get(ctx, req.NamespacedName, source); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: req.Namespace, Name: req.Name}}
	if err := ctrl.SetControllerReference(source, secret, r.client.Scheme()); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, client.IgnoreAlreadyExists(r.client.Create(ctx, secret))
}

func run(ctx context.Context, cfg *rest.Config) error {
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{ // or bridge.Options(ctrl.Options{…})
		Metrics:    server.Options{BindAddress: "0"},                     // a simulation has no ports
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)}, // a restart is another manager in one process
	})
	if err != nil {
		return err
	}
	r := &secretReconciler{mgr.GetClient()}
	if err := ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(r); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func keepsTheSecret(w *kit.World) {
	kit.RunMain(w, "operator", run)

	source := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "source"}}
	secret := &corev1.Secret{ObjectMeta: source.ObjectMeta}
	w.Settled(func() error {
		if w.Get(source) && !w.Get(secret) {
			return errors.New("there is no secret")
		}
		return nil
	})
	w.Create(source)
}

// An operator of controller-runtime under seeds, with or without the bridge.
func Example_seeds() {
	var t *testing.T // that of the test
	kit.Test(t, kit.Config{Seeds: 200}, keepsTheSecret)
}
