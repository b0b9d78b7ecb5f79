// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// network dials connections that can fall silent: their traffic is dropped without an
// error.
type network struct {
	mu    sync.Mutex
	conns []*silenceable
}

type silenceable struct {
	net.Conn
	silent atomic.Bool
}

func (n *network) dial(ctx context.Context, net_, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, net_, address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	s := &silenceable{Conn: conn}
	n.conns = append(n.conns, s)
	return s, nil
}

// silence drops all traffic of the connections so far.
func (n *network) silence() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range n.conns {
		c.silent.Store(true)
	}
}

func (s *silenceable) Read(p []byte) (int, error) {
	for {
		n, err := s.Conn.Read(p)
		if err != nil || !s.silent.Load() {
			return n, err
		}
	}
}

func (s *silenceable) Write(p []byte) (int, error) {
	if s.silent.Load() {
		return len(p), nil
	}
	return s.Conn.Write(p)
}

var _ = Describe("Two managers of one process that elect one", func() {
	It("are both ready and alive, and only one works", func(ctx context.Context) {
		var managers []*manager.Manager
		var stops []func()
		var working atomic.Int64
		for range 2 {
			m, err := manager.New(manager.Options{
				Config: env.Config(), Logger: quiet(), HealthAddress: "127.0.0.1:0", MetricsAddress: "127.0.0.1:0",
				LeaderElection: &manager.LeaderElection{ID: "twins", Namespace: "default"},
			})
			Expect(err).NotTo(HaveOccurred())
			c := reconcile.New("twin", func(ctx context.Context, _ reconcile.Key) (reconcile.Result, error) {
				working.Add(1)
				return reconcile.Result{}, nil
			}, reconcile.Options{})
			c.Watch(source.Kind(informer.For[*corev1.Namespace](m.Informers()), source.Self))
			Expect(m.Add(c)).To(Succeed())
			managers, stops = append(managers, m), append(stops, start(m))
			Eventually(status(m, "/readyz")).WithTimeout(30*time.Second).Should(Equal(http.StatusOK), "a standby never blocks a rollout")
			Expect(status(m, "/livez")(Default)).To(Equal(http.StatusOK))
			Eventually(managers[0].Elected()).WithTimeout(30 * time.Second).Should(BeClosed())
		}
		Eventually(working.Load).Should(BeNumerically(">", 0))
		Expect(managers[1].Elected()).NotTo(BeClosed())
		Expect(managers[1].Snapshot().Controllers[0].Outcomes[reconcile.OutcomeDone]).To(BeZero())
		Expect(managers[1].Client().Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "twin"}})).
			To(MatchError(manager.ErrNotLeading))
		Expect(managers[1].StandbyClient().Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "twin"}})).To(Succeed())
		stops[0]()
		Eventually(managers[1].Elected()).WithTimeout(30 * time.Second).Should(BeClosed())
		stops[1]()
	})
})

