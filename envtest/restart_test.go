// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package envtest_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/flyball-dev/flyball/envtest"
)

var _ = Describe("a killed API server", func() {
	It("comes back on its port with its data and its CRDs (E2)", func(ctx context.Context) {
		env := start(ctx, envtest.Options{CRDs: []string{"testdata"}})
		host := env.Config().Host
		robot, err := env.TokenUser(ctx, "default", "robot")
		Expect(err).NotTo(HaveOccurred())
		client := dynamicClient(env.Config()).Resource(governors).Namespace("default")
		made, err := client.Create(ctx, governor("kept", 9007199254740991), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		stream, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: made.GetResourceVersion()})
		Expect(err).NotTo(HaveOccurred())

		Expect(env.KillAPIServer()).To(Succeed())
		Expect(env.Err()).To(Succeed(), "who kills it knows")
		Expect(refuses(env)).To(BeTrue())
		Eventually(stream.ResultChan()).Should(BeClosed(), "a watch ends when its server dies")
		Expect(env.KillAPIServer()).To(MatchError(ContainSubstring("it does not run")))

		Expect(env.StartAPIServer(ctx)).To(Succeed())
		Expect(env.Config().Host).To(Equal(host))
		kept, err := client.Get(ctx, "kept", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred(), "the CRD serves when StartAPIServer returns")
		Expect(kept.GetUID()).To(Equal(made.GetUID()))
		Expect(whoami(ctx, robot).Username).To(Equal("system:serviceaccount:default:robot"), "tokens stay valid")
		Expect(env.StartAPIServer(ctx)).To(MatchError(ContainSubstring("it runs")))
	}, NodeTimeout(5*time.Minute))

	It("can be killed and started again and again while clients call", func(ctx context.Context) {
		env := start(ctx, envtest.Options{})
		client := clientset(env.Config())
		ctx, cancel := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for ctx.Err() == nil {
				_, _ = client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
			}
		}()
		DeferCleanup(func() { cancel(); <-done })
		for range 3 {
			Expect(env.KillAPIServer()).To(Succeed())
			Expect(env.StartAPIServer(ctx)).To(Succeed())
		}
	}, NodeTimeout(5*time.Minute))
})

var _ = Describe("compaction of etcd", func() {
	It("makes old versions 410 Gone for a list and a watch, over a restart", func(ctx context.Context) {
		env := start(ctx, envtest.Options{CRDs: []string{"testdata"}})
		client := dynamicClient(env.Config()).Resource(governors).Namespace("default")
		old, current := history(ctx, client)
		Expect(env.KillAPIServer()).To(Succeed())
		Expect(env.StartAPIServer(ctx)).To(Succeed())
		Expect(listAt(ctx, client, old)).To(Succeed(), "without compaction a restart alone keeps the old version")

		Expect(env.KillAPIServer()).To(Succeed())
		Expect(env.Compact(ctx)).To(Succeed(), "etcd can be compacted while the API server is down")
		Expect(env.StartAPIServer(ctx)).To(Succeed())
		Expect(gone(listAt(ctx, client, old))).To(BeTrue())
		Expect(gone(watchFrom(ctx, client, old))).To(BeTrue())
		list, err := client.List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(list.Items).To(HaveLen(1))
		Expect(list.Items[0].GetResourceVersion()).To(Equal(current), "what is current stays")
	}, NodeTimeout(5*time.Minute))

	It("makes old versions 410 Gone at once where the API server keeps no history", func(ctx context.Context) {
		env := start(ctx, envtest.Options{
			CRDs:          []string{"testdata"},
			APIServerArgs: map[string][]string{"watch-cache": {"false"}},
		})
		client := dynamicClient(env.Config()).Resource(governors).Namespace("default")
		old, _ := history(ctx, client)
		Expect(watchFrom(ctx, client, old)).To(Succeed(), "before, the history is there")
		Expect(env.Compact(ctx)).To(Succeed())
		Expect(gone(watchFrom(ctx, client, old))).To(BeTrue())
		Eventually(env.Compact).WithContext(ctx).Should(MatchError(ContainSubstring("has been compacted")), "there is nothing to forget after what the server itself writes")
	}, NodeTimeout(5*time.Minute))
})

// history creates an object, updates it, and returns its first and last version.
func history(ctx context.Context, client dynamic.ResourceInterface) (first, last string) {
	GinkgoHelper()
	object, err := client.Create(ctx, governor("aging", 0), metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	first = object.GetResourceVersion()
	for speed := range int64(5) {
		object.Object["spec"] = map[string]any{"speed": speed + 1}
		object, err = client.Update(ctx, object, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	return first, object.GetResourceVersion()
}

func listAt(ctx context.Context, client dynamic.ResourceInterface, version string) error {
	_, err := client.List(ctx, metav1.ListOptions{ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	return err
}

// watchFrom returns the error of a watch from version before its first event.
func watchFrom(ctx context.Context, client dynamic.ResourceInterface, version string) error {
	GinkgoHelper()
	stream, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		return err
	}
	defer stream.Stop()
	var event watch.Event
	Eventually(stream.ResultChan()).Should(Receive(&event))
	if event.Type == watch.Error {
		return apierrors.FromObject(event.Object)
	}
	return nil
}

// gone reports whether err is 410, which has two reasons.
func gone(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }
