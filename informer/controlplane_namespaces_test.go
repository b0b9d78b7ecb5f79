// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

// diary records what a handler received, as text.
type diary struct {
	mu struct {
		sync.Mutex
		lines []string
	}
}

func (d *diary) handle(e kube.Event[*corev1.ConfigMap]) {
	line := e.Type.String() + " " + e.Key.String()
	if e.LeftScope {
		line += ", left"
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.lines = append(d.mu.lines, line)
}

func (d *diary) read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.mu.lines...)
}

var _ = Describe("namespaces that a label chooses", func() {
	It("come and go with their labels", func(ctx context.Context) {
		kubectl := func(args ...string) {
			GinkgoHelper()
			_, err := env.Kubectl(ctx, args...)
			Expect(err).NotTo(HaveOccurred())
		}
		for _, name := range []string{"team-in", "team-out"} {
			kubectl("create", "namespace", name)
			kubectl("create", "configmap", "m", "--namespace", name)
		}
		kubectl("label", "namespace", "team-in", "team=a")
		f := factoryFor(env.Config(), informer.Options{})
		maps := informer.For[*corev1.ConfigMap](f, informer.Scope{NamespaceSelector: "team=a", FieldSelector: "metadata.name=m"})
		told := &diary{}
		_, err := maps.AddHandler(told.handle, informer.HandlerOptions{})
		Expect(err).NotTo(HaveOccurred())
		states, err := f.WaitForSync(ctx, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
		Expect(err).NotTo(HaveOccurred(), "%v", states)
		inside, outside := kube.Key{Namespace: "team-in", Name: "m"}, kube.Key{Namespace: "team-out", Name: "m"}
		Eventually(told.read).Should(Equal([]string{"added team-in/m"}))
		_, err = maps.Lister().Get(outside)
		Expect(err).To(BeAssignableToTypeOf(&kube.OutOfScopeError{}))

		kubectl("label", "namespace", "team-out", "team=a")
		Eventually(told.read).Should(Equal([]string{"added team-in/m", "added team-out/m"}))
		kubectl("label", "namespace", "team-in", "team-")
		Eventually(told.read).Should(ContainElement("deleted team-in/m, left"), "the object is still there, and out of sight")
		_, err = maps.Lister().Get(inside)
		Expect(err).To(BeAssignableToTypeOf(&kube.OutOfScopeError{}))
		Expect(maps.Lister().Get(outside)).NotTo(BeNil())
	})
})
