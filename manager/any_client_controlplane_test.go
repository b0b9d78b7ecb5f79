// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	appsac "k8s.io/client-go/applyconfigurations/apps/v1"
	coreac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
)

// heldWatches is a transport whose watches deliver nothing while it is shut.
type heldWatches struct {
	next http.RoundTripper
	*valve
}

type valve struct {
	mu   sync.Mutex
	free sync.Cond
	shut bool
}

func newValve() *valve {
	v := &valve{}
	v.free.L = &v.mu
	return v
}

func (v *valve) set(shut bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shut = shut
	v.free.Broadcast()
}

func (h heldWatches) WrappedRoundTripper() http.RoundTripper { return h.next }

func (h heldWatches) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := h.next.RoundTrip(req)
	if err == nil && req.URL.Query().Has("watch") {
		resp.Body = heldFrames{resp.Body, h.valve}
	}
	return resp, err
}

type heldFrames struct {
	io.ReadCloser
	*valve
}

func (f heldFrames) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.shut {
		f.free.Wait()
	}
	return n, err
}

var _ = Describe("Clients made from a manager's configuration, whose watches are held", Ordered, Label("R14"), func() {
	const trials = 30
	var (
		mgr         *manager.Manager
		maps        *informer.SharedInformer[*corev1.ConfigMap]
		deployments *informer.SharedInformer[*appsv1.Deployment]
		outside     kubernetes.Interface // sees the server's state
	)
	BeforeAll(func(ctx context.Context) {
		held := newValve()
		cfg := env.Config()
		cfg.QPS = -1
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return heldWatches{next, held} })
		var err error
		mgr, err = manager.New(manager.Options{Config: cfg, HealthAddress: "127.0.0.1:0", MetricsAddress: "0", Logger: GinkgoLogr})
		Expect(err).NotTo(HaveOccurred())
		maps, deployments = informer.For[*corev1.ConfigMap](mgr.Informers()), informer.For[*appsv1.Deployment](mgr.Informers())
		stop := start(mgr)
		DeferCleanup(func() { stop() })
		DeferCleanup(held.set, false)
		_, err = mgr.Informers().WaitForSync(ctx)
		Expect(err).NotTo(HaveOccurred())
		held.set(true)
		direct := env.Config()
		direct.QPS = -1
		outside = kubernetes.NewForConfigOrDie(direct)
	})

	// fresh checks that a Lister reads what the server has, or that it has nothing.
	fresh := func(ctx context.Context, what, name string) {
		GinkgoHelper()
		live, err := outside.CoreV1().ConfigMaps("default").Get(ctx, name, metav1.GetOptions{})
		read, none := maps.Lister().Get(kube.Key{Namespace: "default", Name: name})
		if apierrors.IsNotFound(err) {
			Expect(apierrors.IsNotFound(none)).To(BeTrue(), "after %s the Lister reads %v, %v, and the server has nothing", what, read, none)
			return
		}
		Expect(err).NotTo(HaveOccurred())
		Expect(none).NotTo(HaveOccurred(), "after %s", what)
		Expect(read.ResourceVersion).To(Equal(live.ResourceVersion), "the version after %s", what)
		Expect(read.Data).To(Equal(live.Data), "the data after %s", what)
	}

	for _, contentType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		It("reads what a clientset of "+contentType+" has written", func(ctx context.Context) {
			cfg := mgr.Config()
			cfg.ContentType = contentType
			api := kubernetes.NewForConfigOrDie(cfg).CoreV1().ConfigMaps("default")
			for i := range trials {
				name, value := fmt.Sprint("clientset-", i, "-", len(contentType)), func(v string) map[string]string { return map[string]string{"v": v} }
				obj, err := api.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: value("1")}, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				fresh(ctx, "create", name)
				obj.Data = value("2")
				obj.Finalizers = []string{"example.com/held"}
				_, err = api.Update(ctx, obj, metav1.UpdateOptions{})
				Expect(err).NotTo(HaveOccurred())
				fresh(ctx, "update", name)
				_, err = api.Patch(ctx, name, types.MergePatchType, []byte(`{"data":{"v":"3"}}`), metav1.PatchOptions{})
				Expect(err).NotTo(HaveOccurred())
				fresh(ctx, "patch", name)
				_, err = api.Apply(ctx, coreac.ConfigMap(name, "default").WithData(value("4")), metav1.ApplyOptions{FieldManager: "test", Force: true})
				Expect(err).NotTo(HaveOccurred())
				fresh(ctx, "apply", name)
				Expect(api.Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
				fresh(ctx, "delete, held by a finalizer", name)
				_, err = api.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
				Expect(err).NotTo(HaveOccurred())
				fresh(ctx, "the last finalizer", name)
				obj, err = api.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: value("5")}, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				fresh(ctx, "create again", name)
				Expect(api.Delete(ctx, name, *metav1.NewPreconditionDeleteOptions(string(obj.UID)))).To(Succeed())
				fresh(ctx, "delete", name)
				obj, err = api.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "made-", Labels: value(name)}}, metav1.CreateOptions{})
				Expect(err).NotTo(HaveOccurred())
				fresh(ctx, "create with a generated name", obj.Name)
				Expect(api.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "v=" + name})).To(Succeed())
				fresh(ctx, "delete of a collection", obj.Name)
				_, err = api.Update(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
				Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
				_, err = api.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				Expect(err).NotTo(HaveOccurred())
				fresh(ctx, "a dry run", name)
			}
		})
	}

	It("reads what a dynamic client has written", func(ctx context.Context) {
		api := dynamic.NewForConfigOrDie(mgr.Config()).Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("default")
		for i := range trials {
			name := fmt.Sprint("dynamic-", i)
			obj, err := api.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}, "data": map[string]any{"v": "1"},
			}}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			fresh(ctx, "create", name)
			Expect(unstructured.SetNestedField(obj.Object, "2", "data", "v")).To(Succeed())
			_, err = api.Update(ctx, obj, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			fresh(ctx, "update", name)
			Expect(api.Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
			fresh(ctx, "delete", name)
		}
	})

	It("reads the status and the object of a Deployment that a clientset has written", func(ctx context.Context) {
		api := kubernetes.NewForConfigOrDie(mgr.Config()).AppsV1().Deployments("default")
		labels := map[string]string{"app": "web"}
		obj, err := api.Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec: appsv1.DeploymentSpec{
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}},
				},
			},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		for i := range trials {
			obj.Status.ObservedGeneration = int64(i + 1)
			obj, err = api.UpdateStatus(ctx, obj, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			read, err := deployments.Lister().Get(kube.KeyOf(obj))
			Expect(err).NotTo(HaveOccurred())
			Expect(read.Status.ObservedGeneration).To(Equal(int64(i + 1)))
			obj, err = api.Apply(ctx, appsac.Deployment("web", "default").WithSpec(appsac.DeploymentSpec().WithReplicas(int32(i))), metav1.ApplyOptions{FieldManager: "test", Force: true})
			Expect(err).NotTo(HaveOccurred())
			read, err = deployments.Lister().Get(kube.KeyOf(obj))
			Expect(err).NotTo(HaveOccurred())
			Expect(read.Spec.Replicas).To(HaveValue(Equal(int32(i))))
		}
		Expect(api.Delete(ctx, "web", metav1.DeleteOptions{})).To(Succeed())
		_, err = deployments.Lister().Get(kube.KeyOf(obj))
		Expect(apierrors.IsNotFound(err)).To(BeTrue(), "%v", err)
	})
})
