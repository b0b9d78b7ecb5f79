// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bridge "github.com/flyball-dev/flyball/bridge/controllerruntime"
)

func withConsole(mgr ctrl.Manager, r reconcile.Reconciler) error {
	if err := bridge.AddConsole(mgr); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).
		WithOptions(controller.Options{NewQueue: bridge.NewQueue[reconcile.Request]}).
		Complete(bridge.Recorded(r))
}

// The console is at /debug/flyball/ of the metrics server.
func ExampleAddConsole() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), bridge.Options(ctrl.Options{}))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := withConsole(mgr, &secretReconciler{mgr.GetClient()}); err != nil {
		fmt.Println(err)
	}
}
