// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package integration_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/testing/sharehistory"
	"github.com/flyball-dev/flyball/kube"
)

// shareLasts is the duration of the Leases of replicas that share objects.
const shareLasts = 4 * time.Second

// observeShare records who holds each shard, and which replica has written each ConfigMap. It returns
// which replica has last seen an object, and whether that has seen its last value.
func observeShare(ctx context.Context, ns string, h *sharehistory.History) (seen func() (by map[string]int, all bool)) {
	GinkgoHelper()
	factory, err := informer.NewSharedInformerFactory(env.Config(), scheme, informer.Options{Namespaces: []string{ns}})
	Expect(err).NotTo(HaveOccurred())
	leases := informer.For[*coordinationv1.Lease](factory)
	maps := informer.For[*corev1.ConfigMap](factory)
	_, err = leases.AddHandler(func(e kube.Event[*coordinationv1.Lease]) {
		if e.New != nil {
			h.Lease(e.New.Name, ptr.Deref(e.New.Spec.HolderIdentity, ""), kube.ParseVersion(e.New.ResourceVersion))
		}
	}, informer.HandlerOptions{EveryEvent: true})
	Expect(err).NotTo(HaveOccurred())
	_, err = maps.AddHandler(func(e kube.Event[*corev1.ConfigMap]) {
		signed := func(cm *corev1.ConfigMap) string { return cm.Annotations[seenBy] + " " + cm.Annotations[seenValue] }
		if e.Old != nil && e.New != nil && signed(e.Old) != signed(e.New) {
			h.Write(string(e.New.UID), e.New.Annotations[seenBy], e.New.Name, kube.ParseVersion(e.New.ResourceVersion))
		}
	}, informer.HandlerOptions{EveryEvent: true})
	Expect(err).NotTo(HaveOccurred())
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	work.Go(func() { _ = factory.Run(running) }) // it ends with its context
	DeferCleanup(func() {
		stop()
		work.Wait()
	})
	_, err = factory.WaitForSync(ctx)
	Expect(err).NotTo(HaveOccurred())
	return func() (map[string]int, bool) {
		by, all := map[string]int{}, true
		for cm := range maps.Lister().All() {
			if cm.Data["value"] != "" {
				by[cm.Annotations[seenBy]]++
				all = all && cm.Annotations[seenValue] == cm.Data["value"]
			}
		}
		return by, all
	}
}

// sharers are processes that share ConfigMaps, and what checks them.
type sharers struct {
	history sharehistory.History
	ns      string
	names   []string
	lasts   time.Duration // of their Leases
	seen    func() (by map[string]int, all bool)
	begun   int
}

func newSharers(ctx context.Context, objects, shards int, lasts time.Duration) *sharers {
	GinkgoHelper()
	s := &sharers{ns: newNamespace(ctx), names: make([]string, objects), lasts: lasts}
	s.history.ID, s.history.Count = "replicas", shards
	for i := range s.names {
		s.names[i] = fmt.Sprint("object-", i)
		Expect(outside.Create(ctx, configMap(s.ns, s.names[i], map[string]string{"value": "0"}))).To(Succeed())
	}
	s.seen = observeShare(ctx, s.ns, &s.history)
	return s
}

func (s *sharers) begin() *replicaProcess {
	GinkgoHelper()
	s.begun++
	return startReplica(env, fmt.Sprint("sharer-", s.begun), replicaNamespace+"="+s.ns,
		replicaShards+"="+strconv.Itoa(s.history.Count), replicaLease+"="+s.lasts.String())
}

// shared waits until exactly these have seen the last value of all objects, or one before it.
func (s *sharers) shared(by ...*replicaProcess) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		now, _ := s.seen()
		g.Expect(now).To(HaveLen(len(by)), "%v", now)
		for _, p := range by {
			g.Expect(now).To(HaveKey(p.name))
		}
	}).WithTimeout(time.Minute + time.Duration(len(s.names))*50*time.Millisecond).
		WithPolling(50 * time.Millisecond).Should(Succeed())
}

// ends ends one by a SIGTERM.
func (s *sharers) ends(p *replicaProcess) {
	GinkgoHelper()
	p.signal(syscall.SIGTERM)
	Expect(p.ends()).To(Equal(0), p.name)
}

