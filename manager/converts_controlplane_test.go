// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/localserver"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/webhook"
)

// dialsCRD has two versions and stores the first; the webhook at ADDRESS converts it.
const dialsCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: dials.manager.flyball.dev}
spec:
  group: manager.flyball.dev
  scope: Namespaced
  names: {kind: Dial, plural: dials, singular: dial, listKind: DialList}
  conversion:
    strategy: Webhook
    webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://ADDRESS/convert"}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {turns: {type: integer}}}}
  - name: v2
    served: true
    storage: false
    schema: {openAPIV3Schema: {type: object, properties: {degrees: {type: integer}}}}
`

// turned is version 1 of a Dial, and angled version 2.
type turned struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Turns             int64 `json:"turns"`
}

type angled struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Degrees           int64 `json:"degrees"`
}

func (d *turned) DeepCopyObject() runtime.Object {
	out := *d
	d.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

func (d *angled) DeepCopyObject() runtime.Object {
	out := *d
	d.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

func dialOf(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "default", Name: name}
}

var _ = Describe("A manager that watches the kind which it converts", Ordered, func() {
	var (
		m        *manager.Manager
		writer   *client.Client
		dials    *informer.SharedInformer[*angled]
		released = make(chan struct{}) // closed: it converts
		release  = sync.OnceFunc(func() { close(released) })
		seen     = make(chan int64, 1)
		stop     context.CancelFunc
		done     = make(chan error, 1)
	)
	BeforeAll(func(ctx context.Context) {
		address, err := localserver.FreeAddress()
		Expect(err).NotTo(HaveOccurred())
		crd, err := envtest.ParseCRDs(strings.NewReader(strings.ReplaceAll(dialsCRD, "ADDRESS", address)))
		Expect(err).NotTo(HaveOccurred())
		Expect(env.InstallCRDObjects(ctx, crd...)).To(Succeed())

		scheme := runtime.NewScheme()
		Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
		for version, obj := range map[string]runtime.Object{"v1": &turned{}, "v2": &angled{}} {
			scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "manager.flyball.dev", Version: version, Kind: "Dial"}, obj)
		}
		writer, err = client.New(env.Config(), scheme, client.Options{})
		Expect(err).NotTo(HaveOccurred())
		Expect(writer.Create(ctx, &turned{ObjectMeta: dialOf("stored"), Turns: 2})).To(Succeed())
		// With an object that only this manager converts, later API servers could not
		// serve the kind.
		DeferCleanup(func(ctx context.Context) {
			Expect(writer.Delete(ctx, &turned{ObjectMeta: dialOf("stored")})).To(Succeed())
		})

		m, err = manager.New(manager.Options{
			Config: env.Config(), Scheme: scheme, Logger: quiet(), HealthAddress: "127.0.0.1:0", MetricsAddress: "0",
			Webhooks: webhook.Options{Address: address, Managed: &webhook.Managed{
				Namespace: "default", Service: "dials", Names: []string{"127.0.0.1"}, CRDs: []string{"dials.manager.flyball.dev"},
			}},
		})
		Expect(err).NotTo(HaveOccurred())
		webhook.Convert(m.Webhooks(), webhook.Spoke(
			func(from *turned, to *angled) error { <-released; to.Degrees = 360 * from.Turns; return nil },
			func(from *angled, to *turned) error { <-released; to.Turns = from.Degrees / 360; return nil }))
		dials = informer.For[*angled](m.Informers())
		c := reconcile.For(dials, func(_ context.Context, d *angled) (reconcile.Result, error) {
			seen <- d.Degrees
			return reconcile.Result{}, nil
		}, reconcile.Options{Name: "dials"})
		Expect(m.Add(c)).To(Succeed())
		var running context.Context
		running, stop = context.WithCancel(context.Background())
		DeferCleanup(stop)
		DeferCleanup(release)
		go func() { done <- m.Run(running) }()
	})

	It("becomes ready, and is asked, and then lists what is stored in another version (M4)", func() {
		Eventually(m.HealthAddr).WithTimeout(30 * time.Second).ShouldNot(BeEmpty())
		Eventually(status(m, "/readyz")).WithTimeout(30 * time.Second).Should(Equal(http.StatusOK))
		_, text := probe(m, "/readyz?verbose")
		Expect(text).To(And(
			ContainSubstring("[+]webhooks ok"),
			ContainSubstring("[+]informer/Dial.manager.flyball.dev does not count: this process converts what it waits for: not synced"),
			ContainSubstring("[+]controller/dials does not count: this process converts what it waits for: not synced")))
		Expect(dials.Synced()).NotTo(BeClosed(), "nothing has been converted yet")
		release()
		Eventually(dials.Synced()).WithTimeout(time.Minute).Should(BeClosed())
		Eventually(seen).WithTimeout(30 * time.Second).Should(Receive(BeEquivalentTo(720)))
		_, text = probe(m, "/readyz?verbose")
		Expect(text).To(And(ContainSubstring("[+]informer/Dial.manager.flyball.dev ok"), ContainSubstring("[+]controller/dials ok")))
	})

	It("answers for the drain delay after a stop has begun, not ready any more, and then no more", func(ctx context.Context) {
		asked := func() error { // version 1 is stored
			return writer.Create(ctx, &angled{ObjectMeta: dialOf("asked"), Degrees: 360}, client.DryRun{})
		}
		Expect(asked()).To(Succeed())
		stop()
		Eventually(func() string { _, text := probe(m, "/readyz"); return text }).Should(ContainSubstring("[-]shutdown failed: the manager is stopping"))
		Expect(status(m, "/readyz")(Default)).To(Equal(http.StatusServiceUnavailable))
		Expect(status(m, "/livez")(Default)).To(Equal(http.StatusOK))
		Expect(asked()).To(Succeed(), "who has not heard of the stop is answered")
		Expect(done).NotTo(Receive())
		Eventually(done).WithTimeout(40 * time.Second).Should(Receive(BeNil()))
		Expect(asked()).NotTo(Succeed())
		Eventually(asked).Should(MatchError(ContainSubstring("connection refused")), "after the connections that the API server has kept")
	})
})
