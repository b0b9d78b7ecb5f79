// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/envtest"
)

// shared is the control plane of all specs that need none of their own.
var shared *envtest.Environment

var governors = schema.GroupVersionResource{Group: "envtest.flyball.dev", Version: "v1", Resource: "governors"}

func TestEnvtest(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	RunSpecs(t, "envtest")
}

var _ = BeforeSuite(func(ctx context.Context) {
	shared = start(ctx, envtest.Options{CRDs: []string{"testdata"}})
}, NodeTimeout(15*time.Minute)) // the first run builds the binaries

// start starts an environment that ends with the spec, or the suite.
func start(ctx context.Context, opts envtest.Options) *envtest.Environment {
	GinkgoHelper()
	env, err := envtest.Start(ctx, opts)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(env.Stop)
	return env
}

func clientset(cfg *rest.Config) *kubernetes.Clientset {
	GinkgoHelper()
	client, err := kubernetes.NewForConfig(cfg)
	Expect(err).NotTo(HaveOccurred())
	return client
}

func dynamicClient(cfg *rest.Config) *dynamic.DynamicClient {
	GinkgoHelper()
	client, err := dynamic.NewForConfig(cfg)
	Expect(err).NotTo(HaveOccurred())
	return client
}

func governor(name string, speed int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "envtest.flyball.dev/v1",
		"kind":       "Governor",
		"metadata":   map[string]any{"name": name, "namespace": "default"},
		"spec":       map[string]any{"speed": speed},
	}}
}
