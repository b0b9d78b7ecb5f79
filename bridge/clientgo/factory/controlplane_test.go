// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package factory_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	appsinformers "k8s.io/client-go/informers/apps/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/flyball-dev/flyball/bridge/clientgo/factory"
	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/informer"
)

func TestControlPlane(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	RunSpecs(t, "client-go's factory on flyball's informers")
}

// noter is a typical client-go controller: for each Deployment it keeps a
// ConfigMap of the same name with the number of replicas. It does not use
// flyball's API.
type noter struct {
	client      kubernetes.Interface
	deployments appslisters.DeploymentLister
	configMaps  corelisters.ConfigMapLister
	synced      []cache.InformerSynced
	queue       workqueue.TypedRateLimitingInterface[string]
}

func newNoter(client kubernetes.Interface, deployments appsinformers.DeploymentInformer, configMaps coreinformers.ConfigMapInformer) (*noter, error) {
	c := &noter{
		client:      client,
		deployments: deployments.Lister(),
		configMaps:  configMaps.Lister(),
		synced:      []cache.InformerSynced{deployments.Informer().HasSynced, configMaps.Informer().HasSynced},
		queue:       workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
	}
	for _, i := range []cache.SharedIndexInformer{deployments.Informer(), configMaps.Informer()} {
		if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    c.enqueue,
			UpdateFunc: func(_, obj any) { c.enqueue(obj) },
			DeleteFunc: c.enqueue,
		}); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *noter) enqueue(obj any) {
	if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
		c.queue.Add(key)
	}
}

func (c *noter) run(ctx context.Context) error {
	var workers sync.WaitGroup
	defer workers.Wait()
	defer c.queue.ShutDown()
	if !cache.WaitForNamedCacheSync("noter", ctx.Done(), c.synced...) {
		return errors.New("caches have not synced")
	}
	for range 2 {
		workers.Go(func() {
			for c.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	return nil
}

func (c *noter) next(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	if err := c.sync(ctx, key); err != nil {
		c.queue.AddRateLimited(key)
		return true
	}
	c.queue.Forget(key)
	return true
}

func (c *noter) sync(ctx context.Context, key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	notes := c.client.CoreV1().ConfigMaps(namespace)
	note, err := c.configMaps.ConfigMaps(namespace).Get(name)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	exists := err == nil
	deployment, err := c.deployments.Deployments(namespace).Get(name)
	switch {
	case apierrors.IsNotFound(err):
		if !exists || note.Labels["note"] != "true" {
			return nil
		}
		return notes.Delete(ctx, name, metav1.DeleteOptions{})
	case err != nil:
		return err
	}
	wanted := strconv.Itoa(int(*deployment.Spec.Replicas))
	switch {
	case !exists:
		_, err = notes.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"note": "true"}},
			Data:       map[string]string{"replicas": wanted},
		}, metav1.CreateOptions{})
	case note.Data["replicas"] != wanted:
		note = note.DeepCopy()
		note.Data["replicas"] = wanted
		_, err = notes.Update(ctx, note, metav1.UpdateOptions{})
	}
	return err
}

var _ = Describe("a controller written for client-go", Ordered, func() {
	var (
		api   kubernetes.Interface
		f     *informer.SharedInformerFactory
		ours  = map[string]string{"app": "web"}
		wait  = 20 * time.Second
		lists appslisters.DeploymentLister
	)

	BeforeAll(func(ctx context.Context) {
		env, err := envtest.Start(ctx, envtest.Options{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(env.Stop()).To(Succeed()) })
		api = kubernetes.NewForConfigOrDie(env.Config())
		f, err = informer.NewSharedInformerFactory(env.Config(), clientscheme.Scheme, informer.Options{})
		Expect(err).NotTo(HaveOccurred())

		shared := factory.New(f, factory.Options{Client: api})
		lists = shared.Apps().V1().Deployments().Lister()
		c, err := newNoter(api, shared.Apps().V1().Deployments(), shared.Core().V1().ConfigMaps())
		Expect(err).NotTo(HaveOccurred())

		running, cancel := context.WithCancel(context.Background())
		done := make(chan error, 2)
		go func() { done <- f.Run(running) }()
		shared.StartWithContext(running)
		go func() { done <- c.run(running) }()
		DeferCleanup(func() {
			cancel()
			for range 2 {
				Eventually(done).WithTimeout(10 * time.Second).Should(Receive(BeNil()))
			}
			shared.Shutdown()
		})
		syncing, stop := context.WithTimeout(ctx, wait)
		defer stop()
		Expect(shared.WaitForCacheSyncWithContext(syncing).AsError()).To(Succeed())
	})

	note := func(ctx context.Context) (string, error) {
		m, err := api.CoreV1().ConfigMaps("default").Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		return m.Data["replicas"], nil
	}

	It("sees a Deployment come", func(ctx context.Context) {
		replicas := int32(2)
		_, err := api.AppsV1().Deployments("default").Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: ours},
			Spec: appsv1.DeploymentSpec{
				Replicas: &replicas,
				Selector: &metav1.LabelSelector{MatchLabels: ours},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: ours},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}},
				},
			},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(note).WithContext(ctx).WithTimeout(wait).Should(Equal("2"))
		found, err := lists.Deployments("default").List(labels.SelectorFromSet(ours))
		Expect(err).NotTo(HaveOccurred())
		Expect(found).To(HaveLen(1))
	})

	It("sees it change", func(ctx context.Context) {
		_, err := api.AppsV1().Deployments("default").Patch(ctx, "web", "application/merge-patch+json",
			[]byte(`{"spec":{"replicas":5}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(note).WithContext(ctx).WithTimeout(wait).Should(Equal("5"))
	})

	It("sees what it wrote be taken away", func(ctx context.Context) {
		Expect(api.CoreV1().ConfigMaps("default").Delete(ctx, "web", metav1.DeleteOptions{})).To(Succeed())
		Eventually(note).WithContext(ctx).WithTimeout(wait).Should(Equal("5"))
	})

	It("sees it go", func(ctx context.Context) {
		Expect(api.AppsV1().Deployments("default").Delete(ctx, "web", metav1.DeleteOptions{})).To(Succeed())
		Eventually(func(ctx context.Context) bool {
			_, err := note(ctx)
			return apierrors.IsNotFound(err)
		}).WithContext(ctx).WithTimeout(wait).Should(BeTrue(), "the note of a Deployment that is gone is deleted")
	})

	It("shares one watch with flyball's own", func() {
		handle := informer.For[*appsv1.Deployment](f)
		watches := 0
		for _, s := range handle.Snapshot().Scopes {
			watches += s.Watches
		}
		Expect(watches).To(Equal(1), fmt.Sprint(handle.Snapshot()))
	})
})
