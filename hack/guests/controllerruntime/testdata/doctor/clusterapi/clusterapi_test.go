// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package controllerruntime_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/doctor"
	"github.com/flyball-dev/flyball/simulate/kit"

	clusterapi "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/cluster-api/core/reconcilers/machineset"
	"sigs.k8s.io/cluster-api/core/setup"
)

const definitions = "../../core/config/crd/bases"

var scheme = schemeOf(clusterapi.AddToScheme, apiextensionsv1.AddToScheme)

// operator returns the program: its controller of MachineSets. The Machines have no Nodes.
func operator() program {
	return managed(scheme, func(ctx context.Context, mgr ctrl.Manager) error {
		r := &machineset.Reconciler{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), ClusterCache: clustercache.NewFakeEmptyClusterCache()}
		return r.SetupWithManager(ctx, mgr, controller.Options{})
	}, func(options *ctrl.Options) {
		options.Client = setup.ManagerClientOptions()
	})
}

// provider has the definitions of a provider of machines.
func provider(t *testing.T) string {
	var b strings.Builder
	for _, kind := range []string{"Machine", "MachineTemplate"} {
		b.WriteString(strings.NewReplacer("KIND", kind, "PLURAL", strings.ToLower(kind)+"s", "SINGULAR", strings.ToLower(kind)).Replace(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: testPLURAL.infrastructure.cluster.x-k8s.io
  labels: {cluster.x-k8s.io/v1beta2: v1beta2}
spec:
  group: infrastructure.cluster.x-k8s.io
  scope: Namespaced
  names: {kind: TestKIND, listKind: TestKINDList, plural: testPLURAL, singular: testSINGULAR}
  versions:
  - name: v1beta2
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
---
`))
	}
	return file(t, b.String())
}

// objects are a Cluster and the template of its machines.
const objects = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: farm, namespace: default}
spec: {clusterNetwork: {pods: {cidrBlocks: [10.0.0.0/8]}}}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: TestMachineTemplate
metadata: {name: small, namespace: default}
spec: {template: {spec: {size: small}}}
`

const sample = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: MachineSet
metadata: {name: workers, namespace: default, labels: {cluster.x-k8s.io/cluster-name: farm}}
spec:
  clusterName: farm
  replicas: 2
  selector: {matchLabels: {cluster.x-k8s.io/set-name: workers}}
  template:
    metadata: {labels: {cluster.x-k8s.io/set-name: workers, cluster.x-k8s.io/cluster-name: farm}}
    spec:
      clusterName: farm
      bootstrap: {dataSecretName: boot}
      infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: TestMachineTemplate, name: small}
`

// parsed returns the objects of a text.
func parsed(t *testing.T, text string) (all []*unstructured.Unstructured) {
	for _, one := range strings.Split(text, "---\n") {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(one), &obj.Object); err != nil {
			t.Fatal(err)
		}
		all = append(all, obj)
	}
	return all
}

func TestDoctor(t *testing.T) {
	cluster := kit.Config{CRDs: []string{provider(t)}, Scheme: scheme, Actors: simulate.Actors{GarbageCollector: true, Namespaces: true}}
	for _, obj := range parsed(t, objects) {
		cluster.Objects = append(cluster.Objects, runtime.Object(obj))
	}
	doctor.Test(t, doctor.Operator{
		Main: operator(), CRDs: []string{ruled(t, definitions, map[string]string{whole: opaque})}, Samples: []string{file(t, sample)}, Cluster: cluster,
	})
}

var errLost = errors.New("http2: client connection lost")

// If the answer to the creation of a Machine is lost, the MachineSet's controller takes it for a failure, and
// deletes the infrastructure object of a Machine that exists. Nothing ever replaces the Machine, and every further
// reconcile of the MachineSet fails because the object is not there.
func TestBug_AMachineWithoutInfrastructureAfterALostAnswer(t *testing.T) {
	for name, lost := range map[string]bool{"with all answers": false, "with a lost answer": true} {
		t.Run(name, func(t *testing.T) {
			want := 0
			if lost {
				want = 1 // the bug; 0 is right
			}
			if got := withoutInfrastructure(t, lost); len(got) != want {
				t.Errorf("%d Machines refer to infrastructure objects that do not exist: %v", len(got), got)
			}
		})
	}
}

func withoutInfrastructure(t *testing.T, lose bool) (machines []string) {
	w := realWorld(t, scheme, definitions, provider(t))
	for _, obj := range parsed(t, objects+"---\n"+strings.Replace(sample, "replicas: 2", "replicas: 1", 1)) {
		must(t, w.Create(t.Context(), obj))
	}
	var once sync.Once
	w.start(operator(), func(_ *process, r *http.Request) (lost error) {
		if lose && r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/machines/") {
			// A time-out takes longer than the Machine's event.
			once.Do(func() { time.Sleep(2 * time.Second); lost = errLost })
		}
		return lost
	})
	set := &clusterapi.MachineSet{}
	w.await("the MachineSet has its Machine", func() bool {
		return w.get("workers", set) && set.Status.Replicas != nil && *set.Status.Replicas == 1
	})
	all := &clusterapi.MachineList{}
	must(t, w.List(t.Context(), all))
	if len(all.Items) != 1 {
		t.Errorf("there are %d Machines, and one is wanted", len(all.Items))
	}
	for _, m := range all.Items {
		infrastructure := &unstructured.Unstructured{}
		infrastructure.SetAPIVersion("infrastructure.cluster.x-k8s.io/v1beta2")
		infrastructure.SetKind("TestMachine")
		if !w.get(m.Spec.InfrastructureRef.Name, infrastructure) {
			machines = append(machines, m.Name)
		}
	}
	return machines
}
