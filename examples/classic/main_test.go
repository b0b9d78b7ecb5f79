// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/flyball-dev/flyball/envtest"
)

func TestControlPlane(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	RunSpecs(t, "classic on a real control plane")
}

var _ = Describe("classic", func() {
	It("reports Pods that wait for a node, logged in by a token", func(ctx context.Context) {
		env, err := envtest.Start(ctx, envtest.Options{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(env.Stop()).To(Succeed()) })
		kubectl := func(args ...string) {
			GinkgoHelper()
			_, err := env.Kubectl(ctx, args...)
			Expect(err).NotTo(HaveOccurred())
		}
		kubectl("create", "clusterrole", "pods", "--verb=list,watch", "--resource=pods")
		kubectl("create", "clusterrolebinding", "pods", "--clusterrole=pods", "--serviceaccount=default:reporter")
		cfg, err := env.TokenUser(ctx, "default", "reporter")
		Expect(err).NotTo(HaveOccurred())

		lines := make(chan string, 100)
		c, err := newController(cfg, func(line string) { lines <- line })
		Expect(err).NotTo(HaveOccurred())
		runs, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- c.run(runs, 2) }()

		kubectl("run", "lonely", "--image=none", "--restart=Never")
		Eventually(lines).WithTimeout(20 * time.Second).Should(Receive(HavePrefix("default/lonely: waits for a node since")))
		kubectl("delete", "pod", "lonely", "--force")
		Eventually(lines).Should(Receive(Equal("default/lonely: has a node, or is gone")))

		stop()
		Eventually(done).WithTimeout(20 * time.Second).Should(Receive(BeNil()))
	})
})
