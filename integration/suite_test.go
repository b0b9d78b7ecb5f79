// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package integration_test

import (
	"context"
	"net/http"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/internal/testing/crdfixture"
)

func TestIntegration(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	RunSpecs(t, "the whole path on a real control plane")
}

// Environment variables of a longer run: the server selects objects by shards, and how many objects there are.
const (
	shardsOnServer = "FLYBALL_TEST_SHARDS_ON_SERVER"
	sharedObjects  = "FLYBALL_TEST_SHARED_OBJECTS"
)

var (
	env *envtest.Environment
	// api and outside are writers outside the processes under test: other processes.
	api     kubernetes.Interface
	outside *client.Client
	// connection of api and outside.
	connection *http.Client
	scheme     = runtime.NewScheme()
)

var _ = BeforeSuite(func(ctx context.Context) {
	Expect(clientscheme.AddToScheme(scheme)).To(Succeed())
	scheme.AddKnownTypeWithName(group.WithKind("Widget"), &widget{})
	scheme.AddKnownTypeWithName(group.WithKind("Latecomer"), &latecomer{})
	scheme.AddKnownTypeWithName(group.WithKind("Passenger"), &passenger{})
	scheme.AddKnownTypeWithName(group.WithKind("Gauge"), &gauge{})
	var err error
	opts := envtest.Options{CRDObjects: []runtime.Object{crd("Widget")}}
	if os.Getenv(shardsOnServer) != "" {
		opts.APIServerArgs = map[string][]string{"feature-gates": {"ShardedListAndWatch=true"}}
	}
	env, err = envtest.Start(ctx, opts)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(env.Stop()).To(Succeed()) })
	connection, err = rest.HTTPClientFor(env.Config())
	Expect(err).NotTo(HaveOccurred())
	api = kubernetes.NewForConfigOrDie(env.Config())
	outside, err = client.New(env.Config(), scheme, client.Options{})
	Expect(err).NotTo(HaveOccurred())
})

var group = schema.GroupVersion{Group: "integration.flyball.dev", Version: "v1"}

// widget is a custom resource, as a plain struct.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              struct {
		Value string `json:"value,omitempty"`
	} `json:"spec,omitempty"`
}

func (w *widget) DeepCopyObject() runtime.Object {
	out := *w
	w.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// latecomer is a kind that the server does not have until a spec installs it.
type latecomer struct{ widget }

func (l *latecomer) DeepCopyObject() runtime.Object {
	return &latecomer{*l.widget.DeepCopyObject().(*widget)}
}

// passenger is a kind that is installed and removed.
type passenger struct{ widget }

func (p *passenger) DeepCopyObject() runtime.Object {
	return &passenger{*p.widget.DeepCopyObject().(*widget)}
}

// crd returns the definition of one of the kinds above.
func crd(kind string) runtime.Object {
	return crdfixture.New(group.WithKind(kind), map[string]any{
		"spec": crdfixture.Object(map[string]any{"value": crdfixture.String}),
	}, nil)
}

// newNamespace creates a namespace for one spec alone.
func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	ns, err := api.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "spec-"}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return ns.Name
}

func configMap(namespace, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

func newWidget(namespace, name, value string) *widget {
	w := &widget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	w.Spec.Value = value
	return w
}