// edit changes objects all the time, until done.
func (s *sharers) edit(ctx context.Context) (done func()) {
	ctx, end := context.WithCancel(ctx)
	var editor sync.WaitGroup
	pace := time.NewTicker(5 * time.Millisecond)
	editor.Go(func() {
		for i := 1; ctx.Err() == nil; i++ {
			patch := fmt.Sprintf(`{"data":{"value":"%d"}}`, i)
			_, _ = api.CoreV1().ConfigMaps(s.ns).Patch(ctx, s.names[rand.IntN(len(s.names))],
				types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			<-pace.C
		}
	})
	return func() {
		end()
		editor.Wait()
		pace.Stop()
	}
}

// check compares what was written with the Leases, and waits for the last values.
func (s *sharers) check() (writes int) {
	GinkgoHelper()
	Eventually(func() bool {
		_, all := s.seen()
		return all
	}).WithTimeout(time.Minute).Should(BeTrue(), "each last value is seen")
	wrong, all := s.history.Check()
	Expect(all).To(BeNumerically(">", len(s.names)))
	Expect(wrong).To(BeEmpty(), "writes of a replica that did not hold the shard, of %d", all)
	return all
}

// listed matches the server's counters of lists of ConfigMaps, as answers and as streams.
var listed = regexp.MustCompile(`(?m)^(?:apiserver_request_total\{[^}]*resource="configmaps"[^}]*verb="LIST"[^}]*\}|` +
	`apiserver_watch_list_duration_seconds_count\{[^}]*resource="configmaps"[^}]*\}) (\d+)`)

// lists returns how many lists of ConfigMaps the server has answered.
func lists(ctx context.Context) (n int) {
	GinkgoHelper()
	text, err := api.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	Expect(err).NotTo(HaveOccurred())
	for _, m := range listed.FindAllSubmatch(text, -1) {
		one, err := strconv.Atoi(string(m[1]))
		Expect(err).NotTo(HaveOccurred())
		n += one
	}
	return n
}

var _ = Describe("processes of an operator that share its objects", func() {
	It("each write what they hold, through a kill, a stop and a SIGTERM, and lose no change (M31, M33)", func(ctx context.Context) {
		s := newSharers(ctx, 60, 16, shareLasts)
		a, b, c := s.begin(), s.begin(), s.begin()
		s.shared(a, b, c)
		done := s.edit(ctx)
		defer done()
		a.signal(syscall.SIGKILL)
		s.shared(b, c)
		b.signal(syscall.SIGSTOP)
		s.shared(c)
		b.signal(syscall.SIGCONT)
		s.shared(b, c)
		d := s.begin()
		s.shared(b, c, d)
		s.ends(c)
		s.shared(b, d)
		done()
		AddReportEntry("writes of replicas", s.check())
	})

	It("of many objects too, through rolling restarts and other numbers of processes", func(ctx context.Context) {
		objects, err := strconv.Atoi(os.Getenv(sharedObjects))
		if err != nil {
			Skip("a longer run: set " + sharedObjects + " to a number of objects, such as 5000")
		}
		s := newSharers(ctx, objects, 32, 2*patient)
		all := []*replicaProcess{s.begin(), s.begin(), s.begin(), s.begin()}
		s.shared(all...)
		done := s.edit(ctx)
		defer done()
		listsBefore, movesBefore, begun := lists(ctx), s.history.Moves(), time.Now()
		step := func(what string) {
			GinkgoHelper()
			s.shared(all...)
			GinkgoWriter.Printf("%4.0fs %s: %d moves of shards, %d lists\n", time.Since(begun).Seconds(), what,
				s.history.Moves()-movesBefore, lists(ctx)-listsBefore)
		}

		all[0].signal(syscall.SIGKILL)
		all = all[1:]
		step("kill -9")
		all = append(all, s.begin())
		step("a new one")
		stopped := all[0]
		stopped.signal(syscall.SIGSTOP)
		all = all[1:]
		step("SIGSTOP")
		stopped.signal(syscall.SIGCONT)
		all = append(all, stopped)
		step("SIGCONT")
		for range all {
			s.ends(all[0])
			all = append(all[1:], s.begin())
			step("a restart")
		}
		for len(all) > 1 {
			s.ends(all[0])
			all = all[1:]
		}
		step("one alone")
		all = append(all, s.begin(), s.begin(), s.begin())
		step("four")
		for len(all) > 1 {
			s.ends(all[0])
			all = all[1:]
		}
		step("one alone")

		done()
		moved, asked := s.history.Moves()-movesBefore, lists(ctx)-listsBefore
		writes := s.check()
		text := fmt.Sprintf("%d objects: %d writes, %d moves of shards, %d lists, %.2f for each", objects, writes, moved, asked, float64(asked)/float64(moved))
		AddReportEntry("what replicas did", text)
		Expect(asked).To(BeNumerically("<=", 2*moved), text)
	})
})
