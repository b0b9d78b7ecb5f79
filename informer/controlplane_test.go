// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/envtest"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/informertest"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/testing/crdfixture"
	"github.com/flyball-dev/flyball/kube"
)

func TestControlPlane(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(30 * time.Second)
	RunSpecs(t, "informer on a real control plane")
}

var (
	env *envtest.Environment
	api kubernetes.Interface
)

var _ = BeforeSuite(func(ctx context.Context) {
	var err error
	env, err = envtest.Start(ctx, envtest.Options{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(env.Stop()).To(Succeed()) })
	api = kubernetes.NewForConfigOrDie(env.Config())
})

// gear is a custom resource as a plain struct.
type gear struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Teeth             int `json:"teeth,omitempty"`
}

func (g *gear) DeepCopyObject() runtime.Object {
	out := *g
	g.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// factoryFor runs a factory until the spec ends, and checks that it ends.
func factoryFor(cfg *rest.Config, opts informer.Options) *informer.SharedInformerFactory {
	GinkgoHelper()
	scheme := runtime.NewScheme()
	Expect(clientscheme.AddToScheme(scheme)).To(Succeed())
	scheme.AddKnownTypeWithName(gearKind, &gear{})
	return factoryOf(cfg, scheme, opts)
}

// factoryOf is factoryFor with another scheme.
func factoryOf(cfg *rest.Config, scheme *runtime.Scheme, opts informer.Options) *informer.SharedInformerFactory {
	GinkgoHelper()
	opts.DetectMutations = informertest.NoMutations(func(m ...any) { Fail(fmt.Sprint(m...)) })
	f, err := informer.NewSharedInformerFactory(cfg, scheme, opts)
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	DeferCleanup(func() {
		cancel()
		Eventually(done).WithTimeout(10*time.Second).Should(Receive(BeNil()), "Run returns after its context has ended")
	})
	return f
}

var gearKind = schema.GroupVersionKind{Group: "test.flyball.dev", Version: "v1", Kind: "Gear"}

// writeFile writes a file that is removed after the spec, and returns its path.
func writeFile(name, content string) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), name)
	Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	return path
}

// contents returns ConfigMaps as name=version, sorted.
func contents(l informer.Lister[*corev1.ConfigMap], namespace string) func() []string {
	return func() []string {
		var out []string
		objects, _ := l.List(informer.QueryOptions{Namespace: namespace})
		for _, cm := range objects {
			out = append(out, cm.Name+"="+cm.ResourceVersion)
		}
		slices.Sort(out)
		return out
	}
}

func live(ctx context.Context, namespace string) []string {
	GinkgoHelper()
	list, err := api.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	var out []string
	for _, cm := range list.Items {
		out = append(out, cm.Name+"="+cm.ResourceVersion)
	}
	slices.Sort(out)
	return out
}

func create(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	_, err := api.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"v": name},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

func newNamespace(ctx context.Context) string {
	GinkgoHelper()
	ns, err := api.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return ns.Name
}

