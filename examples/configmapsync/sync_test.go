// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/informertest"
	"github.com/flyball-dev/flyball/manager"
)

func TestControlPlane(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	RunSpecs(t, "configmapsync on a real control plane")
}

var _ = Describe("configmapsync", func() {
	It("keeps copies equal, logged in by a client certificate", func(ctx context.Context) {
		env, err := envtest.Start(ctx, envtest.Options{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(env.Stop()).To(Succeed()) })
		kubectl := func(args ...string) string {
			GinkgoHelper()
			out, err := env.Kubectl(ctx, args...)
			Expect(err).NotTo(HaveOccurred())
			return strings.TrimSpace(string(out))
		}
		kubectl("create", "clusterrole", "syncer", "--verb=get,list,watch,create,update,delete", "--resource=configmaps,namespaces")
		kubectl("create", "clusterrolebinding", "syncer", "--clusterrole=syncer", "--user=syncer")
		cfg, err := env.User("syncer")
		Expect(err).NotTo(HaveOccurred())
		mgr, err := manager.New(manager.Options{
			Config: cfg, MetricsAddress: "0", HealthAddress: "0",
			Informers: informer.Options{DetectMutations: informertest.NoMutations(func(m ...any) { Fail(fmt.Sprint(m...)) })},
		})
		Expect(err).NotTo(HaveOccurred())
		Expect(setup(mgr)).To(Succeed())
		runs, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- mgr.Run(runs) }()

		kubectl("create", "namespace", "team-a")
		kubectl("create", "namespace", "team-b")
		kubectl("create", "configmap", "plain", "--from-literal=k=v")
		kubectl("create", "configmap", "shared", "--from-literal=k=1")
		kubectl("annotate", "configmap", "shared", namespacesNote+"=team-a, team-b,team-c")
		kubectl("label", "configmap", "shared", syncLabel+"=true")

		copies := func() string {
			return kubectl("get", "configmaps", "-A", "-l", copyLabel+"=true", "-o",
				"jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name}={.data.k} {end}")
		}
		Eventually(copies).WithTimeout(20 * time.Second).Should(Equal("team-a/shared=1 team-b/shared=1"))
		kubectl("create", "namespace", "team-c")
		Eventually(copies).Should(Equal("team-a/shared=1 team-b/shared=1 team-c/shared=1"), "a namespace that comes later gets its copy")
		kubectl("patch", "configmap", "shared", "-p", `{"data":{"k":"2"}}`)
		Eventually(copies).Should(Equal("team-a/shared=2 team-b/shared=2 team-c/shared=2"))
		kubectl("delete", "configmap", "shared", "-n", "team-a")
		Eventually(copies).Should(ContainSubstring("team-a/shared=2"), "a copy that is taken away comes back")
		kubectl("annotate", "--overwrite", "configmap", "shared", namespacesNote+"=team-b")
		Eventually(copies).Should(Equal("team-b/shared=2"))

		kubectl("create", "configmap", "shared", "-n", "team-a", "--from-literal=theirs=1")
		kubectl("create", "configmap", "shared", "-n", "team-c", "--from-literal=k=c")
		kubectl("annotate", "configmap", "shared", "-n", "team-c", namespacesNote+"=team-b")
		kubectl("label", "configmap", "shared", "-n", "team-c", syncLabel+"=true")
		kubectl("annotate", "--overwrite", "configmap", "shared", namespacesNote+"=team-a,team-b")
		kubectl("patch", "configmap", "shared", "-p", `{"data":{"k":"3"}}`)
		Eventually(copies).Should(ContainSubstring("team-b/shared=3"))
		Expect(copies()).To(Equal("team-b/shared=3"), "of two originals the first has the copy")
		Expect(kubectl("get", "configmap", "shared", "-n", "team-a", "-o", "jsonpath={.data} {.metadata.labels}")).
			To(Equal(`{"theirs":"1"}`), "what is somebody else's stays as it is")
		kubectl("label", "configmap", "shared", "-n", "team-c", syncLabel+"-")

		kubectl("label", "configmap", "shared", syncLabel+"-")
		Eventually(copies).Should(BeEmpty(), "an original that is no longer shared has no copies")

		stop()
		Eventually(done).WithTimeout(20 * time.Second).Should(Receive(BeNil()))
	})
})
