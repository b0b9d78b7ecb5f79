// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/rights"
	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/doctor"
	"github.com/flyball-dev/flyball/simulate/kit"

	apiv1 "github.com/flyball-dev/flyball/examples/operator/api/v1"
)

// Each seed runs the operator in virtual time on a simulated API server, with different
// faults.
func TestSimulation(t *testing.T) { kit.Test(t, config(t), scenario) }

// A recording that "kubectl flyball record" has made in production runs again in virtual time:
//
//	go test -run TestReplay -kit.bundle=FILE
func TestReplay(t *testing.T) { kit.Replay(t, "", config(t), setup) }

// The operator ends with one fault where it ends without: a crash after a write, a stale cache, a
// lost answer. MostPlans 0 tries as many faults as ten minutes allow.
func TestDoctor(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs the operator a hundred times")
	}
	doctor.Test(t, doctor.Operator{
		Setup: setup, Cluster: config(t), Samples: []string{"config/sample.yaml"}, MostPlans: 20,
	})
}

func config(t *testing.T) kit.Config {
	opts, err := options()
	must(t, err)
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
	w.Eventually(func() error { return w.Client().SetScale(context.Background(), frontend, 3) })
	w.Edit(frontend, func() { frontend.Spec.Image = "nginx:alpine" })
	w.Sleep(5 * time.Second)
	if w.Draw("delete", 2) == 1 {
		w.Delete(frontend)
	}
}

// isReady reports how the children and the status of frontend differ from its spec.
func isReady(w *kit.World, frontend *apiv1.Frontend) error {
	exists := w.Get(frontend)
	for _, child := range []kit.Object{deploymentFor(frontend)} {
		if w.Get(child) != exists {
			return fmt.Errorf("%T %s exists: %v, want %v", child, child.GetName(), !exists, exists)
		}
	}
	if !exists {
		return nil
	}
	deployment := deploymentFor(frontend)
	w.Get(deployment)
	if *deployment.Spec.Replicas != frontend.Spec.Replicas ||
		deployment.Spec.Template.Spec.Containers[0].Image != frontend.Spec.Image {
		return fmt.Errorf("the spec of its Deployment is %+v", deployment.Spec)
	}
	if frontend.Status.ObservedGeneration != frontend.Generation ||
		!meta.IsStatusConditionTrue(frontend.Status.Conditions, "Ready") {
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
	cfg.Manager.LeaderElection = &manager.LeaderElection{
		ID: "frontend-operator", Namespace: "frontend-operator",
	}
	cfg.Namespaces = []string{"frontend-operator"}
	kit.Test(t, cfg, scenario)
	used.Check(t, "config/operator.yaml")
}

// A real API server accepts the manifests and refuses every request that the operator's
// permissions do not cover.
func TestControlPlane(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts an API server")
	}
	ctx := t.Context()
	env, err := envtest.Start(ctx, envtest.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, env.Stop()) })
	out, err := env.Kubectl(ctx, "apply", "--server-side", "--warnings-as-errors", "-k", "config")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	opts, err := options()
	must(t, err)
	admin, err := client.New(env.Config(), opts.Scheme, client.Options{})
	must(t, err)

	// As its ServiceAccount.
	opts.Config, err = env.TokenUser(ctx, "frontend-operator", "frontend-operator")
	must(t, err)
	opts.MetricsAddress, opts.HealthAddress = "0", "0" // no ports
	opts.LeaderElection.Off, opts.LeaderElection.Namespace = false, "frontend-operator"
	mgr, err := manager.New(opts)
	must(t, err)
	must(t, setup(mgr))
	run, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Run(run) }()
	t.Cleanup(func() { stop(); must(t, <-done) })

	frontend := newFrontend("one", "nginx", 2)
	must(t, admin.Create(ctx, frontend))
	for _, child := range []kit.Object{deploymentFor(frontend)} {
		eventually(t, fmt.Sprintf("there is the %T", child), func() bool {
			return admin.Get(ctx, kube.KeyOf(child), child) == nil
		})
	}
	deployment := deploymentFor(frontend)
	must(t, admin.Get(ctx, kube.KeyOf(deployment), deployment))
	if got := *deployment.Spec.Replicas; got != 2 {
		t.Errorf("the Deployment has %d replicas, want 2", got)
	}
	must(t, admin.SetScale(ctx, frontend, 3)) // as kubectl scale and autoscalers do
	eventually(t, fmt.Sprintf("the %T has 3 replicas", deployment), func() bool {
		return admin.Get(ctx, kube.KeyOf(deployment), deployment) == nil &&
			*deployment.Spec.Replicas == 3
	})
	rolledOut := kube.Copy(deployment) // there is no Deployment controller
	rolledOut.Status = appsv1.DeploymentStatus{
		ObservedGeneration: deployment.Generation, Replicas: 3, UpdatedReplicas: 3, ReadyReplicas: 3,
	}
	if _, err := admin.PatchChanges(ctx, deployment, rolledOut); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the Frontend is ready", func() bool {
		var got apiv1.Frontend
		return admin.Get(ctx, kube.KeyOf(frontend), &got) == nil &&
			meta.IsStatusConditionTrue(got.Status.Conditions, "Ready")
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually polls every 50ms, for at most a minute.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