var _ = Describe("SharedInformer", Ordered, func() {
	for _, way := range []struct {
		name string
		opts informer.Options
	}{
		{"streaming lists", informer.Options{}},
		{"paged lists", informer.Options{PagedLists: true, PageSize: 7}},
		{"lists from the server's cache", informer.Options{PagedLists: true, ListFromCache: true}},
	} {
		It("equals the server, by "+way.name, func(ctx context.Context) {
			ns := newNamespace(ctx)
			for n := range 20 {
				create(ctx, ns, fmt.Sprintf("before-%d", n))
			}
			f := factoryFor(env.Config(), way.opts)
			maps := informer.For[*corev1.ConfigMap](f).Lister()
			Expect(f.WaitForSync(ctx)).Error().NotTo(HaveOccurred())
			Eventually(contents(maps, ns)).Should(Equal(live(ctx, ns)))
			for n := range 20 {
				create(ctx, ns, fmt.Sprintf("after-%d", n))
			}
			Expect(api.CoreV1().ConfigMaps(ns).Delete(ctx, "before-3", metav1.DeleteOptions{})).To(Succeed())
			Eventually(contents(maps, ns)).Should(Equal(live(ctx, ns)))
			got, err := maps.Get(kube.Key{Namespace: ns, Name: "after-7"})
			Expect(err).NotTo(HaveOccurred())
			Expect(got.Kind).To(Equal("ConfigMap"), "objects know their kind")
			Expect(got.ManagedFields).To(BeEmpty(), "managedFields are stripped by default")
		})
	}

	It("watches by namespaces, labels and fields, one scope each", func(ctx context.Context) {
		one, two := newNamespace(ctx), newNamespace(ctx)
		f := factoryFor(env.Config(), informer.Options{})
		both := informer.For[*corev1.ConfigMap](f, informer.Scope{Namespaces: []string{one, two}}).Lister()
		named := informer.For[*corev1.ConfigMap](f, informer.Scope{Namespaces: []string{one}, FieldSelector: "metadata.name=a"}).Lister()
		Expect(f.WaitForSync(ctx)).Error().NotTo(HaveOccurred())
		for _, ns := range []string{one, two} {
			create(ctx, ns, "a")
			create(ctx, ns, "b")
		}
		count := func(l informer.Lister[*corev1.ConfigMap]) func() int {
			return func() int { all, _ := l.List(informer.QueryOptions{}); return len(all) }
		}
		Eventually(count(both)).Should(Equal(4))
		Eventually(count(named)).Should(Equal(1))
		var outside *kube.OutOfScopeError
		_, err := both.Get(kube.Key{Namespace: "default", Name: "a"})
		Expect(err).To(BeAssignableToTypeOf(outside), "a namespace that is not watched is not the same as not found")
	})

	It("waits for a kind that is not served, says so, and goes on when it is", func(ctx context.Context) {
		f := factoryFor(env.Config(), informer.Options{})
		gears := informer.For[*gear](f)
		current := func() state.State { return gears.Snapshot().Scopes[0].State }
		Eventually(current).Should(Equal(state.NotServed))
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		_, err := f.WaitForSync(short)
		Expect(err).To(MatchError(And(ContainSubstring("Gear"), ContainSubstring("CustomResourceDefinition"))))

		Expect(env.InstallCRDObjects(ctx, crdfixture.New(gearKind, map[string]any{"teeth": crdfixture.Integer}, nil))).To(Succeed())
		Eventually(current).WithTimeout(90 * time.Second).Should(Equal(state.Live))
		_, err = env.Kubectl(ctx, "create", "-f", writeFile("gear.yaml", "apiVersion: test.flyball.dev/v1\nkind: Gear\nmetadata: {name: g, namespace: default}\nteeth: 12\n"))
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() int {
			g, err := gears.Lister().Get(kube.Key{Namespace: "default", Name: "g"})
			if err != nil {
				return 0
			}
			return g.Teeth
		}).Should(Equal(12))
	})

	It("waits for a right that is missing, says so, and goes on when it is granted", func(ctx context.Context) {
		cfg, err := env.User("newcomer")
		Expect(err).NotTo(HaveOccurred())
		f := factoryFor(cfg, informer.Options{})
		deployments := informer.For[*appsv1.Deployment](f)
		current := func() state.Scope { return deployments.Snapshot().Scopes[0] }
		Eventually(current).Should(And(
			HaveField("State", state.Forbidden),
			HaveField("Reason", ContainSubstring(`"newcomer" cannot watch`))))
		_, err = env.Kubectl(ctx, "create", "clusterrole", "newcomer", "--verb=list,watch", "--resource=deployments.apps")
		Expect(err).NotTo(HaveOccurred())
		_, err = env.Kubectl(ctx, "create", "clusterrolebinding", "newcomer", "--clusterrole=newcomer", "--user=newcomer")
		Expect(err).NotTo(HaveOccurred())
		Eventually(current).WithTimeout(90 * time.Second).Should(HaveField("State", state.Live))
	})

	It("survives a kill -9 and a restart of the API server [I5]", func(ctx context.Context) {
		ns := newNamespace(ctx)
		create(ctx, ns, "before")
		f := factoryFor(env.Config(), informer.Options{})
		maps := informer.For[*corev1.ConfigMap](f)
		Expect(f.WaitForSync(ctx)).Error().NotTo(HaveOccurred())
		Expect(env.KillAPIServer()).To(Succeed())
		Eventually(func() state.State { return maps.Snapshot().Scopes[0].State }).WithTimeout(20 * time.Second).Should(Equal(state.Stale))
		_, err := maps.Lister().Get(kube.Key{Namespace: ns, Name: "before"})
		Expect(err).NotTo(HaveOccurred(), "reads go on from what is known")
		Expect(env.StartAPIServer(ctx)).To(Succeed())
		create(ctx, ns, "after")
		Eventually(contents(maps.Lister(), ns)).WithTimeout(60 * time.Second).Should(Equal(live(ctx, ns)))
	})

	It("lists anew when what it has seen is compacted away (410) [I5]", func(ctx context.Context) {
		ns := newNamespace(ctx)
		for n := range 10 {
			create(ctx, ns, fmt.Sprintf("m-%d", n))
		}
		cfg, network := env.Config(), &envtest.Network{}
		cfg.Dial = network.Dial
		f := factoryFor(cfg, informer.Options{})
		maps := informer.For[*corev1.ConfigMap](f)
		Expect(f.WaitForSync(ctx)).Error().NotTo(HaveOccurred())
		Eventually(contents(maps.Lister(), ns)).Should(Equal(live(ctx, ns)))
		deleted := make(chan kube.Event[*corev1.ConfigMap], 10)
		_, err := maps.AddHandler(func(e kube.Event[*corev1.ConfigMap]) {
			if e.Type == kube.Deleted {
				deleted <- e
			}
		}, informer.HandlerOptions{})
		Expect(err).NotTo(HaveOccurred())

		network.Shut()
		Expect(api.CoreV1().ConfigMaps(ns).Delete(ctx, "m-3", metav1.DeleteOptions{})).To(Succeed())
		create(ctx, ns, "late")
		Expect(env.KillAPIServer()).To(Succeed())
		Expect(env.Compact(ctx)).To(Succeed())
		Expect(env.StartAPIServer(ctx)).To(Succeed())
		network.Open()
		Eventually(contents(maps.Lister(), ns)).WithTimeout(60 * time.Second).Should(Equal(live(ctx, ns)))
		Eventually(deleted).WithTimeout(10 * time.Second).Should(Receive(HaveField("Key.Name", "m-3")))
	})
})
