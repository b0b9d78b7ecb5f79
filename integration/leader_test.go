// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package integration_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/envtest"
)

// patient is the time of a lease that a leader on a busy machine does not lose.
const patient = 6 * time.Second

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
	// pair starts a leader and a standby.
	pair := func(lasts time.Duration, environ ...string) (leader, standby *replicaProcess) {
		GinkgoHelper()
		leader = begin(lasts, environ...)
		leader.says("leads")
		standby = begin(lasts)
		standby.says("Waiting to become the leader")
		log.awaits(ns, standby.name, "get", "leases")
		log.awaits(ns, leader.name, "patch", "configmaps")
		return leader, standby
	}
	// nobodyWroteLate compares the server's audit log with what the gate promises.
	nobodyWroteLate := func() {
		GinkgoHelper()
		late, all := log.late(ns)
		Expect(all).To(BeNumerically(">", 10), "the log has the writes")
		Expect(late).To(BeEmpty(), "writes of one replica that the server received after another had taken the lease")
	}

	// signed waits until p has reconciled what its informer has received.
	signed := func(ctx context.Context, p *replicaProcess) {
		GinkgoHelper()
		for _, name := range []string{"a", "b"} {
			Eventually(func() (string, error) {
				cm, err := api.CoreV1().ConfigMaps(ns).Get(ctx, name, metav1.GetOptions{})
				return cm.Annotations[seenBy], err
			}).Should(Equal(p.name), name)
		}
	}

	It("hand over by a SIGTERM, at once and without a write of the wrong one", func(ctx context.Context) {
		// The interval between an elector's looks is too long for any wait here: only the
		// watch of the Lease wakes the next leader.
		const lasts, looks = time.Hour, replicaRetry + "=10m"
		var took []time.Duration
		leader := begin(lasts, looks)
		leader.says("leads")
		for range 3 {
			signed(ctx, leader)
			standby := begin(lasts, looks)
			standby.says("Waiting to become the leader")
			log.awaits(ns, standby.name, "watch", "leases")
			log.awaits(ns, leader.name, "patch", "configmaps")
			Eventually(standby.asks).WithArguments("/readyz?verbose").Should(And(HavePrefix("200"), ContainSubstring("[+]informer/ConfigMap ok")))
			Eventually(standby.waiting).WithArguments("signer").Should(Equal(2), "the keys of what it has listed")
			Expect(standby.said("leads")).To(BeFalse())
			leader.signal(syscall.SIGTERM)
			leader.says("stopped")
			Expect(leader.ends()).To(Equal(0))
			standby.says("leads")
			log.awaits(ns, standby.name, "patch", "configmaps")
			took = append(took, log.handOver(ns, leader.name, standby.name))
			leader = standby
		}
		signed(ctx, leader)
		nobodyWroteLate()
		slices.Sort(took)
		AddReportEntry("from the release of the lease to the first write of the next leader", fmt.Sprint("median ", took[len(took)/2], " of ", took))
	})

	It("wait for the lease's time after a kill", func() {
		leader, standby := pair(patient)
		leader.signal(syscall.SIGKILL)
		standby.says("leads")
		log.awaits(ns, standby.name, "patch", "configmaps")
		nobodyWroteLate()
		standby.signal(syscall.SIGTERM)
		Expect(standby.ends()).To(Equal(0))
	})

	It("never write both, when one is stopped past its lease and goes on, again and again", func() {
		leader, standby := pair(patient)
		for range 2 {
			leader.signal(syscall.SIGSTOP)
			standby.says("leads")
			log.awaits(ns, standby.name, "patch", "configmaps")
			leader.signal(syscall.SIGCONT)
			leader.says("leadership lost")
			Expect(leader.ends()).To(Equal(3))
			leader, standby = standby, begin(patient)
			standby.says("Waiting to become the leader")
			log.awaits(ns, standby.name, "get", "leases")
		}
		nobodyWroteLate()
	})

	It("go on after a stop that was shorter than the lease", func() {
		leader, standby := pair(15 * time.Second)
		leader.signal(syscall.SIGSTOP)
		log.quiet(ns, leader.name)
		leader.signal(syscall.SIGCONT)
		log.awaitsMore(ns, leader.name, "patch", "configmaps")
		Expect(standby.said("leads")).To(BeFalse())
		nobodyWroteLate()
	})

	It("outlive an API server that is away for a while, and give up on one that stays away", func(ctx context.Context) {
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

	It("end at once when another's name is in the Lease, and write no more when a third takes it", func(ctx context.Context) {
		leader, standby := pair(15 * time.Second)
		_, err := api.CoordinationV1().Leases(ns).Patch(ctx, "replicas", types.MergePatchType,
			[]byte(`{"spec":{"holderIdentity":"thief","leaseDurationSeconds":5}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		leader.says(`"thief" has taken the lease`)
		Expect(leader.ends()).To(Equal(3))
		// The thief never renews.
		standby.says("leads")
		log.awaits(ns, standby.name, "patch", "configmaps")
		nobodyWroteLate()
		since := log.stolen(ns)
		Expect(carriedOut(since, leader.name, "update", "leases")).To(BeZero(), "what was taken is neither taken nor given back")
		AddReportEntry("writes that were on their way when the lease was stolen", carriedOut(since, leader.name, "patch", "configmaps"))
	})

	It("keep the lease when a second SIGTERM ends one that does not stop", func(ctx context.Context) {
		leader, standby := pair(patient, replicaDeaf+"=1")
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
