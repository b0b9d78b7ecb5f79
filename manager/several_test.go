// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"flag"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// tenant is one of several managers of this process with the same scheme and names, but
// its own flags.
type tenant struct {
	*manager.Manager
	namespace string
	fs        *flag.FlagSet
	events    events.EventRecorder
	seen      chan string  // names of reconciled ConfigMaps
	lines     atomic.Int64 // of its log
	stop      func()
}

func newTenant(ctx context.Context, namespace string) *tenant {
	GinkgoHelper()
	t := &tenant{namespace: namespace, seen: make(chan string, 100), fs: flag.NewFlagSet(namespace, flag.ContinueOnError)}
	opts := manager.Options{
		Scheme: clientgoscheme.Scheme, Config: env.Config(),
		Logger: funcr.New(func(string, string) { t.lines.Add(1) }, funcr.Options{}),
	}
	opts.BindFlags(t.fs)
	Expect(t.fs.Parse([]string{"-metrics-bind-address=127.0.0.1:0", "-health-probe-bind-address=127.0.0.1:0", "-watch-namespaces=" + namespace})).To(Succeed())
	var err error
	t.Manager, err = manager.New(opts)
	Expect(err).NotTo(HaveOccurred())
	Expect(t.Client().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	t.events = t.Events("tenant")
	maps := informer.For[*corev1.ConfigMap](t.Informers())
	c := reconcile.New("tenant", func(_ context.Context, key reconcile.Key) (reconcile.Result, error) {
		cm, err := maps.Lister().Get(key)
		if err != nil {
			return reconcile.Result{}, reconcile.IgnoreNotFound(err)
		}
		t.events.Eventf(cm, nil, corev1.EventTypeNormal, "Seen", "Look", "by %s", namespace)
		t.seen <- key.String()
		return reconcile.Result{}, nil
	}, reconcile.Options{})
	c.Watch(source.Kind(maps, source.Self))
	Expect(t.Add(c)).To(Succeed())
	t.stop = start(t.Manager)
	Eventually(status(t.Manager, "/readyz")).WithTimeout(30 * time.Second).Should(Equal(http.StatusOK))
	return t
}

// works checks that a ConfigMap in the tenant's namespace leads to its own reconcile,
// metric and event.
func (t *tenant) works(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(t.Client().Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: name}})).To(Succeed())
	Eventually(t.seen).WithTimeout(30 * time.Second).Should(Receive(Equal(t.namespace + "/" + name)))
	Expect(t.scrape()).To(ContainSubstring(`controller_runtime_reconcile_total{controller="tenant",result="success"}`))
	Eventually(func() []string { return t.told(ctx) }).WithTimeout(30 * time.Second).Should(ContainElement(name))
}

// told returns the objects of the events in the tenant's namespace.
func (t *tenant) told(ctx context.Context) []string {
	GinkgoHelper()
	var names []string
	for e, err := range client.List[*eventsv1.Event](ctx, t.Client(), client.InNamespace(t.namespace)) {
		Expect(err).NotTo(HaveOccurred())
		names = append(names, e.Regarding.Name)
	}
	return names
}

func (t *tenant) scrape() string {
	GinkgoHelper()
	req, err := http.NewRequest(http.MethodGet, "http://"+t.MetricsAddr()+"/metrics", nil)
	Expect(err).NotTo(HaveOccurred())
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	Expect(err).NotTo(HaveOccurred())
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

var _ = Describe("Two managers of one process and one scheme", func() {
	It("share nothing, and one goes on when the other stops", func(ctx context.Context) {
		logger := klog.Background()
		a, b := newTenant(ctx, "tenant-a"), newTenant(ctx, "tenant-b")
		a.works(ctx, "first")
		b.works(ctx, "first")
		Expect(a.MetricsAddr()).NotTo(Equal(b.MetricsAddr()))
		Expect(a.Metrics()).NotTo(BeIdenticalTo(b.Metrics()))

		a.stop()
		_, err := http.Get("http://" + a.MetricsAddr() + "/metrics")
		Expect(err).To(HaveOccurred(), "the stopped one serves nothing")
		silent := a.lines.Load()
		b.works(ctx, "second")
		b.stop()

		Expect(a.seen).NotTo(Receive(), "nobody reconciles for the stopped one")
		Expect(a.lines.Load()).To(Equal(silent), "nobody logs for the stopped one")
		Expect(a.told(ctx)).To(ConsistOf("first"))
		Expect(klog.Background()).To(Equal(logger), "the process's logger is as it was")
		families, err := prometheus.DefaultGatherer.Gather()
		Expect(err).NotTo(HaveOccurred())
		for _, f := range families {
			Expect(strings.HasPrefix(f.GetName(), "go_") || strings.HasPrefix(f.GetName(), "process_") || strings.HasPrefix(f.GetName(), "promhttp_")).
				To(BeTrue(), f.GetName()+" is in the process's registry")
		}
		_, pattern := http.DefaultServeMux.Handler(&http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/metrics"}})
		Expect(pattern).To(BeEmpty(), "the process's handlers are as they were")
		flag.VisitAll(func(f *flag.Flag) {
			Expect(slices.Contains([]string{"kubeconfig", "metrics-bind-address"}, f.Name)).To(BeFalse(), "the process's flags are as they were")
		})
	})
})
