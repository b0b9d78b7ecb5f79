// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/kit"
)

// marker labels every Namespace, those that exist at the start among them.
func marker(mgr *manager.Manager) error {
	namespaces := informer.For[*corev1.Namespace](mgr.Informers())
	return mgr.Add(reconcile.For(namespaces, func(ctx context.Context, ns *corev1.Namespace) (reconcile.Result, error) {
		marked := kube.Copy(ns)
		metav1.SetMetaDataLabel(&marked.ObjectMeta, "kit.example.dev/marked", "true")
		_, err := mgr.Client().PatchChanges(ctx, ns, marked, client.FieldOwner("marker"))
		return reconcile.Result{}, err
	}, reconcile.Options{}))
}

// A program that watches a cluster-scoped kind, and objects that exist before it, is right.
func TestKit_ClusterScopedObjectsAreKnown(t *testing.T) {
	for seed := uint64(1); seed <= 4; seed++ {
		sound(t, kit.Run(t, kit.Config{}, seed, func(w *kit.World) {
			w.Run(marker)
			w.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "late"}})
			w.Sleep(time.Second)
			w.Delete(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "late"}})
		}))
	}
}
