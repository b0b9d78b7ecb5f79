// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

func TestControlPlane(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	RunSpecs(t, "manager on a real control plane")
}

var env *envtest.Environment

var _ = BeforeSuite(func(ctx context.Context) {
	var err error
	env, err = envtest.Start(ctx, envtest.Options{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(env.Stop()).To(Succeed()) })
})

// start runs m until the returned function stops it as a SIGTERM does, and checks that
// nothing is left.
func start(m *manager.Manager) (stop func()) {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	Eventually(m.HealthAddr).WithTimeout(30 * time.Second).ShouldNot(BeEmpty())
	stop = func() {
		GinkgoHelper()
		cancel()
		Eventually(done).WithTimeout(40*time.Second).Should(Receive(BeNil()), "Run returns after its context has ended")
		Expect(m.Snapshot().Phase).To(Equal(manager.PhaseStopped))
	}
	return stop
}

// status requests one of the manager's probes over the network.
func status(m *manager.Manager, path string) func(g Gomega) int {
	return func(g Gomega) int {
		req, err := http.NewRequest(http.MethodGet, "http://"+m.HealthAddr()+path, nil)
		g.Expect(err).NotTo(HaveOccurred())
		req.Close = true
		resp, err := http.DefaultClient.Do(req)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(resp.Body.Close()).To(Succeed())
		return resp.StatusCode
	}
}

var _ = Describe("A manager with a controller of ConfigMaps", Ordered, func() {
	var before []gleak.Goroutine
	BeforeEach(func() { before = gleak.Goroutines() })
	nothingIsLeft := func() {
		GinkgoHelper()
		Eventually(gleak.Goroutines).WithTimeout(20 * time.Second).
			ShouldNot(gleak.HaveLeaked(before, gleak.IgnoringInBacktrace("envtest.startProcess")))
	}

	It("outlives the API server, and leaves nothing behind", func(ctx context.Context) {
		m, err := manager.New(manager.Options{
			Config: env.Config(), Logger: quiet(), HealthAddress: "127.0.0.1:0", MetricsAddress: "127.0.0.1:0",
		})
		Expect(err).NotTo(HaveOccurred())
		maps := informer.For[*corev1.ConfigMap](m.Informers(), informer.Scope{Namespaces: []string{"default"}})
		// Each map gets its name as data, once.
		var writes atomic.Int64
		lister := maps.Lister()
		c := reconcile.New("stamper", func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
			cm, err := lister.Get(key)
			if err != nil {
				return reconcile.Result{}, reconcile.IgnoreNotFound(err)
			}
			if cm.Data["name"] == cm.Name {
				return reconcile.Result{}, nil
			}
			cm = kube.Copy(cm)
			cm.Data = map[string]string{"name": cm.Name}
			writes.Add(1)
			return reconcile.Result{}, m.Client().Update(ctx, cm)
		}, reconcile.Options{})
		c.Watch(source.Kind(maps, source.Self))
		Expect(m.Add(c)).To(Succeed())

		stop := start(m)
		Eventually(status(m, "/readyz")).WithTimeout(30 * time.Second).Should(Equal(http.StatusOK))
		stamped := func(name string) {
			GinkgoHelper()
			Expect(createConfigMap(ctx, name)).To(Succeed())
			Eventually(func(g Gomega) string {
				cm, err := lister.Get(reconcile.Key{Namespace: "default", Name: name})
				g.Expect(err).NotTo(HaveOccurred())
				return cm.Data["name"]
			}).WithTimeout(time.Minute).Should(Equal(name))
		}
		stamped("before")

		Expect(env.KillAPIServer()).To(Succeed())
		Eventually(func() state.State { return maps.Snapshot().Scopes[0].State }).
			WithTimeout(30 * time.Second).ShouldNot(Equal(state.Live))
		Expect(status(m, "/livez")(Default)).To(Equal(http.StatusOK), "no restart of the manager heals the API server")
		Expect(status(m, "/readyz")(Default)).To(Equal(http.StatusOK), "what has synced stays synced")
		Expect(env.StartAPIServer(ctx)).To(Succeed())

		stamped("after")
		stop()
		Expect(writes.Load()).To(BeNumerically(">=", 2))
		nothingIsLeft()
	})

	It("says what it may not watch, and stops all the same", func(ctx context.Context) {
		cfg, err := env.User("robot")
		Expect(err).NotTo(HaveOccurred())
		m, err := manager.New(manager.Options{Config: cfg, Logger: quiet(), HealthAddress: "127.0.0.1:0", MetricsAddress: "0"})
		Expect(err).NotTo(HaveOccurred())
		maps := informer.For[*corev1.ConfigMap](m.Informers())
		c := reconcile.New("blind", func(context.Context, reconcile.Key) (reconcile.Result, error) {
			return reconcile.Result{}, nil
		}, reconcile.Options{})
		c.Watch(source.Kind(maps, source.Self))
		Expect(m.Add(c)).To(Succeed())
		stop := start(m)
		Eventually(func() string { _, text := probe(m, "/readyz"); return text }).WithTimeout(30 * time.Second).Should(And(
			ContainSubstring("[-]informer/ConfigMap failed: not synced in all namespaces: Forbidden since "),
			ContainSubstring(`User "robot" cannot`),
			ContainSubstring("waits for kind ConfigMap")))
		Expect(status(m, "/readyz")(Default)).To(Equal(http.StatusServiceUnavailable))
		Expect(status(m, "/livez")(Default)).To(Equal(http.StatusOK))
		stop()
		nothingIsLeft()
	})
})

func createConfigMap(ctx context.Context, name string) error {
	api, err := kubernetes.NewForConfig(env.Config())
	if err != nil {
		return err
	}
	_, err = api.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return err
}
