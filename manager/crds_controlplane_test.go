// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"testing/fstest"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/internal/crdinstall"
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
		Expect(admin.Get(ctx, kube.Key{Name: "knobs.manager.flyball.dev"}, out)).To(Succeed())
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
	It("has integers and quantities that the Go type can hold", func(ctx context.Context) {
		script, err := os.ReadFile("../cmd/flyball/internal/crds/testdata/integers.txtar")
		Expect(err).NotTo(HaveOccurred())
		_, text, _ := strings.Cut(string(script), "-- want.yaml --\n")
		definition := &unstructured.Unstructured{}
		Expect(yaml.Unmarshal([]byte(text), &definition.Object)).To(Succeed())
		Expect(admin.Create(ctx, definition)).To(Succeed())
		write := func(name string, field string, value any) error {
			spec := map[string]any{
				"generic": map[string]any{"of": int64(-128)}, "i": int64(1), "i8": int64(127), "i16": int64(1), "i32": int64(1), "i64": int64(math.MaxInt64),
				"pair": map[string]any{"one": int64(0)}, "size": "10Gi", "sum": int64(math.MaxUint32), "u": int64(0), "u64": int64(1), "u8": int64(9),
			}
			spec[field] = value
			gauge := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
			gauge.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.dev", Version: "v1", Kind: "Gauge"})
			gauge.SetNamespace("default")
			gauge.SetName(name)
			return admin.Create(ctx, gauge)
		}
		Eventually(func() error { return write("first", "i", int64(2)) }).WithTimeout(time.Minute).Should(Succeed())
		for i, size := range []any{"1e99", "-1.5E-09", int64(5), "100m"} {
			Expect(write(fmt.Sprint("size-", i), "size", size)).To(Succeed(), "size %v", size)
		}
		for _, bad := range []struct {
			field string
			value any
		}{
			{"sum", int64(math.MaxUint32 + 1)}, {"sum", int64(-1)}, {"i8", int64(128)}, {"i16", int64(-32769)}, {"i32", int64(math.MaxInt32 + 1)},
			{"u8", int64(256)}, {"u", int64(-1)}, {"u64", int64(-1)}, {"generic", map[string]any{"of": int64(128)}},
			{"u16", int64(65536)}, {"ports", []any{int64(65536)}}, {"u32", map[string]any{"a": int64(math.MaxUint32 + 1)}},
			{"size", "1e100"}, {"size", "1e-10000000"}, {"size", "1e1.5"}, {"limits", map[string]any{"cpu": "1e-10000000"}},
		} {
			Expect(apierrors.IsInvalid(write("bad", bad.field, bad.value))).To(BeTrue(), "%s: %v", bad.field, bad.value)
		}
		for _, large := range []string{"i", "i64", "u64"} {
			Expect(apierrors.IsInvalid(write("large", large, float64(1<<64)))).To(BeTrue(), large)
		}
	})
	It("refuses an enum that differs in the last digit of a large number, and starts again with a property named default (O7, O8)", func(ctx context.Context) {
		levers := func(code string) fstest.MapFS {
			text := strings.NewReplacer("knobs", "levers", "Knob", "Lever").Replace(string(knobs(`
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {default: {type: string}, code: {type: integer, enum: [` + code + `]}}}}}}`)["crd.yaml"].Data))
			return fstest.MapFS{"crd.yaml": &fstest.MapFile{Data: []byte(text)}}
		}
		start := func(code string) error {
			m, err := manager.New(manager.Options{Config: env.Config(), Logger: quiet(), HealthAddress: "0", MetricsAddress: "0", InstallCRDs: levers(code)})
			Expect(err).NotTo(HaveOccurred())
			synced := informer.ForKind(m.Informers(), schema.GroupVersionKind{Group: "manager.flyball.dev", Version: "v1", Kind: "Lever"}).Synced()
			ctx, stop := context.WithCancel(ctx)
			defer stop()
			done := make(chan error, 1)
			go func() { done <- m.Run(ctx) }()
			select {
			case err := <-done:
				return err
			case <-synced:
				stop()
				return <-done
			}
		}
		stored := func() *unstructured.Unstructured {
			out := &unstructured.Unstructured{}
			out.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
			Expect(admin.Get(ctx, kube.Key{Name: "levers.manager.flyball.dev"}, out)).To(Succeed())
			return out
		}
		Expect(start("9007199254740993")).To(Succeed())
		first := stored()
		Expect(start("9007199254740993")).To(Succeed())
		Expect(stored().GetGeneration()).To(Equal(first.GetGeneration()), "nothing has changed")
		Expect(start("9007199254740992")).To(MatchError(ContainSubstring("the enum loses [9007199254740993]")))
		Expect(stored().GetGeneration()).To(Equal(first.GetGeneration()), "it is refused")
		Expect(start("9007199254740992, 9007199254740993")).To(Succeed())
		enum, _, _ := unstructured.NestedFieldNoCopy(stored().Object, "spec", "versions")
		Expect(fmt.Sprint(enum)).To(ContainSubstring("enum:[9007199254740992 9007199254740993]"), "the definition is not taken for an older one")
	})
	It("refuses a storage version in which the server would drop what is stored", func(ctx context.Context) {
		const slots = `
  - name: v1
    served: true
    storage: %t
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {turns: {type: integer}, old: {type: string}}}}}}`
		const second = `
  - name: v2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {turns: {type: integer}}}}}}`
		of := func(versions string) *unstructured.Unstructured {
			text := strings.NewReplacer("knobs", "slots", "Knob", "Slot").Replace(string(knobs(versions)["crd.yaml"].Data))
			out := &unstructured.Unstructured{}
			Expect(yaml.Unmarshal([]byte(text), &out.Object)).To(Succeed())
			return out
		}
		before, after := of(fmt.Sprintf(slots, true)), of(fmt.Sprintf(slots, false)+second)
		_, err := crdinstall.Decide(before.Object, after.Object)
		Expect(err).To(MatchError(ContainSubstring("v2, stored instead of v1: .spec.old: the property is removed")))

		// What the server does if it is written all the same.
		Expect(admin.Create(ctx, before)).To(Succeed())
		slot := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"turns": int64(1), "old": "kept"}}}
		slot.SetGroupVersionKind(schema.GroupVersionKind{Group: "manager.flyball.dev", Version: "v1", Kind: "Slot"})
		slot.SetNamespace("default")
		slot.SetName("one")
		Eventually(func() error { return admin.Create(ctx, slot.DeepCopy()) }).WithTimeout(time.Minute).Should(Succeed())
		now := before.DeepCopy()
		Expect(admin.Get(ctx, kube.Key{Name: before.GetName()}, now)).To(Succeed())
		now.Object["spec"] = after.Object["spec"]
		Expect(admin.Update(ctx, now)).To(Succeed())
		Eventually(func(g Gomega) {
			got := slot.DeepCopy()
			g.Expect(admin.Get(ctx, kube.Key{Namespace: "default", Name: "one"}, got)).To(Succeed())
			got.SetLabels(map[string]string{"turn": got.GetResourceVersion()}) // a write of v1 stores v2
			g.Expect(admin.Update(ctx, got)).To(Succeed())
			_, kept, _ := unstructured.NestedString(got.Object, "spec", "old")
			g.Expect(kept).To(BeFalse())
		}).WithTimeout(time.Minute).Should(Succeed())
	})
})
