// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"regexp"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/flyball-dev/flyball/envtest"
)

// A real API server accepts the manifests, and refuses what the operator's permissions do not
// cover. No controllers run there: the test acts as the Deployment controller.
func TestControlPlane(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts an API server")
	}
	ctx := t.Context()
	env, err := envtest.Start(ctx, envtest.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, env.Stop()) })
	if out, err := env.Kubectl(ctx, "apply", "--server-side", "--warnings-as-errors", "-k", "../config"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	admin, err := client.New(env.Config(), client.Options{Scheme: scheme()})
	must(t, err)
	operator, err := env.TokenUser(ctx, "page-operator", "page-operator") // its ServiceAccount
	must(t, err)

	probes, err := unusedAddress()
	must(t, err)
	running, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- run(running, operator, ctrl.Options{
			LeaderElection: true, LeaderElectionID: electionID, LeaderElectionNamespace: "page-operator", LeaderElectionReleaseOnCancel: true,
			Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: probes,
		})
	}()
	t.Cleanup(func() { stop(); must(t, <-done) })

	page, deployment := page("one", "<h1>One</h1>"), &appsv1.Deployment{}
	must(t, admin.Create(ctx, page))
	key := client.ObjectKeyFromObject(page)
	eventually(t, "the Deployment exists", func() bool { return admin.Get(ctx, key, deployment) == nil })
	deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: deployment.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1}
	must(t, admin.Status().Update(ctx, deployment))
	eventually(t, "the page is ready", func() bool {
		return admin.Get(ctx, key, page) == nil && meta.IsStatusConditionTrue(page.Status.Conditions, "Ready")
	})
	deploy, err := os.ReadFile("../config/deployment.yaml")
	must(t, err)
	paths := regexp.MustCompile(`path: (\S+)`).FindAllSubmatch(deploy, -1)
	if len(paths) != 2 {
		t.Errorf("the Deployment has %d probes, want two", len(paths))
	}
	for _, path := range paths {
		eventually(t, "200 at "+string(path[1]), func() bool {
			resp, err := http.Get("http://" + probes + string(path[1]))
			return err == nil && resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
		})
	}
	must(t, admin.Delete(ctx, page))
	eventually(t, "the page is gone", func() bool { return apierrors.IsNotFound(admin.Get(ctx, key, page)) })
}

// unusedAddress returns an address whose port is below the usual ephemeral ranges, so that nobody
// gets it by chance before it is used.
func unusedAddress() (string, error) {
	for {
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", 10_000+rand.IntN(10_000)))
		if err == nil {
			return l.Addr().String(), l.Close()
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return "", err
		}
	}
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
