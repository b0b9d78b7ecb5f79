// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/kube"
)

var _ = Describe("many Events about one object", func() {
	It("do not displace its Warning, and the first that is dropped is logged, once (M19)", Label("M19"), func(ctx context.Context) {
		ns := newNamespace(ctx)
		typed := configMap(ns, "typed", nil)
		Expect(outside.Create(ctx, typed)).To(Succeed())
		plain := asUnstructured(configMap(ns, "plain", nil))
		Expect(outside.Create(ctx, plain)).To(Succeed())
		p := newProcess(env.Config(), ns)
		p.start()
		const told = 40
		for _, obj := range []kube.Object{typed, plain} {
			for n := range told {
				p.Events("spec").Eventf(obj, nil, corev1.EventTypeNormal, fmt.Sprint("Step", n), "Count", "step %d", n)
			}
			p.Events("spec").Eventf(obj, nil, corev1.EventTypeWarning, "Broken", "Count", "after %d others", told)
		}
		stored := func(name, kind string) (reasons []string) {
			for event, err := range client.List[*eventsv1.Event](ctx, outside, client.InNamespace(ns)) {
				Expect(err).NotTo(HaveOccurred())
				if event.Regarding.Name == name && event.Type == kind {
					reasons = append(reasons, event.Reason)
				}
			}
			return slices.Compact(slices.Sorted(slices.Values(reasons)))
		}
		for _, name := range []string{"typed", "plain"} {
			Eventually(stored).WithArguments(name, corev1.EventTypeWarning).Should(Equal([]string{"Broken"}))
			Eventually(stored).WithArguments(name, corev1.EventTypeNormal).Should(HaveLen(25), "client-go's burst")
			Expect(p.log("Dropped an Event", "ConfigMap "+ns+"/"+name, `"reason"="Step25"`)).To(HaveLen(1))
			Expect(p.log("Dropped an Event", ns+"/"+name)).To(HaveLen(1), "the others are counted alone")
		}
		p.stop()
		Expect(stored("typed", corev1.EventTypeNormal)).To(HaveLen(25), "after the end")
	})
})
