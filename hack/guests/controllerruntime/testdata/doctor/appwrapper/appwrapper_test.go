// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/simulate/doctor"

	appwrapper "github.com/project-codeflare/appwrapper/api/v1beta2"
	controller "github.com/project-codeflare/appwrapper/internal/controller/appwrapper"
	"github.com/project-codeflare/appwrapper/pkg/config"
)

const definitions = "../../config/crd/bases"

// operator returns the program with its own default options, without its monitor of Nodes.
func operator() program {
	return managed(schemeOf(appwrapper.AddToScheme), func(_ context.Context, mgr ctrl.Manager) error {
		options := config.NewAppWrapperConfig()
		options.Autopilot = nil
		return (&controller.AppWrapperReconciler{
			Client: mgr.GetClient(), Recorder: mgr.GetEventRecorderFor("appwrappers"), Scheme: mgr.GetScheme(), Config: options,
		}).SetupWithManager(mgr)
	})
}

const samples = `
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: serve, namespace: default}
spec:
  components:
  - template:
      apiVersion: apps/v1
      kind: Deployment
      metadata: {generateName: serve-}
      spec:
        replicas: 2
        selector: {matchLabels: {app: serve}}
        template:
          metadata: {labels: {app: serve}}
          spec:
            containers: [{name: serve, image: serve, resources: {requests: {cpu: "1"}}}]
---
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: fixed, namespace: default}
spec:
  components:
  - template:
      apiVersion: apps/v1
      kind: StatefulSet
      metadata: {name: fixed}
      spec:
        replicas: 2
        serviceName: fixed
        selector: {matchLabels: {app: fixed}}
        template:
          metadata: {labels: {app: fixed}}
          spec:
            containers: [{name: fixed, image: fixed, resources: {requests: {cpu: "1"}}}]
`

func TestDoctor(t *testing.T) {
	doctor.Test(t, doctor.Operator{Main: operator(), CRDs: []string{definitions}, Samples: []string{file(t, samples)}})
}

const job = `{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"generateName": "train-"}, "spec": {"template": {"spec": {
	"restartPolicy": "Never", "containers": [{"name": "train", "image": "train"}]}}}}`

// A process that ends between its creation of a component with a generated name and the write of the status,
// in which it remembers the name, creates a second one. The first one goes on while the AppWrapper is suspended.
func TestBug_AComponentRunsWhileItsAppWrapperIsSuspended(t *testing.T) {
	for name, crash := range map[string]bool{"without a crash": false, "with a crash": true} {
		t.Run(name, func(t *testing.T) {
			want := 0
			if crash {
				want = 1 // the bug; 0 is right
			}
			if left := leftAfterSuspension(t, crash); len(left) != want {
				t.Errorf("there are %d Jobs of the suspended AppWrapper: %v", len(left), left)
			}
		})
	}
}

func leftAfterSuspension(t *testing.T, crash bool) (left []string) {
	w := realWorld(t, schemeOf(appwrapper.AddToScheme), definitions)
	train := &appwrapper.AppWrapper{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "train"}}
	train.Spec.Components = []appwrapper.AppWrapperComponent{{Template: runtime.RawExtension{Raw: []byte(job)}}}
	must(t, w.Create(t.Context(), train))
	if crash {
		p := w.start(operator(), func(p *process, r *http.Request) error {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/jobs") {
				return p.kill()
			}
			return nil
		})
		<-p.ended
	}
	w.start(operator(), nil)
	is := func(phase appwrapper.AppWrapperPhase) func() bool {
		return func() bool { return w.get("train", train) && train.Status.Phase == phase }
	}
	w.await("the AppWrapper runs", is(appwrapper.AppWrapperRunning))
	must(t, w.Patch(t.Context(), train, client.RawPatch("application/merge-patch+json", []byte(`{"spec": {"suspend": true}}`))))
	w.await("the AppWrapper is suspended", is(appwrapper.AppWrapperSuspended))
	jobs := &batchv1.JobList{}
	must(t, w.List(t.Context(), jobs, client.MatchingLabels{appwrapper.AppWrapperLabel: train.Name}))
	for _, j := range jobs.Items {
		left = append(left, j.Name)
	}
	return left
}
