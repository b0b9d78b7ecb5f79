// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/internal/testing/crdfixture"
)

// TestClient_OnARealControlPlane runs the specs of this package's *_spec_test.go
// files against one etcd and kube-apiserver.
func TestClient_OnARealControlPlane(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	RunSpecs(t, "client")
}

var env *envtest.Environment

var _ = BeforeSuite(func(ctx SpecContext) {
	var err error
	env, err = envtest.Start(ctx, envtest.Options{CRDObjects: []runtime.Object{websiteCRD(), plainCRD()}})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(env.Stop()).To(Succeed()) })
})

// inNamespace returns a client whose writes are recorded, and creates a namespace for
// it.
func inNamespace(ctx context.Context, name string) (*client.Client, *recorder) {
	GinkgoHelper()
	r := &recorder{}
	c, err := client.New(env.Config(), specScheme(), client.Options{Observer: r, FieldOwner: "spec"})
	Expect(err).NotTo(HaveOccurred())
	Expect(c.Create(ctx, namespace(name))).To(Succeed())
	r.take()
	return c, r
}

func specScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	addWebsites(scheme)
	return scheme
}

// websiteCRD has the subresources status and scale.
func websiteCRD() *unstructured.Unstructured {
	return crd("Website", map[string]any{
		"status": map[string]any{},
		"scale": map[string]any{
			"specReplicasPath":   ".spec.replicas",
			"statusReplicasPath": ".status.replicas",
		},
	})
}

func plainCRD() *unstructured.Unstructured { return crd("Plain", nil) }

func crd(kind string, subresources map[string]any) *unstructured.Unstructured {
	return crdfixture.New(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: kind}, map[string]any{
		"spec": crdfixture.Object(map[string]any{
			"content":  crdfixture.String,
			"host":     map[string]any{"type": "string", "default": "localhost"},
			"replicas": crdfixture.Integer,
			"members": map[string]any{"type": "array", "items": crdfixture.Object(map[string]any{
				"name": crdfixture.String, "weight": crdfixture.Integer, "zone": crdfixture.String,
			})},
		}),
		"status": crdfixture.Object(map[string]any{"replicas": crdfixture.Integer}),
	}, subresources)
}
