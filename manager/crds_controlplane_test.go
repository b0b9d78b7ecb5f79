// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"testing/fstest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
)

// knobs are files with a definition whose spec has these properties.
func knobs(versions string) fstest.MapFS {
	return fstest.MapFS{"crd.yaml": &fstest.MapFile{Data: []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: knobs.manager.flyball.dev}
spec:
  group: manager.flyball.dev
  scope: Namespaced
  names: {kind: Knob, plural: knobs}
  versions:` + versions)}}
}

const (
	knobOne = `
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {turns: {type: integer, maximum: 9}}}}}}`
	knobTwo = `
  - name: v1
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {turns: {type: integer}, size: {type: string, default: small}}}}}}
  - name: v2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {turns: {type: integer}, size: {type: string, default: small}}}}}}`
	knobThree = `
  - name: v2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {turns: {type: integer}}}}}}`
)

var _ = Describe("A manager with definitions to install", Ordered, func() {
	var admin *client.Client
	crd := func(ctx context.Context) *unstructured.Unstructured {
		GinkgoHelper()
		out := &unstructured.Unstructured{}
		out.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		Expect(admin.Get(ctx, informer.Key{Name: "knobs.manager.flyball.dev"}, out)).To(Succeed())
		return out
	}
	// program returns the Run of a manager that watches v1, and when it has synced.
	program := func(versions string) (run func(context.Context) error, synced <-chan struct{}) {
		GinkgoHelper()
		m, err := manager.New(manager.Options{
			Config: env.Config(), Logger: quiet(), HealthAddress: "0", MetricsAddress: "0", InstallCRDs: knobs(versions),
		})
		Expect(err).NotTo(HaveOccurred())
		knobs := informer.ForKind(m.Informers(), schema.GroupVersionKind{Group: "manager.flyball.dev", Version: "v1", Kind: "Knob"})
		return m.Run, knobs.Synced()
	}
	// together runs programs at the same time until all have synced.
	together := func(ctx context.Context, all ...string) {
		GinkgoHelper()
		ctx, stop := context.WithCancel(ctx)
		done := make(chan error, len(all))
		var waits []<-chan struct{}
		for _, versions := range all {
			run, synced := program(versions)
			waits = append(waits, synced)
			go func() { done <- run(ctx) }()
		}
		for _, synced := range waits {
			Eventually(synced).WithTimeout(time.Minute).Should(BeClosed())
		}
		stop()
		for range all {
			Eventually(done).WithTimeout(time.Minute).Should(Receive(BeNil()))
		}
	}
	BeforeAll(func() {
		var err error
		admin, err = client.New(env.Config(), runtime.NewScheme(), client.Options{})
		Expect(err).NotTo(HaveOccurred())
	})

	It("installs them once, whatever the number of replicas", func(ctx context.Context) {
		together(ctx, knobOne, knobOne, knobOne)
		Expect(crd(ctx).GetGeneration()).To(BeEquivalentTo(1))
	})
	It("updates them once, and an old replica leaves the new ones", func(ctx context.Context) {
		together(ctx, knobTwo, knobOne, knobTwo)
		after := crd(ctx)
		Expect(after.GetGeneration()).To(BeEquivalentTo(2))
		together(ctx, knobOne)
		Expect(crd(ctx).GetResourceVersion()).To(Equal(after.GetResourceVersion()))
	})
	It("refuses to narrow them", func(ctx context.Context) {
		before := crd(ctx)
		run, _ := program(knobThree)
		Expect(run(ctx)).To(MatchError(And(
			ContainSubstring("v1: the version is removed, and status.storedVersions has it: objects may be stored in it"),
			ContainSubstring("v2: .spec.size: the property is removed"))))
		Expect(crd(ctx).GetResourceVersion()).To(Equal(before.GetResourceVersion()))
	})
	It("does not write what the server has already, defaults included", func(ctx context.Context) {
		before := crd(ctx)
		together(ctx, knobTwo)
		Expect(crd(ctx).GetResourceVersion()).To(Equal(before.GetResourceVersion()))
	})
})
