// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/manager"
)

func TestControlPlane(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	RunSpecs(t, "dynamic on a real control plane")
}

var _ = Describe("dynamic", func() {
	It("counts kinds that it learns while it runs", func(ctx context.Context) {
		env, err := envtest.Start(ctx, envtest.Options{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(env.Stop()).To(Succeed()) })
		kubectl := func(args ...string) string {
			GinkgoHelper()
			out, err := env.Kubectl(ctx, args...)
			Expect(err).NotTo(HaveOccurred())
			return strings.TrimSpace(string(out))
		}
		kubectl("create", "-f", "testdata/rights.yaml")
		kubectl("create", "clusterrolebinding", "inventory", "--clusterrole=inventory", "--user=inventory")
		cfg, err := env.User("inventory")
		Expect(err).NotTo(HaveOccurred())
		mgr, err := manager.New(manager.Options{Config: cfg, MetricsAddress: "0", HealthAddress: "0"})
		Expect(err).NotTo(HaveOccurred())
		Expect(setup(mgr, []string{"nonsense"})).To(MatchError(ContainSubstring(`find resource "nonsense"`)))
		mgr, err = manager.New(manager.Options{Config: cfg, MetricsAddress: "0", HealthAddress: "0"})
		Expect(err).NotTo(HaveOccurred())
		Expect(setup(mgr, []string{"deployments.apps"})).To(Succeed())
		runs, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- mgr.Run(runs) }()

		eventually := func(want, meaning string) {
			GinkgoHelper()
			Eventually(func() string {
				return kubectl("get", "configmaps", "--field-selector=metadata.name="+summaryName, "-o", "jsonpath={.items[*].data}")
			}).WithTimeout(30*time.Second).Should(Equal(want), meaning)
		}
		kubectl("create", "deployment", "web", "--image=none")
		eventually(`{"deployments.apps":"1"}`, "a kind that discovery has found")
		kubectl("create", "deployment", "api", "--image=none")
		eventually(`{"deployments.apps":"2"}`, "an object more")
		kubectl("delete", "configmap", summaryName)
		eventually(`{"deployments.apps":"2"}`, "a summary that is taken away comes back")

		kubectl("create", "-f", "testdata/widgets.yaml")
		kubectl("wait", "--for=condition=Established", "crd", "widgets.example.flyball.dev")
		kubectl("create", "-f", "testdata/widget.yaml")
		eventually(`{"deployments.apps":"2","widgets.example.flyball.dev":"1"}`, "a kind that came while it runs")
		kubectl("label", "crd", "widgets.example.flyball.dev", wantedLabel+"-")
		eventually(`{"deployments.apps":"2"}`, "a kind that lost its label")
		kubectl("label", "crd", "widgets.example.flyball.dev", wantedLabel+"=true")
		eventually(`{"deployments.apps":"2","widgets.example.flyball.dev":"1"}`, "and has it again")
		kubectl("delete", "crd", "widgets.example.flyball.dev")
		eventually(`{"deployments.apps":"2"}`, "a kind that is gone")
		kubectl("delete", "deployments", "web", "api")
		eventually("", "nothing to count, nothing to say")

		stop()
		Eventually(done).WithTimeout(20 * time.Second).Should(Receive(BeNil()))
	})
})
