// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"

	apiv1 "github.com/flyball-dev/flyball/examples/operator/api/v1"
)

// A real API server accepts the manifests and refuses every request that the operator's
// permissions do not cover. It runs no controllers, so the test acts as the Deployment
// controller.
func TestControlPlane(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts an API server")
	}
	ctx := t.Context()
	env, err := envtest.Start(ctx, envtest.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, env.Stop()) })
	if out, err := env.Kubectl(ctx, "apply", "--server-side", "--warnings-as-errors", "-k", "config"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	opts, err := options()
	must(t, err)
	admin, err := client.New(env.Config(), opts.Scheme, client.Options{})
	must(t, err)

	opts.Config, err = env.TokenUser(ctx, "frontend-operator", "frontend-operator") // its ServiceAccount
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
	deployment := &appsv1.Deployment{}
	eventually(t, "the Deployment exists", func() bool { return admin.Get(ctx, informer.KeyOf(frontend), deployment) == nil })
	if got := *deployment.Spec.Replicas; got != 2 {
		t.Errorf("the Deployment has %d replicas, want 2", got)
	}
	rolledOut := informer.Copy(deployment)
	rolledOut.Status = appsv1.DeploymentStatus{ObservedGeneration: deployment.Generation, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2}
	_, err = admin.PatchChanges(ctx, deployment, rolledOut)
	must(t, err)
	eventually(t, "the Frontend is ready", func() bool {
		var got apiv1.Frontend
		return admin.Get(ctx, informer.KeyOf(frontend), &got) == nil && meta.IsStatusConditionTrue(got.Status.Conditions, "Ready")
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
