// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/manager"
)

// holding is a proxy of connections that can hold back every byte, in both directions.
type holding struct {
	net.Listener
	to   string
	free sync.Cond
	mu   sync.Mutex
	held bool
	ends []net.Conn
}

func newHolding(to string) *holding {
	GinkgoHelper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	h := &holding{Listener: ln, to: to}
	h.free.L = &h.mu
	var pumps sync.WaitGroup
	pumps.Go(func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			h.mu.Lock()
			h.ends = append(h.ends, in, out)
			h.mu.Unlock()
			pumps.Go(func() { h.pump(in, out) })
			pumps.Go(func() { h.pump(out, in) })
		}
	})
	DeferCleanup(func() {
		h.hold(false)
		_ = ln.Close()
		h.mu.Lock()
		ends := h.ends
		h.mu.Unlock()
		for _, end := range ends {
			_ = end.Close()
		}
		pumps.Wait()
	})
	return h
}

func (h *holding) pump(from, to net.Conn) {
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		h.mu.Lock()
		for h.held {
			h.free.Wait()
		}
		h.mu.Unlock()
		if _, bad := to.Write(buf[:n]); bad != nil || err != nil {
			return
		}
	}
}

func (h *holding) hold(is bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.held = is
	h.free.Broadcast()
}

// attempt is a write.
type attempt struct {
	began  time.Time // before the gate was asked
	passed atomic.Bool
	err    error
}

// attemptKey is the key of the attempt in the context of a write.
type attemptKey struct{}

// letPass records what has passed the gate.
type letPass struct{ next http.RoundTripper }

// WrappedRoundTripper lets the end of a run find the remaining connections.
func (l letPass) WrappedRoundTripper() http.RoundTripper { return l.next }

func (l letPass) RoundTrip(r *http.Request) (*http.Response, error) {
	if at, ok := r.Context().Value(attemptKey{}).(*attempt); ok {
		at.passed.Store(true)
	}
	return l.next.RoundTrip(r)
}

var _ = Describe("a leader whose bytes are held back on their way", Label("M3"), func() {
	It("has sent its last write long enough before another one leads (M3)", func(ctx context.Context) {
		const lasts = 15 * time.Second // the default
		ns := newNamespace(ctx)
		server, err := url.Parse(env.Config().Host)
		Expect(err).NotTo(HaveOccurred())
		network := newHolding(server.Host)
		replica := func(dial func(context.Context, string, string) (net.Conn, error)) *manager.Manager {
			cfg := env.Config()
			cfg.QPS = -1
			cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return letPass{next} })
			if dial != nil {
				cfg.Dial = dial
			}
			m, err := manager.New(manager.Options{
				Config: cfg, Scheme: scheme, HealthAddress: "0", MetricsAddress: "0", Logger: GinkgoLogr,
				LeaderElection: &manager.LeaderElection{ID: "late", Namespace: ns},
			})
			Expect(err).NotTo(HaveOccurred())
			run, cancel := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() { done <- m.Run(run) }()
			DeferCleanup(func() {
				cancel()
				Eventually(done).WithTimeout(time.Minute).Should(Receive(Or(BeNil(), MatchError(manager.ErrLeadershipLost))))
			})
			return m
		}
		leader := replica(func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", network.Addr().String())
		})
		Eventually(leader.Elected()).Should(BeClosed())
		standby := replica(nil)
		Expect(outside.Create(ctx, configMap(ns, "a", nil))).To(Succeed())

		// A write every few milliseconds, without waiting for earlier ones.
		maps := kubernetes.NewForConfigOrDie(leader.Config()).CoreV1().ConfigMaps(ns)
		var all []*attempt
		var writes sync.WaitGroup
		write := func() {
			at := &attempt{began: time.Now()}
			all = append(all, at)
			writes.Go(func() {
				_, at.err = maps.Patch(context.WithValue(ctx, attemptKey{}, at), "a", types.MergePatchType,
					[]byte(fmt.Sprintf(`{"data":{"at":%q}}`, at.began.Format(time.RFC3339Nano))), metav1.PatchOptions{})
			})
		}
		lease := func() (metav1.MicroTime, string) {
			l, err := api.CoordinationV1().Leases(ns).Get(ctx, "late", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			return *l.Spec.RenewTime, *l.Spec.HolderIdentity
		}
		_, first := lease()
		write()
		writes.Wait()
		Expect(all[0].err).NotTo(HaveOccurred())
		network.hold(true)
		renewed, _ := lease()
		held := time.Now()
		tick := time.NewTicker(150 * time.Millisecond)
		defer tick.Stop()
		for over := false; !over; {
			select {
			case <-standby.Elected():
				over = true
			case <-tick.C:
				write()
			}
		}
		_, second := lease()
		Expect(second).NotTo(Equal(first))
		writes.Wait()
		l, err := api.CoordinationV1().Leases(ns).Get(ctx, "late", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		acquired := l.Spec.AcquireTime.Time
		var last, refused time.Time
		for _, at := range all {
			if at.passed.Load() {
				last = at.began
			} else if refused.IsZero() {
				Expect(at.err).To(MatchError(manager.ErrNotLeading))
				refused = at.began
			}
		}
		AddReportEntry("from the last renewal to another leader", acquired.Sub(renewed.Time))
		AddReportEntry("from the first write that was held back to another leader", acquired.Sub(held))
		AddReportEntry("from the last write that the gate let pass to another leader", acquired.Sub(last))
		AddReportEntry("from the first write that it refused to another leader", acquired.Sub(refused))
		Expect(refused.IsZero()).To(BeFalse(), "the gate has refused writes")
		Expect(acquired.Sub(renewed.Time)).To(BeNumerically(">=", lasts), "between the last renewal and the first moment of another leader")
		// The beginning of a write precedes the check of the gate, so load cannot break
		// this.
		Expect(acquired.Sub(last)).To(BeNumerically(">=", lasts/10), "between the last write of one and the first of the other")
	})
})
