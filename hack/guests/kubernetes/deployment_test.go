// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/replicaset"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/clientgo/factory"
)

func TestDeployments(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "controllers from outside on flyball's informers")
}

const patience = 30 * time.Second

var _ = Describe("Kubernetes' Deployment and ReplicaSet controllers", Ordered, func() {
	var (
		api     kubernetes.Interface
		flyball *informer.SharedInformerFactory
	)
	labels := map[string]string{"app": "web"}

	BeforeAll(func(ctx context.Context) {
		env, err := envtest.Start(ctx, envtest.Options{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(env.Stop()).To(Succeed()) })
		api = kubernetes.NewForConfigOrDie(env.Config())
		flyball, err = informer.NewSharedInformerFactory(env.Config(), clientscheme.Scheme, informer.Options{KeepManagedFields: true})
		Expect(err).NotTo(HaveOccurred())
		shared := factory.New(flyball, factory.Options{Client: api})

		running, cancel := context.WithCancel(context.Background())
		deployments, err := deployment.NewDeploymentController(running,
			shared.Apps().V1().Deployments(), shared.Apps().V1().ReplicaSets(), shared.Core().V1().Pods(), api)
		Expect(err).NotTo(HaveOccurred())
		replicaSets := replicaset.NewReplicaSetController(running,
			shared.Apps().V1().ReplicaSets(), shared.Core().V1().Pods(), api, replicaset.BurstReplicas)

		done := make(chan error, 4)
		go func() { done <- flyball.Run(running) }()
		go func() { deployments.Run(running, 2); done <- nil }()
		go func() { replicaSets.Run(running, 2); done <- nil }()
		go func() { kubelet(running, api, "default"); done <- nil }()
		shared.StartWithContext(running)
		DeferCleanup(func() {
			cancel()
			for range 4 {
				Eventually(done).WithTimeout(patience).Should(Receive(BeNil()))
			}
			shared.Shutdown()
		})
	})

	// counts are the Pods that live, by image.
	counts := func(ctx context.Context) (map[string]int, error) {
		pods, err := api.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		out := map[string]int{}
		for _, p := range pods.Items {
			if p.DeletionTimestamp == nil {
				out[p.Spec.Containers[0].Image]++
			}
		}
		return out, nil
	}
	complete := func(ctx context.Context, replicas int32) {
		GinkgoHelper()
		Eventually(func(ctx context.Context) (appsv1.DeploymentStatus, error) {
			d, err := api.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
			if err != nil {
				return appsv1.DeploymentStatus{}, err
			}
			if d.Status.ObservedGeneration != d.Generation {
				return appsv1.DeploymentStatus{}, nil
			}
			return d.Status, nil
		}).WithContext(ctx).WithTimeout(patience).Should(And(
			HaveField("AvailableReplicas", replicas), HaveField("UpdatedReplicas", replicas), HaveField("Replicas", replicas)))
	}
	patch := func(ctx context.Context, body string) {
		GinkgoHelper()
		_, err := api.AppsV1().Deployments("default").Patch(ctx, "web", types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
	}

	It("create", func(ctx context.Context) {
		replicas := int32(3)
		_, err := api.AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "web"},
			Spec: appsv1.DeploymentSpec{
				Replicas: &replicas,
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
				},
			},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		complete(ctx, 3)
		Eventually(counts).WithContext(ctx).WithTimeout(patience).Should(Equal(map[string]int{"web:1": 3}))
	})

	It("rollout", func(ctx context.Context) {
		patch(ctx, `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}`)
		complete(ctx, 3)
		Eventually(counts).WithContext(ctx).WithTimeout(patience).Should(Equal(map[string]int{"web:2": 3}))
	})

	It("scale", func(ctx context.Context) {
		patch(ctx, `{"spec":{"replicas":12}}`)
		complete(ctx, 12)
		patch(ctx, `{"spec":{"replicas":1}}`)
		complete(ctx, 1)
		Eventually(counts).WithContext(ctx).WithTimeout(patience).Should(Equal(map[string]int{"web:2": 1}))
	})

	It("on one informer of flyball's per kind", func() {
		handlers := map[string]int{}
		for _, s := range flyball.Snapshot() {
			Expect(s.Scopes).To(HaveLen(1))
			Expect(s.Scopes[0].State).To(Equal(informer.StateLive), s.Scopes[0].String())
			handlers[s.Kind.Kind] = len(s.Handlers)
		}
		Expect(handlers).To(Equal(map[string]int{"Deployment": 1, "ReplicaSet": 2, "Pod": 2}))
	})

	It("delete, whose Pods no garbage collector takes here", func(ctx context.Context) {
		Expect(api.AppsV1().Deployments("default").Delete(ctx, "web", metav1.DeleteOptions{})).To(Succeed())
		sets, err := api.AppsV1().ReplicaSets("default").List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		for _, rs := range sets.Items {
			Expect(api.AppsV1().ReplicaSets("default").Delete(ctx, rs.Name, metav1.DeleteOptions{})).To(Succeed())
		}
		Consistently(func(ctx context.Context) (int, error) {
			sets, err := api.AppsV1().ReplicaSets("default").List(ctx, metav1.ListOptions{})
			return len(sets.Items), err
		}).WithContext(ctx).WithTimeout(2*time.Second).Should(BeZero(), "a Deployment that is gone makes nothing anew")
	})
})
