// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/informer"
)

const wheelCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: wheels.schema.flyball.dev}
spec:
  group: schema.flyball.dev
  scope: Namespaced
  names: {kind: Wheel, plural: wheels, singular: wheel}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {teeth: {type: integer}}
`

var _ = Describe("A changed schema", func() {
	It("has its kind listed anew, and what differs told once [A9]", func(ctx context.Context) {
		crds, err := envtest.ParseCRDs(strings.NewReader(wheelCRD))
		Expect(err).NotTo(HaveOccurred())
		Expect(env.InstallCRDObjects(ctx, crds...)).To(Succeed())
		for name, teeth := range map[string]string{"bare": "", "set": "teeth: 5\n"} {
			_, err = env.Kubectl(ctx, "create", "-f", writeFile(name+".yaml", "apiVersion: schema.flyball.dev/v1\nkind: Wheel\nmetadata: {name: "+name+", namespace: default}\n"+teeth))
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
		_, err = wheels.AddHandler(func(e informer.Event[*gear]) {
			told.Lock()
			defer told.Unlock()
			told.events = append(told.events, fmt.Sprintf("%s %s=%d", e.Type, e.Key.Name, e.Latest().Teeth))
		}, informer.HandlerOptions{EveryEvent: true})
		Expect(err).NotTo(HaveOccurred())
		events := func() []string {
			told.Lock()
			defer told.Unlock()
			return append([]string(nil), told.events...)
		}
		Eventually(events).Should(ConsistOf("added bare=0", "added set=5"))
		Eventually(maps.Synced()).Should(BeClosed())
		before, err := wheels.Lister().Get(informer.Key{Namespace: "default", Name: "bare"})
		Expect(err).NotTo(HaveOccurred())

		_, err = env.Kubectl(ctx, "apply", "--server-side", "--force-conflicts", "-f",
			writeFile("crd.yaml", strings.Replace(wheelCRD, "{type: integer}", "{type: integer, default: 12}", 1)))
		Expect(err).NotTo(HaveOccurred())
		Eventually(events).WithTimeout(60*time.Second).Should(ConsistOf("added bare=0", "added set=5", "updated bare=12"), "what differs is news")
		Consistently(events).WithTimeout(5*time.Second).Should(HaveLen(3), "and once, and nothing else is")
		after, err := wheels.Lister().Get(informer.Key{Namespace: "default", Name: "bare"})
		Expect(err).NotTo(HaveOccurred())
		Expect(after.ResourceVersion).To(Equal(before.ResourceVersion), "this spec is about objects that change without a version")
		Expect(wheels.Snapshot().Scopes[0].Relists).To(Or(
			HaveKeyWithValue("expired", 1), // the server forgets the history of a kind with its schema
			HaveKeyWithValue("schema changed", 1)))
		Expect(maps.Snapshot().Scopes[0].Relists).To(BeEmpty(), "other kinds are not listed anew")
	})
})
