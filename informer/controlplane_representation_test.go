// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/testing/crdfixture"
	"github.com/flyball-dev/flyball/kube"
)

// wiretap records the requests to a server, and the forms of its answers.
type wiretap struct {
	mu struct {
		sync.Mutex
		asked []string
		media []string
	}
}

func (w *wiretap) on(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return tapped{w, next}
	})
	return cfg
}

// tapped is a transport with a wiretap.
type tapped struct {
	wire *wiretap
	next http.RoundTripper
}

func (t tapped) WrappedRoundTripper() http.RoundTripper { return t.next }

func (t tapped) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := t.next.RoundTrip(r)
	t.wire.mu.Lock()
	defer t.wire.mu.Unlock()
	t.wire.mu.asked = append(t.wire.mu.asked, r.URL.Path+"?"+r.URL.RawQuery)
	if err == nil {
		t.wire.mu.media = append(t.wire.mu.media, fmt.Sprintf("%s %d %s", r.URL.Path, answer.StatusCode, answer.Header.Get("Content-Type")))
	}
	return answer, err
}

// of returns the requests for a resource.
func (w *wiretap) of(resource string) (out []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, path := range w.mu.asked {
		if strings.Contains(path, "/"+resource+"?") {
			out = append(out, path)
		}
	}
	return out
}

func (w *wiretap) answers(resource string) (out []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, answer := range w.mu.media {
		if strings.Contains(answer, "/"+resource+" ") {
			out = append(out, answer)
		}
	}
	return out
}

func pod() corev1.PodTemplateSpec {
	labels := map[string]string{"app": "a"}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
}

func deployment(namespace, name string) *appsv1.Deployment {
	template := pod()
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: template.Labels},
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template},
	}
}

var _ = Describe("representations", func() {
	It("watches a kind that has no Go type, in all representations", func(ctx context.Context) {
		kind := gearKind.GroupVersion().WithKind("Lever")
		Expect(env.InstallCRDObjects(ctx, crdfixture.New(kind, map[string]any{"length": crdfixture.Integer}, nil))).To(Succeed())
		wire := &wiretap{}
		f := factoryFor(wire.on(env.Config()), informer.Options{})
		levers := informer.ForKind(f, kind)
		byResource := informer.ForResource(f, kind.GroupVersion().WithResource("levers"))
		alone := informer.ForMetadata(f, kind, informer.Scope{LabelSelector: "l=long"})
		_, err := f.WaitForSync(ctx)
		Expect(err).NotTo(HaveOccurred())
		_, err = env.Kubectl(ctx, "create", "-f", writeFile("lever.yaml", "apiVersion: test.flyball.dev/v1\nkind: Lever\nmetadata: {name: l, namespace: default, labels: {l: long}}\nlength: 9007199254740993\n"))
		Expect(err).NotTo(HaveOccurred())
		key := kube.Key{Namespace: "default", Name: "l"}
		for _, i := range []*informer.SharedInformer[*unstructured.Unstructured]{levers, byResource} {
			var got *unstructured.Unstructured
			Eventually(func() (err error) { got, err = i.Lister().Get(key); return err }).Should(Succeed())
			Expect(got.Object).To(HaveKeyWithValue("length", int64(9007199254740993)), "an integer stays what was written")
			Expect(got.GroupVersionKind()).To(Equal(kind))
			Expect(got.GetManagedFields()).To(BeEmpty())
		}
		var meta *metav1.PartialObjectMetadata
		Eventually(func() (err error) { meta, err = alone.Lister().Get(key); return err }).Should(Succeed())
		Expect(meta.GroupVersionKind()).To(Equal(kind))
		Expect(meta.Labels).To(HaveKeyWithValue("l", "long"))
		Expect(alone.Snapshot().Scopes[0].SharedWith).To(BeEmpty(), "nobody else watches this selection")
		Expect(wire.answers("levers")).To(ContainElement(HaveSuffix("200 application/vnd.kubernetes.protobuf;stream=watch")), "metadata comes as protobuf, also of a custom resource")

		_, err = env.Kubectl(ctx, "delete", "lever", "-n", "default", "l")
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() int { return levers.Snapshot().Objects + alone.Snapshot().Objects }).Should(Equal(0))
	})

	It("watches once for typed objects and their metadata", func(ctx context.Context) {
		ns := newNamespace(ctx)
		wire := &wiretap{}
		f := factoryFor(wire.on(env.Config()), informer.Options{})
		typed := informer.For[*appsv1.Deployment](f)
		alone := informer.ForMetadata(f, appsv1.SchemeGroupVersion.WithKind("Deployment"))
		_, err := f.WaitForSync(ctx)
		Expect(err).NotTo(HaveOccurred())
		late := informer.ForMetadata(f, appsv1.SchemeGroupVersion.WithKind("Deployment"), informer.Scope{Namespaces: []string{ns}})
		created, err := api.AppsV1().Deployments(ns).Create(ctx, deployment(ns, "d"), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		key := kube.KeyOf(created)
		for _, i := range []*informer.SharedInformer[*metav1.PartialObjectMetadata]{alone, late} {
			var got *metav1.PartialObjectMetadata
			Eventually(func() (err error) { got, err = i.Lister().Get(key); return err }).Should(Succeed())
			Expect(got.UID).To(Equal(created.UID))
			Expect(got.Kind).To(Equal("Deployment"))
			Expect(i.Snapshot().Scopes).To(ContainElement(HaveField("SharedWith", "*v1.Deployment in all namespaces")))
		}
		Eventually(func() error { _, err := typed.Lister().Get(key); return err }).Should(Succeed())
		var lists int
		for _, request := range wire.of("deployments") {
			if !strings.Contains(request, "watch=true") || strings.Contains(request, "sendInitialEvents=true") {
				lists++
			}
		}
		Expect(lists).To(Equal(1), "one list feeds all: %v", wire.of("deployments"))
	})

	It("never holds a Secret's data by metadata", func(ctx context.Context) {
		ns := newNamespace(ctx)
		wire := &wiretap{}
		f := factoryFor(wire.on(env.Config()), informer.Options{Namespaces: []string{ns}})
		secrets := informer.ForMetadata(f, corev1.SchemeGroupVersion.WithKind("Secret"))
		_, err := api.CoreV1().Secrets(ns).Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"password": "hunter2"}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = f.WaitForSync(ctx)
		Expect(err).NotTo(HaveOccurred())
		var got *metav1.PartialObjectMetadata
		Eventually(func() (err error) {
			got, err = secrets.Lister().Get(kube.Key{Namespace: ns, Name: "s"})
			return err
		}).Should(Succeed())
		Expect(got.Kind).To(Equal("Secret"))
		Expect(fmt.Sprintf("%+v", got)).NotTo(Or(ContainSubstring("hunter2"), ContainSubstring("password")))
	})
})