var _ = Describe("An elector", func() {
	It("takes the rights that docs/leader-election.md names, and no others", func(ctx context.Context) {
		cfg, err := env.User("elector")
		Expect(err).NotTo(HaveOccurred())
		api := kubernetes.NewForConfigOrDie(env.Config()).RbacV1()
		rule := func(verbs []string, names ...string) rbacv1.PolicyRule {
			return rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: verbs, ResourceNames: names}
		}
		meta := metav1.ObjectMeta{Name: "elector"}
		_, err = api.Roles("default").Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
			rule([]string{"create"}), rule([]string{"get", "list", "watch", "update"}, "modest"),
		}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = api.RoleBindings("default").Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "elector"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "elector"}},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		m, err := manager.New(manager.Options{
			Config: cfg, Logger: quiet(), HealthAddress: "127.0.0.1:0", MetricsAddress: "0",
			// It renews so rarely that only the watch can show it a change.
			LeaderElection: &manager.LeaderElection{ID: "modest", Namespace: "default", LeaseDuration: 10 * time.Minute, RetryPeriod: 2 * time.Minute},
		})
		Expect(err).NotTo(HaveOccurred())
		done := make(chan error, 1)
		go func() { done <- m.Run(ctx) }()
		Eventually(m.Elected()).WithTimeout(30 * time.Second).Should(BeClosed())
		leases := kubernetes.NewForConfigOrDie(env.Config()).CoordinationV1().Leases("default")
		_, err = leases.Patch(ctx, "modest", types.MergePatchType, []byte(`{"spec":{"holderIdentity":"thief"}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(done).WithTimeout(30*time.Second).Should(Receive(MatchError(manager.ErrLeadershipLost)), "it watches the Lease")
		families, err := m.Metrics().Gather()
		Expect(err).NotTo(HaveOccurred())
		var asked, refused int
		for _, f := range families {
			for _, metric := range f.GetMetric() {
				for _, label := range metric.GetLabel() {
					if f.GetName() == "rest_client_requests_total" && label.GetName() == "code" {
						asked++
						if label.GetValue() == "403" {
							refused++
						}
					}
				}
			}
		}
		Expect(asked).To(BeNumerically(">", 0))
		Expect(refused).To(BeZero(), "no request is forbidden")
	})
})

var _ = Describe("A leader whose connections fall silent", func() {
	It("renews its lease over another one", func(ctx context.Context) {
		network := &network{}
		cfg := env.Config()
		cfg.Dial = network.dial
		m, err := manager.New(manager.Options{
			Config: cfg, Logger: quiet(), HealthAddress: "127.0.0.1:0", MetricsAddress: "0",
			LeaderElection: &manager.LeaderElection{ID: "silence", Namespace: "default", LeaseDuration: 12 * time.Second},
		})
		Expect(err).NotTo(HaveOccurred())
		stop := start(m)
		Eventually(m.Elected()).WithTimeout(30 * time.Second).Should(BeClosed())
		leases := kubernetes.NewForConfigOrDie(env.Config()).CoordinationV1().Leases("default")
		renewed := func(g Gomega) time.Time {
			l, err := leases.Get(ctx, "silence", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			return l.Spec.RenewTime.Time
		}
		network.silence()
		silenced := time.Now()
		Eventually(renewed).WithTimeout(40*time.Second).Should(BeTemporally(">", silenced.Add(12*time.Second)), "it goes on for longer than the lease lasts")
		Expect(m.Snapshot().Leadership.Leading).To(BeTrue())
		Expect(status(m, "/livez")(Default)).To(Equal(http.StatusOK))
		stop()
	})
})

// slowWire is a proxy in front of a server that delays what clients send.
type slowWire struct {
	net.Listener
	to    string
	delay atomic.Int64  // nanoseconds
	got   chan struct{} // closed when the first delayed bytes have arrived
	once  sync.Once
	group sync.WaitGroup
}

func (w *slowWire) serve() {
	for {
		conn, err := w.Accept()
		if err != nil {
			return
		}
		w.group.Go(func() { w.join(conn) })
	}
}

func (w *slowWire) join(conn net.Conn) {
	defer conn.Close()
	server, err := net.Dial("tcp", w.to)
	if err != nil {
		return
	}
	w.group.Go(func() {
		defer conn.Close()
		_, _ = io.Copy(conn, server)
	})
	defer server.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		if delay := time.Duration(w.delay.Load()); delay > 0 {
			w.once.Do(func() { close(w.got) })
			<-time.After(delay)
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

var _ = Describe("A leader that stops while a write is under way", func() {
	It("gives the lease back after the write, or keeps it", func(ctx context.Context) {
		m, err := manager.New(manager.Options{
			Config: env.Config(), Logger: quiet(), HealthAddress: "0", MetricsAddress: "0",
			LeaderElection: &manager.LeaderElection{ID: "late", Namespace: "default"},
		})
		Expect(err).NotTo(HaveOccurred())
		running, stop := context.WithCancel(ctx)
		defer stop()
		done := make(chan error, 1)
		go func() { done <- m.Run(running) }()
		Eventually(m.Elected()).WithTimeout(30 * time.Second).Should(BeClosed())

		cfg := m.Config()
		host, err := url.Parse(cfg.Host)
		Expect(err).NotTo(HaveOccurred())
		wire := &slowWire{to: host.Host, got: make(chan struct{})}
		wire.Listener, err = net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		wire.group.Go(wire.serve)
		host.Host = wire.Addr().String()
		cfg.Host = host.String()
		behind, err := kubernetes.NewForConfig(cfg)
		Expect(err).NotTo(HaveOccurred())
		_, err = behind.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{}) // connects
		Expect(err).NotTo(HaveOccurred())
		wire.delay.Store(int64(time.Second))
		wrote := make(chan error, 1)
		go func() {
			_, err := behind.CoreV1().ConfigMaps("default").Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}}, metav1.CreateOptions{})
			wrote <- err
		}()
		Eventually(wire.got).WithTimeout(30 * time.Second).Should(BeClosed())
		stop()
		Eventually(done).WithTimeout(30 * time.Second).Should(Receive(BeNil()))

		api := kubernetes.NewForConfigOrDie(env.Config())
		lease, err := api.CoordinationV1().Leases("default").Get(ctx, "late", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
			_, err := api.CoreV1().ConfigMaps("default").Get(ctx, "late", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred(), "the lease was given back while the write was under way")
			Eventually(wrote).Should(Receive(BeNil()))
		} else {
			Eventually(wrote).WithTimeout(30*time.Second).Should(Receive(HaveOccurred()), "the lease is kept because the write was cut off")
		}
		Expect(wire.Close()).To(Succeed())
	})
})
