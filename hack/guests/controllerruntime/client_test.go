// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

// Listers show at once what controller-runtime's client writes, though no watch shows it.
func TestClient_WritesOfControllerRuntimesAreReadAtOnce_R14(t *testing.T) {
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	server := simtest.New(t, nil, obj.DeepCopy())
	mgr, err := manager.New(manager.Options{Config: server.Config, MetricsAddress: "0", HealthAddress: "0"})
	if err != nil {
		t.Fatal(err)
	}
	maps := informer.For[*corev1.ConfigMap](mgr.Informers())
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- mgr.Run(ctx) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	if _, err := mgr.Informers().WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	server.LagTo(server.Revision())
	c, err := crclient.New(mgr.Config(), crclient.Options{Scheme: clientscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	key := crclient.ObjectKeyFromObject(obj)
	sees := func(what, value string) {
		t.Helper()
		got, err := maps.Lister().Get(kube.KeyOf(obj))
		if err != nil || got.Data["v"] != value || got.ResourceVersion != obj.ResourceVersion {
			t.Errorf("after %s the Lister reads %v, %v, want v=%s at %s", what, got, err, value, obj.ResourceVersion)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(c.Get(ctx, key, obj))
	obj.Data = map[string]string{"v": "1"}
	must(c.Update(ctx, obj))
	sees("Update", "1")
	before := obj.DeepCopy()
	obj.Data["v"] = "2"
	must(c.Patch(ctx, obj, crclient.MergeFrom(before)))
	sees("Patch", "2")
	must(c.Delete(ctx, obj))
	if got, err := maps.Lister().Get(kube.KeyOf(obj)); !apierrors.IsNotFound(err) {
		t.Errorf("after Delete the Lister reads %v, %v", got, err)
	}
	*obj = corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Data: map[string]string{"v": "3"}}
	must(c.Create(ctx, obj))
	sees("Create", "3")
	must(c.DeleteAllOf(ctx, obj, crclient.InNamespace("default")))
	if got, err := maps.Lister().Get(kube.KeyOf(obj)); !apierrors.IsNotFound(err) {
		t.Errorf("after DeleteAllOf the Lister reads %v, %v", got, err)
	}
}
