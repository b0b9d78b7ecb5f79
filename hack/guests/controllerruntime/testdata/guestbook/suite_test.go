// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package guestbook

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

var (
	ctx       context.Context
	cancel    context.CancelFunc
	testEnv   *envtest.Environment
	cfg       *rest.Config
	k8sClient client.Client
	ended     = make(chan struct{})
)

func TestGuestbook(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	RunSpecs(t, "Guestbook")
}

var _ = BeforeSuite(func() {
	ctx, cancel = context.WithCancel(context.Background())
	Expect(addToScheme(scheme.Scheme)).To(Succeed())
	testEnv = &envtest.Environment{
		CRDDirectoryPaths:     []string{filepath.Join("config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{filepath.Join("config", "webhook")}},
	}
	var err error
	cfg, err = testEnv.Start()
	Expect(err).NotTo(HaveOccurred())
	k8sClient, err = client.New(cfg, client.Options{Scheme: scheme.Scheme})
	Expect(err).NotTo(HaveOccurred())

	hook := testEnv.WebhookInstallOptions
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:         scheme.Scheme,
		Metrics:        metricsserver.Options{BindAddress: "0"},
		LeaderElection: false,
		WebhookServer:  webhook.NewServer(webhook.Options{Host: hook.LocalServingHost, Port: hook.LocalServingPort, CertDir: hook.LocalServingCertDir}),
	})
	Expect(err).NotTo(HaveOccurred())
	Expect((&reconciler{mgr.GetClient()}).setup(mgr)).To(Succeed())
	Expect(hooks{}.setup(mgr)).To(Succeed())
	go func() {
		defer GinkgoRecover()
		defer close(ended)
		Expect(mgr.Start(ctx)).To(Succeed())
	}()
	Eventually(func() error { return mgr.GetWebhookServer().StartedChecker()(nil) }).Should(Succeed())
})

var _ = AfterSuite(func() {
	cancel()
	<-ended
	Expect(testEnv.Stop()).To(Succeed())
})

func book(name, title string) *Guestbook {
	return &Guestbook{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: GuestbookSpec{Title: title}}
}

var _ = Describe("A Guestbook", func() {
	It("has defaults of its schema and its webhook, and is reconciled", func() {
		b := book("a", "  mine ")
		Expect(k8sClient.Create(ctx, b)).To(Succeed())
		Expect(b.Spec).To(Equal(GuestbookSpec{Title: "mine", Pages: 10}))
		page := &corev1.ConfigMap{}
		Eventually(func(g Gomega) {
			g.Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(b), page)).To(Succeed())
			g.Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(b), b)).To(Succeed())
			g.Expect(b.Status.Pages).To(BeEquivalentTo(10))
		}).Should(Succeed())
		Expect(page.Data).To(HaveKeyWithValue("title", "mine"))
		Expect(metav1.IsControlledBy(page, b)).To(BeTrue())

		Expect(k8sClient.Delete(ctx, page)).To(Succeed())
		Eventually(func() error { return k8sClient.Get(ctx, client.ObjectKeyFromObject(b), page) }).Should(Succeed(), "it is made again")

		before := b.DeepCopyObject().(*Guestbook)
		b.Spec.Pages = 20
		Expect(k8sClient.Patch(ctx, b, client.MergeFrom(before))).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(b), page)).To(Succeed())
			g.Expect(page.Data).To(HaveKeyWithValue("pages", "20"))
		}).Should(Succeed())

		Expect(k8sClient.Delete(ctx, b)).To(Succeed())
		Consistently(func() error { return k8sClient.Get(ctx, client.ObjectKeyFromObject(page), page) }, time.Second).
			Should(Succeed(), "without controllers nothing is garbage-collected")
	})

	It("is refused by its schema and by its webhook", func() {
		Expect(apierrors.IsInvalid(k8sClient.Create(ctx, book("b", "")))).To(BeTrue())
		many := book("b", "many")
		many.Spec.Pages = 501
		Expect(apierrors.IsInvalid(k8sClient.Create(ctx, many))).To(BeTrue())
		err := k8sClient.Create(ctx, book("b", "forbidden"))
		Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(ContainSubstring(`admission webhook "vguestbook.example.com" denied the request: the title is forbidden`)))
	})

	It("is for users with a role", func() {
		added, err := testEnv.AddUser(envtest.User{Name: "jane", Groups: []string{"readers"}}, cfg)
		Expect(err).NotTo(HaveOccurred())
		asJane := rest.CopyConfig(cfg)
		asJane.Impersonate = rest.ImpersonationConfig{UserName: "jane", Groups: []string{"readers"}}
		for _, config := range []*rest.Config{added.Config(), asJane} {
			jane, err := client.New(config, client.Options{Scheme: scheme.Scheme, Mapper: k8sClient.RESTMapper()})
			Expect(err).NotTo(HaveOccurred())
			Expect(apierrors.IsForbidden(jane.List(ctx, &GuestbookList{}))).To(BeTrue())
			role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "readers"}, Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{groupVersion.Group}, Resources: []string{"guestbooks"}, Verbs: []string{"list"}}}}
			binding := &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: "readers"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "readers"},
				Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "readers"}},
			}
			Expect(k8sClient.Create(ctx, role)).To(Succeed())
			Expect(k8sClient.Create(ctx, binding)).To(Succeed())
			Eventually(func() error { return jane.List(ctx, &GuestbookList{}) }).Should(Succeed())
			Expect(apierrors.IsForbidden(jane.Create(ctx, book("c", "jane's")))).To(BeTrue())
			Expect(k8sClient.Delete(ctx, binding)).To(Succeed())
			Expect(k8sClient.Delete(ctx, role)).To(Succeed())
			Eventually(func() bool { return apierrors.IsForbidden(jane.List(ctx, &GuestbookList{})) }).Should(BeTrue())
		}
	})
})

var _ = Describe("A kube-apiserver alone", func() {
	It("has the first objects, and no controllers", func() {
		for _, name := range []string{"default", "kube-system", "kube-public", "kube-node-lease"} {
			Eventually(func() error { return k8sClient.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{}) }).Should(Succeed())
		}
		Eventually(func() error {
			return k8sClient.Get(ctx, client.ObjectKey{Namespace: "default", Name: "kubernetes"}, &corev1.Service{})
		}).Should(Succeed())
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "stays-"}}
		Expect(k8sClient.Create(ctx, ns)).To(Succeed())
		Expect(k8sClient.Delete(ctx, ns)).To(Succeed())
		Consistently(func(g Gomega) {
			g.Expect(k8sClient.Get(ctx, client.ObjectKeyFromObject(ns), ns)).To(Succeed())
			g.Expect(ns.Status.Phase).To(Equal(corev1.NamespaceTerminating))
		}, time.Second).Should(Succeed())
		var accounts corev1.ServiceAccountList
		Expect(k8sClient.List(ctx, &accounts, client.InNamespace("default"))).To(Succeed())
		Expect(accounts.Items).To(BeEmpty(), "a controller makes them")
	})
})
