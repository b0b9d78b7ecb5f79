// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/rights"
	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/kit"

	apiv1 "github.com/flyball-dev/flyball/examples/operator/api/v1"
)

// Each seed runs the operator in virtual time on a simulated API server, with different
// faults.
func TestSimulation(t *testing.T) { kit.Test(t, config(t), scenario) }

func config(t *testing.T) kit.Config {
	opts, err := options()
	if err != nil {
		t.Fatal(err)
	}
	return kit.Config{
		Seeds: 20, CRDs: []string{"config/crd.yaml"}, Scheme: opts.Scheme,
		Actors: simulate.Actors{GarbageCollector: true, Workloads: true},
	}
}

// scenario is what the user does.
func scenario(w *kit.World) {
	w.Run(setup)
	frontend := newFrontend("one", "nginx", 2)
	w.Settled(func() error { return isReady(w, newFrontend("one", "", 0)) })
	w.Create(frontend)
	w.Sleep(5 * time.Second)
	w.Edit(frontend, func() { frontend.Spec.Replicas = 3 })
	w.Edit(frontend, func() { frontend.Spec.Image = "nginx:alpine" })
	w.Sleep(5 * time.Second)
	if w.Draw("delete", 2) == 1 {
		w.Delete(frontend)
	}
}

// isReady reports how the Deployment and the status of frontend differ from its spec.
func isReady(w *kit.World, frontend *apiv1.Frontend) error {
	deployment := &appsv1.Deployment{ObjectMeta: frontend.ObjectMeta}
	found := w.Get(deployment)
	if !w.Get(frontend) {
		if found {
			return fmt.Errorf("its Deployment is still there")
		}
		return nil
	}
	if !found || *deployment.Spec.Replicas != frontend.Spec.Replicas || deployment.Spec.Template.Spec.Containers[0].Image != frontend.Spec.Image {
		return fmt.Errorf("the spec of its Deployment is %+v", deployment.Spec)
	}
	if frontend.Status.ObservedGeneration != frontend.Generation || !meta.IsStatusConditionTrue(frontend.Status.Conditions, "Ready") {
		return fmt.Errorf("its status at generation %d is %+v", frontend.Generation, frontend.Status)
	}
	return nil
}

func newFrontend(name, image string, replicas int32) *apiv1.Frontend {
	return &apiv1.Frontend{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiv1.GroupVersion.String(), Kind: "Frontend"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       apiv1.FrontendSpec{Image: image, Replicas: replicas},
	}
}

// The manifests grant the rights that the operator uses, and no others. After a change,
// run the test with -rights.update.
func TestRights(t *testing.T) {
	used := &rights.Recorder{}
	cfg := config(t)
	cfg.Seeds, cfg.Rights = 5, used
	cfg.Manager.LeaderElection = &manager.LeaderElection{ID: "frontend-operator", Namespace: "frontend-operator"}
	cfg.Namespaces = []string{"frontend-operator"}
	kit.Test(t, cfg, scenario)
	used.Check(t, "config/rbac.yaml")
}
