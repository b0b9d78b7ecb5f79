// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/envtest"
	webv1 "github.com/flyball-dev/flyball/examples/website/api/v1"
	webv1beta1 "github.com/flyball-dev/flyball/examples/website/api/v1beta1"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/informertest"
	"github.com/flyball-dev/flyball/manager"
)

func TestControlPlane(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	RunSpecs(t, "website on a real control plane")
}

var env *envtest.Environment

var _ = BeforeSuite(func(ctx context.Context) {
	crds, err := envtest.ParseCRDs(bytes.NewReader(crd))
	Expect(err).NotTo(HaveOccurred())
	env, err = envtest.Start(ctx, envtest.Options{CRDObjects: crds})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(env.Stop()).To(Succeed()) })
})

// testOptions have the scheme, and use no ports.
func testOptions() manager.Options {
	return manager.Options{
		Scheme: testScheme(), MetricsAddress: "0", HealthAddress: "0",
		Informers: informer.Options{DetectMutations: informertest.NoMutations(func(m ...any) { Fail(fmt.Sprint(m...)) })},
	}
}

// operate runs the operator as main does, until the spec ends.
func operate(cfg *rest.Config) {
	GinkgoHelper()
	opts := testOptions()
	opts.Config = cfg
	mgr, err := manager.New(opts)
	Expect(err).NotTo(HaveOccurred())
	Expect(errors.Join(setup(mgr), bareControlPlane(mgr))).To(Succeed())
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Run(ctx) }()
	DeferCleanup(func() {
		stop()
		Eventually(done).WithTimeout(20*time.Second).Should(Receive(BeNil()), "the manager ends when it is told to")
	})
}

func testScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientscheme.AddToScheme(s))
	utilruntime.Must(webv1.AddToScheme(s))
	utilruntime.Must(webv1beta1.AddToScheme(s))
	return s
}

func writeFile(name, content string) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), name)
	Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	return path
}

func kubectl(ctx context.Context, args ...string) func() string {
	return func() string {
		out, err := env.Kubectl(ctx, args...)
		if err != nil {
			return err.Error()
		}
		return strings.TrimSpace(string(out))
	}
}

func apply(ctx context.Context, name, content string, replicas int) {
	GinkgoHelper()
	path := writeFile("site.yaml", fmt.Sprintf(
		"apiVersion: example.flyball.dev/v1\nkind: Website\nmetadata: {name: %s, namespace: default}\nspec: {content: %q, replicas: %d}\n", name, content, replicas))
	out, err := env.Kubectl(ctx, "apply", "-f", path)
	Expect(err).NotTo(HaveOccurred(), string(out))
}

var _ = Describe("website", Ordered, func() {
	ready := func(ctx context.Context, name string) func() string {
		return kubectl(ctx, "get", "website", name, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status} {.status.readyReplicas} {.status.url}`)
	}

	It("serves, follows and removes a Website, as kubectl sees it", func(ctx context.Context) {
		operate(env.Config())
		apply(ctx, "one", "<p>one", 2)
		Eventually(ready(ctx, "one")).WithTimeout(20 * time.Second).Should(Equal("True 2 http://one.default.svc/"))
		Expect(kubectl(ctx, "get", "websites")()).To(MatchRegexp(`NAME +REPLICAS +READY +URL +AGE\none +2 +2 `))
		Expect(kubectl(ctx, "get", "configmap", "one", "-o", `jsonpath={.data.index\.html}`)()).To(Equal("<p>one"))
		Eventually(kubectl(ctx, "get", "events", "--field-selector", "involvedObject.name=one", "-o", "jsonpath={.items[*].reason}")).
			Should(ContainSubstring("Serving"))

		apply(ctx, "one", "<p>two", 3)
		Eventually(ready(ctx, "one")).Should(HavePrefix("True 3 "))
		Expect(kubectl(ctx, "get", "configmap", "one", "-o", `jsonpath={.data.index\.html}`)()).To(Equal("<p>two"))
		_, err := env.Kubectl(ctx, "scale", "website", "one", "--replicas=1")
		Expect(err).NotTo(HaveOccurred())
		Eventually(ready(ctx, "one")).Should(HavePrefix("True 1 "))

		_, err = env.Kubectl(ctx, "delete", "service", "one")
		Expect(err).NotTo(HaveOccurred())
		Eventually(kubectl(ctx, "get", "service", "one", "-o", "name")).Should(Equal("service/one"), "a child that is taken away comes back")

		_, err = env.Kubectl(ctx, "delete", "website", "one", "--timeout=20s")
		Expect(err).NotTo(HaveOccurred())
		Eventually(kubectl(ctx, "get", "websites,services,deployments,configmaps", "-l", "example.flyball.dev/website=one", "-o", "name")).Should(BeEmpty())
	})

	It("goes on after a kill -9 and a restart of the API server", func(ctx context.Context) {
		operate(env.Config())
		apply(ctx, "tough", "<p>", 1)
		Eventually(ready(ctx, "tough")).WithTimeout(20 * time.Second).Should(HavePrefix("True 1 "))
		Expect(env.KillAPIServer()).To(Succeed())
		Expect(env.StartAPIServer(ctx)).To(Succeed())
		apply(ctx, "tough", "<p>", 4)
		Eventually(ready(ctx, "tough")).WithTimeout(60 * time.Second).Should(HavePrefix("True 4 "))
	})

	It("refuses names that its children cannot have", func(ctx context.Context) {
		_, err := env.Kubectl(ctx, "apply", "-f", writeFile("long.yaml",
			"apiVersion: example.flyball.dev/v1\nkind: Website\nmetadata: {name: "+strings.Repeat("a", 64)+", namespace: default}\nspec: {content: x}\n"))
		Expect(err).To(MatchError(ContainSubstring("the name becomes that of a Service")))
	})

	It("waits for its CustomResourceDefinition", func(ctx context.Context) {
		bare, err := envtest.Start(ctx, envtest.Options{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(bare.Stop)
		opts := testOptions()
		opts.Config = bare.Config()
		mgr, err := manager.New(opts)
		Expect(err).NotTo(HaveOccurred())
		Expect(setup(mgr)).To(Succeed())
		runs, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- mgr.Run(runs) }()
		Eventually(func() error {
			short, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			_, err := mgr.Informers().WaitForSync(short)
			return err
		}).Should(MatchError(ContainSubstring("is its CustomResourceDefinition installed?")))
		crds, err := envtest.ParseCRDs(bytes.NewReader(crd))
		Expect(err).NotTo(HaveOccurred())
		Expect(bare.InstallCRDObjects(ctx, crds...)).To(Succeed())
		Expect(mgr.Informers().WaitForSync(ctx)).Error().NotTo(HaveOccurred())
		stop()
		Eventually(done).WithTimeout(20 * time.Second).Should(Receive(BeNil()))
	})
})
