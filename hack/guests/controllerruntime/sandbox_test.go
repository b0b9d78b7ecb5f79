// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	sandbox "sigs.k8s.io/agent-sandbox/api/v1alpha1"
	"sigs.k8s.io/agent-sandbox/controllers"
	ctrl "sigs.k8s.io/controller-runtime"
	crclient "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	bridge "github.com/flyball-dev/flyball/bridge/controllerruntime"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

// untraced is the Tracer of agent-sandbox's reconciler, whose type it does not export.
type untraced struct{}

func (untraced) StartSpan(ctx context.Context, _ metav1.Object, _ string, _ map[string]string) (context.Context, func()) {
	return ctx, func() {}
}
func (untraced) GetTraceContext(context.Context) string              { return "" }
func (untraced) AddEvent(context.Context, string, map[string]string) {}
func (untraced) IsRecording(context.Context) bool                    { return false }

// sandboxes is a replica of agent-sandbox. Its reconciler is that of the module.
type sandboxes struct {
	ctrl.Manager
	next  http.RoundTripper
	wrote sync.Map // namespaces
	stop  func()
}

// RoundTrip sends a request, and notes the namespace of a write.
func (s *sandboxes) RoundTrip(req *http.Request) (*http.Response, error) {
	if _, after, in := strings.Cut(req.URL.Path, "/namespaces/n-"); in && req.Method != http.MethodGet {
		number, _, _ := strings.Cut(after, "/")
		s.wrote.Store(number, true)
	}
	return s.next.RoundTrip(req)
}

// parts returns how many Sandboxes the cache of a replica has, and in how many namespaces it has written.
func (s *sandboxes) parts(t *testing.T) (cached, wrote int) {
	all := &sandbox.SandboxList{}
	if err := s.GetCache().List(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	s.wrote.Range(func(any, any) bool { wrote++; return true })
	return len(all.Items), wrote
}

func startSandboxes(t *testing.T, cfg *rest.Config, by bridge.ShardBy) *sandboxes {
	t.Helper()
	s := &sandboxes{next: cfg.Transport}
	cfg = rest.CopyConfig(cfg)
	cfg.Transport = s
	owned := map[bridge.ShardBy][]crclient.Object{bridge.ByUID: {&corev1.Pod{}, &corev1.Service{}}}
	var err error
	if s.Manager, err = bridge.Sharded(cfg, ctrl.Options{
		Scheme: controllers.Scheme, Logger: logr.Discard(), Metrics: server.Options{BindAddress: "0"},
		LeaderElectionNamespace: "default", Controller: config.Controller{SkipNameValidation: new(true)},
	}, bridge.Sharding{ID: "sandbox", Shards: 16, By: by, Owned: owned[by]}); err == nil {
		r := &controllers.SandboxReconciler{Client: s.GetClient(), Scheme: s.GetScheme(), Tracer: untraced{}}
		err = r.SetupWithManager(s, 4)
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(s.stop)
	return s
}

// Two replicas of agent-sandbox share its Sandboxes.
func TestSharded_AgentSandbox(t *testing.T) {
	t.Parallel()
	for _, by := range []bridge.ShardBy{bridge.ByNamespace, bridge.ByUID} {
		t.Run(string(by), func(t *testing.T) { t.Parallel(); shareSandboxes(t, by) })
	}
}

func shareSandboxes(t *testing.T, by bridge.ShardBy) {
	const count = 40
	var objects []runtime.Object
	for i := range count {
		one := &sandbox.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("n-%d-team", i), Name: "box"}}
		one.Spec.PodTemplate.Spec.Containers = []corev1.Container{{Name: "box", Image: "box"}}
		objects = append(objects, one)
	}
	api := simtest.New(t, controllers.Scheme, objects...)
	a, b := startSandboxes(t, api.Config, by), startSandboxes(t, api.Config, by)
	await := func(what string, so func() bool) {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); !so(); <-time.After(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("not after two minutes: %s", what)
			}
		}
	}
	await("a Pod for each Sandbox", func() bool { return len(api.Objects(schema.GroupResource{Resource: "pods"})) == count })
	// Each change of a Sandbox is followed by an update of its Pod.
	change := func(value string) {
		t.Helper()
		a.wrote.Clear()
		b.wrote.Clear()
		all := schema.GroupResource{Group: "agents.x-k8s.io", Resource: "sandboxes"}
		for _, o := range api.Objects(all) {
			key := types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
			if err := api.Change(all, key, func(o metav1.Object) { o.SetLabels(map[string]string{"is": value}) }); err != nil {
				t.Fatal(err)
			}
		}
	}
	change("shared")
	await("each is reconciled by the one that has it", func() bool {
		hasA, wroteA := a.parts(t)
		hasB, wroteB := b.parts(t)
		return hasA > 0 && hasB > 0 && hasA+hasB == count && wroteA == hasA && wroteB == hasB
	})
	b.stop()
	change("alone")
	await("one reconciles all", func() bool { has, wrote := a.parts(t); return has == count && wrote == count })
}
