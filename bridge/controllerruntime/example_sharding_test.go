// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bridge "github.com/flyball-dev/flyball/bridge/controllerruntime"
)

// The replicas of the Deployment share the ConfigMaps. The reconciler does not change.
func ExampleSharded() {
	mgr, err := bridge.Sharded(ctrl.GetConfigOrDie(), ctrl.Options{}, bridge.Sharding{
		ID: "secrets", Shards: 32,
		By:    bridge.ByUID,
		Owned: []client.Object{&corev1.Secret{}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := &secretReconciler{mgr.GetClient()}
	err = ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Complete(r)
	if err == nil {
		err = mgr.Start(ctrl.SetupSignalHandler())
	}
	if err != nil {
		fmt.Println(err)
	}
}
