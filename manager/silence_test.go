// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/manager"
)

// network dials connections that can fall silent: what they carry is lost, and
// nobody is told.
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

// silence has all that were dialled so far carry nothing.
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

var _ = Describe("A leader whose connections fall silent", func() {
	It("renews its lease over another one", func(ctx context.Context) {
		network := &network{}
		cfg := env.Config()
		cfg.Dial = network.dial
		m, err := manager.New(manager.Options{
			Config: cfg, Logger: quiet(), HealthAddress: "127.0.0.1:0", MetricsAddress: "0",
			LeaderElection: &manager.LeaderElection{ID: "silence", Namespace: "default", LeaseDuration: 6 * time.Second},
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
		Eventually(renewed).WithTimeout(20*time.Second).Should(BeTemporally(">", silenced.Add(6*time.Second)), "it goes on for longer than the lease lasts")
		Expect(m.Snapshot().Leadership.Leading).To(BeTrue())
		Expect(status(m, "/livez")(Default)).To(Equal(http.StatusOK))
		stop()
	})
})
