// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package integration_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
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
	}, informer.HandlerOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = maps.AddHandler(func(e kube.Event[*corev1.ConfigMap]) {
		signed := func(cm *corev1.ConfigMap) string { return cm.Annotations[seenBy] + " " + cm.Annotations[seenValue] }
		if e.Old != nil && e.New != nil && signed(e.Old) != signed(e.New) {
			h.Write(string(e.New.UID), e.New.Annotations[seenBy], e.New.Name, kube.ParseVersion(e.New.ResourceVersion))
		}
	}, informer.HandlerOptions{})
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

var _ = Describe("processes of an operator that share its objects", func() {
	It("each write what they hold, through a kill, a stop and a SIGTERM, and lose no change (M31, M33)", func(ctx context.Context) {
		objects := 60
		if n, err := strconv.Atoi(os.Getenv(sharedObjects)); err == nil {
			objects = n
		}
		ns := newNamespace(ctx)
		names := make([]string, objects)
		for i := range names {
			names[i] = fmt.Sprint("object-", i)
			Expect(outside.Create(ctx, configMap(ns, names[i], map[string]string{"value": "0"}))).To(Succeed())
		}
		h := &sharehistory.History{ID: "replicas", Count: 16}
		seen := observeShare(ctx, ns, h)
		n := 0
		begin := func() *replicaProcess {
			n++
			return startReplica(env, fmt.Sprint("sharer-", n), replicaNamespace+"="+ns, replicaShards+"=16", replicaLease+"="+shareLasts.String())
		}
		// shared waits until exactly these have seen the last value of all objects.
		shared := func(by ...*replicaProcess) {
			GinkgoHelper()
			Eventually(func(g Gomega) {
				now, _ := seen()
				g.Expect(now).To(HaveLen(len(by)), "%v", now)
				for _, p := range by {
					g.Expect(now).To(HaveKey(p.name))
				}
			}).WithTimeout(time.Minute).WithPolling(50 * time.Millisecond).Should(Succeed())
		}

		a, b, c := begin(), begin(), begin()
		shared(a, b, c)
		editing, done := context.WithCancel(ctx)
		var editor sync.WaitGroup
		pace := time.NewTicker(5 * time.Millisecond)
		defer pace.Stop()
		editor.Go(func() {
			for i := 1; editing.Err() == nil; i++ {
				patch := fmt.Sprintf(`{"data":{"value":"%d"}}`, i)
				_, _ = api.CoreV1().ConfigMaps(ns).Patch(editing, names[rand.IntN(objects)], types.MergePatchType, []byte(patch), metav1.PatchOptions{})
				<-pace.C
			}
		})
		defer editor.Wait()
		defer done()

		a.signal(syscall.SIGKILL)
		shared(b, c)
		b.signal(syscall.SIGSTOP)
		shared(c)
		b.signal(syscall.SIGCONT)
		shared(b, c)
		d := begin()
		shared(b, c, d)
		c.signal(syscall.SIGTERM)
		Expect(c.ends()).To(Equal(0))
		shared(b, d)

		done()
		editor.Wait()
		Eventually(func() bool {
			_, all := seen()
			return all
		}).WithTimeout(30*time.Second).Should(BeTrue(), "each last value is seen")
		wrong, all := h.Check()
		Expect(all).To(BeNumerically(">", objects))
		Expect(wrong).To(BeEmpty(), "writes of a replica that did not hold the shard, of %d", all)
		AddReportEntry("writes of replicas", all)
	})
})
