// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/reconcile"
)

// busy is a proxy of the real server that answers 429 to the requests that refuses selects.
type busy struct {
	*httptest.Server
	mu struct {
		sync.Mutex
		refuses func(*http.Request) bool
		refused []time.Time
		paths   map[string]int
	}
}

// newBusy answers with a Status, as the server's storage does, or with plain text, as
// priority and fairness does.
func newBusy(status bool) *busy {
	GinkgoHelper()
	to, err := url.Parse(env.Config().Host)
	Expect(err).NotTo(HaveOccurred())
	transport, err := rest.TransportFor(env.Config())
	Expect(err).NotTo(HaveOccurred())
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0),
	}
	b := &busy{}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !b.refusesNow(r) {
			forward.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Retry-After", "1")
		kind, text := "text/plain", "Too many requests, please try again later.\n"
		if status {
			kind, text = "application/json", `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"storage is (re)initializing","reason":"TooManyRequests","details":{"retryAfterSeconds":1},"code":429}`
		}
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, text)
	}))
	DeferCleanup(b.Close)
	return b
}

func (b *busy) refusesNow(r *http.Request) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.refuses == nil || !b.mu.refuses(r) {
		return false
	}
	b.mu.refused = append(b.mu.refused, time.Now())
	b.mu.paths[r.URL.Path]++
	return true
}

// refuse resets the count and sets what is refused; nil refuses nothing.
func (b *busy) refuse(which func(*http.Request) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.refuses, b.mu.refused, b.mu.paths = which, nil, map[string]int{}
}

// refused returns the times of all refused requests.
func (b *busy) refused() []time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.refused
}

// paths returns the paths that were refused.
func (b *busy) paths() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for path := range b.mu.paths {
		out = append(out, path)
	}
	return out
}

func everything(*http.Request) bool { return true }

// builtIn are kinds that every server has.
var builtIn = []schema.GroupVersionKind{
	{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "Pod"}, {Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "Endpoints"}, {Version: "v1", Kind: "Namespace"}, {Version: "v1", Kind: "Node"}, {Version: "v1", Kind: "ServiceAccount"},
	{Version: "v1", Kind: "PersistentVolume"}, {Version: "v1", Kind: "PersistentVolumeClaim"}, {Version: "v1", Kind: "LimitRange"},
	{Version: "v1", Kind: "ResourceQuota"}, {Version: "v1", Kind: "ReplicationController"}, {Version: "v1", Kind: "PodTemplate"},
	{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "ReplicaSet"}, {Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"}, {Group: "apps", Version: "v1", Kind: "ControllerRevision"},
	{Group: "batch", Version: "v1", Kind: "Job"}, {Group: "batch", Version: "v1", Kind: "CronJob"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}, {Group: "networking.k8s.io", Version: "v1", Kind: "IngressClass"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"}, {Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "Role"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "RoleBinding"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, {Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
	{Group: "storage.k8s.io", Version: "v1", Kind: "StorageClass"}, {Group: "storage.k8s.io", Version: "v1", Kind: "CSIDriver"},
	{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, {Group: "discovery.k8s.io", Version: "v1", Kind: "EndpointSlice"},
	{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}, {Group: "scheduling.k8s.io", Version: "v1", Kind: "PriorityClass"},
}

var _ = Describe("a proxy that answers 429 to every request", Label("A13"), func() {
	// first is the number of refusals until all informers have met one, including the
	// requests that were in flight.
	// that were under way then.
	DescribeTable("is asked less than ten times a second, and all kinds are synced when it lets requests pass (A13)", func(status bool, first int) {
		const then = 40
		b := newBusy(status)
		b.refuse(everything)
		factory, err := informer.NewSharedInformerFactory(&rest.Config{Host: b.URL}, scheme, informer.Options{Logger: GinkgoLogr})
		Expect(err).NotTo(HaveOccurred())
		for _, kind := range builtIn {
			informer.ForKind(factory, kind)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- factory.Run(ctx) }()
		DeferCleanup(func() {
			cancel()
			Eventually(done).WithTimeout(20*time.Second).Should(Receive(BeNil()), "Run returns after its context has ended")
		})
		for _, phase := range []string{"from the start", "when all watches have been cut"} {
			Eventually(func() int { return len(b.refused()) }).WithTimeout(2 * time.Minute).Should(BeNumerically(">=", first+then))
			refused := b.refused()
			took := refused[first+then-1].Sub(refused[first-1])
			AddReportEntry(fmt.Sprintf("requests a second to a proxy that refuses all, %s (status %t)", phase, status), then/took.Seconds())
			// A slow machine sends fewer requests, so load cannot break this.
			Expect(then/took.Seconds()).To(BeNumerically("<", 10), "%s: requests a second after the first %d", phase, first)

			b.refuse(nil)
			Eventually(func() []state.State {
				var states []state.State
				for _, s := range factory.Snapshot() {
					states = append(states, s.Scopes[0].State)
				}
				return states
			}).WithTimeout(2 * time.Minute).Should(And(HaveLen(len(builtIn)), HaveEach(state.Live)))
			b.refuse(everything)
			b.CloseClientConnections()
		}
	},
		Entry("in front of its storages", false, len(builtIn)+5),
		Entry("in the words of a storage", true, 60),
	)
})

var _ = Describe("a kind whose writes the server refuses with 429", Label("A23"), func() {
	It("holds up the workers of its own controller and of no other", func(ctx context.Context) {
		const workers, objects = 4, 20
		ns := newNamespace(ctx)
		b := newBusy(true)
		b.refuse(func(r *http.Request) bool {
			return r.Method != http.MethodGet && strings.Contains(r.URL.Path, "/widgets")
		})
		p := newProcess(&rest.Config{Host: b.URL}, ns)
		sick := watch(p, "sick", reconcile.Options{Workers: workers}, func(ctx context.Context, cm *corev1.ConfigMap) error {
			return p.Client().Apply(ctx, newWidget(cm.Namespace, cm.Name, "1"), client.FieldOwner("sick"))
		})
		watch(p, "well", reconcile.Options{Workers: 1}, func(ctx context.Context, s *corev1.Secret) error {
			return p.Client().Apply(ctx, configMap(s.Namespace, "made-for-"+s.Name, nil), client.FieldOwner("well"))
		})
		for n := range objects {
			Expect(outside.Create(ctx, configMap(ns, fmt.Sprintf("a-%d", n), nil))).To(Succeed())
		}
		p.start()
		Eventually(b.paths).Should(HaveLen(workers), "each worker of the sick controller has a write that is refused")
		for n := range objects {
			Expect(outside.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: fmt.Sprintf("b-%d", n)}})).To(Succeed())
		}
		made := func() (names []string, err error) {
			for cm, err := range client.List[*corev1.ConfigMap](ctx, outside, client.InNamespace(ns)) {
				if err != nil {
					return nil, err
				}
				if strings.HasPrefix(cm.Name, "made-for-") {
					names = append(names, cm.Name)
				}
			}
			return names, nil
		}
		Eventually(made).Should(HaveLen(objects), "the one worker of the other controller writes for each object")
		Expect(live[*widget](ctx, ns)).To(BeEmpty(), "the sick kind is refused all the time")

		b.refuse(nil)
		Eventually(func() map[string]string { return live[*widget](ctx, ns) }).WithTimeout(2*time.Minute).Should(HaveLen(2*objects), "and is written for at last")
		Expect(sick.wrong()).To(BeEmpty())
		p.ends()
	})
})
