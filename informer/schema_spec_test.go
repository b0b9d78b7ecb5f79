// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/testing/crdfixture"
	"github.com/flyball-dev/flyball/kube"
)

// wheelCRD defines a kind Wheel with teeth of this schema.
func wheelCRD(teeth map[string]any) runtime.Object {
	return crdfixture.New(schema.GroupVersionKind{Group: "schema.flyball.dev", Version: "v1", Kind: "Wheel"}, map[string]any{"teeth": teeth}, nil)
}

var _ = Describe("A changed schema", func() {
	It("has its kind listed anew, and what differs told once [A9]", func(ctx context.Context) {
		Expect(env.InstallCRDObjects(ctx, wheelCRD(crdfixture.Integer))).To(Succeed())
		for name, teeth := range map[string]string{"bare": "", "set": "teeth: 5\n"} {
			_, err := env.Kubectl(ctx, "create", "-f", writeFile(name+".yaml", "apiVersion: schema.flyball.dev/v1\nkind: Wheel\nmetadata: {name: "+name+", namespace: default}\n"+teeth))
			Expect(err).NotTo(HaveOccurred())
		}
		scheme := runtime.NewScheme()
		Expect(clientscheme.AddToScheme(scheme)).To(Succeed())
		scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "schema.flyball.dev", Version: "v1", Kind: "Wheel"}, &gear{})
		f := factoryOf(env.Config(), scheme, informer.Options{})
		wheels, maps := informer.For[*gear](f), informer.For[*corev1.ConfigMap](f)
		var told struct {
			sync.Mutex
			events []string
		}
		_, err := wheels.AddHandler(func(e kube.Event[*gear]) {
			told.Lock()
			defer told.Unlock()
			told.events = append(told.events, fmt.Sprintf("%s %s=%d", e.Type, e.Key.Name, e.Latest().Teeth))
		}, informer.HandlerOptions{EveryEvent: true})
		Expect(err).NotTo(HaveOccurred())
		metadata := informer.ForMetadata(f, schema.GroupVersionKind{Group: "schema.flyball.dev", Version: "v1", Kind: "Wheel"})
		var again atomic.Int32
		_, err = metadata.AddHandler(func(e kube.Event[*metav1.PartialObjectMetadata]) {
			if e.Resync {
				again.Add(1)
			}
		}, informer.HandlerOptions{})
		Expect(err).NotTo(HaveOccurred())
		events := func() []string {
			told.Lock()
			defer told.Unlock()
			return append([]string(nil), told.events...)
		}
		Eventually(events).Should(ConsistOf("added bare=0", "added set=5"))
		Eventually(maps.Synced()).Should(BeClosed())
		Eventually(metadata.Synced()).Should(BeClosed())
		before, err := wheels.Lister().Get(kube.Key{Namespace: "default", Name: "bare"})
		Expect(err).NotTo(HaveOccurred())

		Expect(env.InstallCRDObjects(ctx, wheelCRD(map[string]any{"type": "integer", "default": int64(12)}))).To(Succeed())
		Eventually(events).WithTimeout(60*time.Second).Should(ConsistOf("added bare=0", "added set=5", "updated bare=12"), "what differs is news")
		Consistently(events).WithTimeout(5*time.Second).Should(HaveLen(3), "and once, and nothing else is")
		Eventually(again.Load).WithTimeout(60*time.Second).Should(Equal(int32(2)), "metadata does not show what differs, so each object is told again")
		after, err := wheels.Lister().Get(kube.Key{Namespace: "default", Name: "bare"})
		Expect(err).NotTo(HaveOccurred())
		Expect(after.ResourceVersion).To(Equal(before.ResourceVersion), "this spec is about objects that change without a version")
		Expect(wheels.Snapshot().Scopes[0].Relists).To(Or(
			HaveKeyWithValue("expired", 1), // the server drops the history of a kind with its schema
			HaveKeyWithValue("schema changed", 1)))
		Expect(maps.Snapshot().Scopes[0].Relists).To(BeEmpty(), "other kinds are not listed anew")
	})
})
