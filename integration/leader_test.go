// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package integration_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// What the spec tells the program below.
const (
	replicaName      = "FLYBALL_TEST_REPLICA" // unset: this is not it
	replicaNamespace = "FLYBALL_TEST_REPLICA_NAMESPACE"
	replicaLease     = "FLYBALL_TEST_REPLICA_LEASE" // how long it lasts
	replicaDeaf      = "FLYBALL_TEST_REPLICA_DEAF"  // set: something ignores its context
)

// TestReplica is a process of an operator with leader election. While it leads it
// writes all the time, with a client that it has made of the manager's
// configuration itself.
func TestReplica(t *testing.T) {
	name, namespace := os.Getenv(replicaName), os.Getenv(replicaNamespace)
	if name == "" {
		t.Skip("a program for another test")
	}
	lasts, err := time.ParseDuration(os.Getenv(replicaLease))
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := manager.FindConfig("", "")
	if err != nil {
		t.Fatal(err)
	}
	cfg.UserAgent = name
	m, err := manager.New(manager.Options{
		Config: cfg, Scheme: clientscheme.Scheme, HealthAddress: "0", MetricsAddress: "0",
		LeaderElection: &manager.LeaderElection{ID: "replicas", Namespace: namespace, LeaseDuration: lasts},
	})
	if err != nil {
		t.Fatal(err)
	}
	maps := kubernetes.NewForConfigOrDie(m.Config()).CoreV1().ConfigMaps(namespace)
	c := reconcile.New("writer", func(ctx context.Context, key string) (reconcile.Result, error) {
		patch := fmt.Sprintf(`{"data":{"by":%q,"at":%q}}`, name, time.Now().Format(time.RFC3339Nano))
		_, err := maps.Patch(ctx, key, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return reconcile.Result{}, err
	}, reconcile.Options{Workers: 2})
	c.Watch(source.Ticker(20*time.Millisecond, func() iter.Seq[string] { return slices.Values([]string{"a", "b"}) }, source.TickerOptions{}))
	if err := m.Add(c); err != nil {
		t.Fatal(err)
	}
	if os.Getenv(replicaDeaf) != "" {
		if err := m.Add(manager.RunnableFunc(func(context.Context) error { select {} })); err != nil {
			t.Fatal(err)
		}
	}
	ctx := manager.SignalContext()
	context.AfterFunc(ctx, func() { fmt.Println("told to stop") })
	fmt.Println("starts")
	go func() {
		<-m.Elected()
		fmt.Println("leads")
	}()
	if err := m.Run(ctx); err != nil {
		fmt.Println("ended with:", err)
		os.Exit(3)
	}
	fmt.Println("stopped")
}

var _ = Describe("two processes of an operator that elect one", Ordered, func() {
	var (
		own *envtest.Environment
		log auditLog
		ns  string
		n   int
	)
	BeforeAll(func(ctx context.Context) {
		dir := GinkgoT().TempDir()
		log = auditLog(filepath.Join(dir, "audit.log"))
		policy := filepath.Join(dir, "policy.yaml")
		Expect(os.WriteFile(policy, []byte(auditPolicy), 0o600)).To(Succeed())
		var err error
		own, err = envtest.Start(ctx, envtest.Options{APIServerArgs: map[string][]string{
			"audit-policy-file": {policy}, "audit-log-path": {string(log)},
		}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(own.Stop()).To(Succeed()) })
		writesTo(own)
	})
	BeforeEach(func(ctx context.Context) {
		n = 0
		ns = newNamespace(ctx)
		for _, name := range []string{"a", "b"} {
			Expect(outside.Create(ctx, configMap(ns, name, nil))).To(Succeed())
		}
	})
	begin := func(lasts time.Duration, environ ...string) *replicaProcess {
		GinkgoHelper()
		n++
		return startReplica(own, fmt.Sprintf("replica-%d", n), append(environ, replicaNamespace+"="+ns, replicaLease+"="+lasts.String())...)
	}
	// long keeps a spec out of what runs with each change.
	long := func() {
		GinkgoHelper()
		if os.Getenv("FLYBALL_ELECTION") != "all" {
			Skip("make election runs it")
		}
	}
	// pair is one that leads and one that stands by.
	pair := func(lasts time.Duration, environ ...string) (leader, standby *replicaProcess) {
		GinkgoHelper()
		leader = begin(lasts, environ...)
		leader.says("leads")
		standby = begin(lasts)
		standby.says("standing by")
		log.awaits(ns, standby.name, "get", "leases")
		log.awaits(ns, leader.name, "patch", "configmaps")
		return leader, standby
	}
	// nobodyWroteLate holds the server's own log to what the gate promises.
	nobodyWroteLate := func() {
		GinkgoHelper()
		late, all := log.late(ns)
		Expect(all).To(BeNumerically(">", 10), "the log has the writes")
		Expect(late).To(BeEmpty(), "writes of one replica that the server received after another had taken the lease")
	}

	It("hand over by a SIGTERM, at once and without a write of the wrong one", func() {
		var took []time.Duration
		leader := begin(15 * time.Second)
		leader.says("leads")
		for range 3 {
			standby := begin(15 * time.Second)
			standby.says("standing by")
			log.awaits(ns, standby.name, "watch", "leases")
			log.awaits(ns, leader.name, "patch", "configmaps")
			leader.signal(syscall.SIGTERM)
			leader.says("stopped")
			Expect(leader.ends()).To(Equal(0))
			standby.says("leads")
			log.awaits(ns, standby.name, "patch", "configmaps")
			took = append(took, log.handOver(ns, leader.name, standby.name))
			leader = standby
		}
		nobodyWroteLate()
		slices.Sort(took)
		AddReportEntry("from the release of the lease to the first write of the next leader", fmt.Sprint("median ", took[len(took)/2], " of ", took))
	})

	It("wait for the lease's time after a kill", func() {
		long()
		leader, standby := pair(3 * time.Second)
		leader.signal(syscall.SIGKILL)
		standby.says("leads")
		log.awaits(ns, standby.name, "patch", "configmaps")
		nobodyWroteLate()
		standby.signal(syscall.SIGTERM)
		Expect(standby.ends()).To(Equal(0))
	})

	It("never write both, when one is stopped past its lease and goes on, again and again", func() {
		leader, standby := pair(2 * time.Second)
		for range 2 {
			leader.signal(syscall.SIGSTOP)
			standby.says("leads")
			log.awaits(ns, standby.name, "patch", "configmaps")
			leader.signal(syscall.SIGCONT)
			leader.says("leadership is lost")
			Expect(leader.ends()).To(Equal(3))
			leader, standby = standby, begin(2*time.Second)
			standby.says("standing by")
			log.awaits(ns, standby.name, "get", "leases")
		}
		nobodyWroteLate()
	})

	It("go on after a stop that was shorter than the lease", func() {
		long()
		leader, standby := pair(15 * time.Second)
		leader.signal(syscall.SIGSTOP)
		log.quiet(ns, leader.name)
		leader.signal(syscall.SIGCONT)
		log.awaitsMore(ns, leader.name, "patch", "configmaps")
		Expect(standby.said("leads")).To(BeFalse())
		nobodyWroteLate()
	})

	It("outlive an API server that is away for a while, and give up on one that stays away", func(ctx context.Context) {
		long()
		leader, standby := pair(60 * time.Second)
		Expect(own.KillAPIServer()).To(Succeed())
		Expect(own.StartAPIServer(ctx)).To(Succeed())
		log.awaitsMore(ns, leader.name, "patch", "configmaps")
		Expect(leader.said("ended")).To(BeFalse(), "an outage below the deadline is waited out")
		leader.signal(syscall.SIGTERM)
		Expect(leader.ends()).To(Equal(0))
		standby.says("leads")
		standby.signal(syscall.SIGTERM)
		Expect(standby.ends()).To(Equal(0))

		leader, standby = pair(2 * time.Second)
		Expect(own.KillAPIServer()).To(Succeed())
		leader.says("it could not be renewed for 1.33")
		Expect(leader.ends()).To(Equal(3))
		Expect(own.StartAPIServer(ctx)).To(Succeed())
		standby.says("leads")
		log.awaits(ns, standby.name, "patch", "configmaps")
		nobodyWroteLate()
	})

	It("keep the leader when the Lease is deleted", func(ctx context.Context) {
		long()
		leader, standby := pair(15 * time.Second)
		for range 2 {
			Expect(api.CoordinationV1().Leases(ns).Delete(ctx, "replicas", metav1.DeleteOptions{})).To(Succeed())
			Eventually(func() error {
				_, err := api.CoordinationV1().Leases(ns).Get(ctx, "replicas", metav1.GetOptions{})
				return err
			}).Should(Succeed(), "it is made anew")
			log.awaitsMore(ns, leader.name, "patch", "configmaps")
		}
		Expect(standby.said("leads")).To(BeFalse())
		nobodyWroteLate()
	})

	It("end at once when another's name is in the Lease", func(ctx context.Context) {
		long()
		leader, _ := pair(15 * time.Second)
		_, err := api.CoordinationV1().Leases(ns).Patch(ctx, "replicas", types.MergePatchType,
			[]byte(`{"spec":{"holderIdentity":"thief"}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		leader.says(`"thief" has taken the lease`)
		Expect(leader.ends()).To(Equal(3))
		l, err := api.CoordinationV1().Leases(ns).Get(ctx, "replicas", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(l.Spec.HolderIdentity).To(HaveValue(Equal("thief")), "what was taken is not given back")
	})

	It("keep the lease when a second SIGTERM ends one that does not stop", func(ctx context.Context) {
		long()
		leader, standby := pair(3*time.Second, replicaDeaf+"=1")
		leader.signal(syscall.SIGTERM)
		leader.says("told to stop")
		leader.signal(syscall.SIGTERM)
		Expect(leader.ends()).To(Equal(1))
		l, err := api.CoordinationV1().Leases(ns).Get(ctx, "replicas", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(*l.Spec.HolderIdentity).NotTo(BeEmpty(), "what it guards has not ended")
		standby.says("leads")
		log.awaits(ns, standby.name, "patch", "configmaps")
		nobodyWroteLate()
	})
})

// auditPolicy has the server write down who writes what, and who looks at Leases.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  resources: [{group: coordination.k8s.io, resources: [leases]}, {group: "", resources: [configmaps]}]
- level: None
`

func (p *replicaProcess) said(text string) bool { return strings.Contains(p.output(), text) }
