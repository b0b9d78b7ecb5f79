// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/doctor"
	"github.com/flyball-dev/flyball/simulate/kit"

	pagev1 "github.com/flyball-dev/flyball/examples/controllerruntime/api/v1"
	"github.com/flyball-dev/flyball/examples/controllerruntime/internal/controller"
)

// Each seed runs the operator in virtual time on a simulated API server, with other faults.
func TestSimulation(t *testing.T) {
	cfg := kit.Config{
		Seeds: 20, CRDs: []string{"../config/crd.yaml"}, Scheme: scheme(),
		Actors: simulate.Actors{GarbageCollector: true, Workloads: true},
	}
	kit.Test(t, cfg, keepsPages)
}

// program is the operator as a simulation runs it.
func program(ctx context.Context, cfg *rest.Config) error {
	return run(ctx, cfg, ctrl.Options{
		Metrics:    server.Options{BindAddress: "0"},                     // a simulation has no ports
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)}, // a restart is another manager in one process
	})
}

// The operator does with a fault what it does without.
func TestDoctor(t *testing.T) {
	doctor.Test(t, doctor.Operator{
		Main:      program, // func(ctx context.Context, cfg *rest.Config) error
		CRDs:      []string{"../config/crd.yaml"},
		Samples:   []string{"../config/samples"},
		MostPlans: 20, // 0: as many as fit into Budget, ten minutes
	})
}

func keepsPages(w *kit.World) {
	kit.RunMain(w, "operator", program)
	w.Settled(func() error { return asWanted(w, "one") })
	w.Settled(func() error { return asWanted(w, "two") })
	one, two := page("one", "<h1>One</h1>"), page("two", "<h1>Two</h1>")
	w.Create(one)
	w.Create(two)
	w.Sleep(5 * time.Second)
	w.Edit(one, func() { one.Spec.Content, one.Spec.Replicas = "<h1>First</h1>", 2 })
	w.Sleep(3 * time.Second)
	w.Delete(two)
}

func page(name, content string) *pagev1.Page {
	return &pagev1.Page{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: pagev1.PageSpec{Content: content, Replicas: 1}}
}

// asWanted reports how the cluster differs from the spec of a page.
func asWanted(w *kit.World, name string) error {
	wanted, list := page(name, ""), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: controller.Listed}}
	content, deployment := &corev1.ConfigMap{ObjectMeta: wanted.ObjectMeta}, &appsv1.Deployment{ObjectMeta: wanted.ObjectMeta}
	exists := w.Get(wanted)
	w.Get(list)
	if _, listed := list.Data[name]; listed != exists {
		return fmt.Errorf("%s is listed: %t, and exists: %t", name, listed, exists)
	}
	hasContent, hasDeployment := w.Get(content), w.Get(deployment)
	switch {
	case hasContent != exists || hasDeployment != exists:
		return fmt.Errorf("%s exists: %t, its content: %t, its Deployment: %t", name, exists, hasContent, hasDeployment)
	case !exists:
		return nil
	case content.Data["index.html"] != wanted.Spec.Content:
		return fmt.Errorf("the content of %s is %q, want %q", name, content.Data["index.html"], wanted.Spec.Content)
	case *deployment.Spec.Replicas != wanted.Spec.Replicas:
		return fmt.Errorf("%s has %d replicas, want %d", name, *deployment.Spec.Replicas, wanted.Spec.Replicas)
	case wanted.Status.ObservedGeneration != wanted.Generation || !meta.IsStatusConditionTrue(wanted.Status.Conditions, "Ready"):
		return fmt.Errorf("the status of %s is %+v at generation %d", name, wanted.Status, wanted.Generation)
	}
	return nil
}
