// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package factory_test

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/bridge/clientgo"
	"github.com/flyball-dev/flyball/bridge/clientgo/factory"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

func newFlyball(t *testing.T, scheme *runtime.Scheme) *informer.SharedInformerFactory {
	t.Helper()
	f, err := informer.NewSharedInformerFactory(&rest.Config{Host: "https://flyball.invalid"}, scheme, informer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// isFlyball reports whether i, as wrapped by generated accessors, is flyball's.
func isFlyball(i cache.SharedIndexInformer) bool {
	inner := reflect.ValueOf(i)
	for inner.Kind() == reflect.Pointer && inner.Elem().Kind() == reflect.Struct {
		field := inner.Elem().FieldByName("SharedIndexInformer")
		if !field.IsValid() {
			break
		}
		inner = field.Elem()
	}
	return inner.Type() == reflect.TypeFor[*clientgo.SharedIndexInformer[kube.Object]]()
}

func TestFactory_KnowsEveryResourceOfClientGo(t *testing.T) {
	theirs := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	ours := factory.New(newFlyball(t, clientscheme.Scheme), factory.Options{})
	known := 0
	for kind := range clientscheme.Scheme.AllKnownTypes() {
		resource, _ := meta.UnsafeGuessKindToResource(kind)
		if _, err := theirs.ForResource(resource); err != nil {
			continue
		}
		known++
		i, err := ours.ForResource(resource)
		if err != nil {
			t.Errorf("client-go's factory serves %s, this one does not: %v", resource, err)
			continue
		}
		if i.Informer().HasSynced() || i.Lister() == nil {
			t.Errorf("%s: synced before the start, or without a lister", resource)
		}
	}
	if known < 100 {
		t.Errorf("client-go's factory serves %d kinds of its scheme; this test looks at too few", known)
	}
	if _, err := ours.ForResource(corev1.SchemeGroupVersion.WithResource("unknowns")); err == nil {
		t.Error("a resource that is none has an informer")
	}
}

func TestFactory_EachKindHasOneInformer(t *testing.T) {
	f := factory.New(newFlyball(t, clientscheme.Scheme), factory.Options{})
	byGroup := f.Apps().V1().Deployments().Informer()
	if !isFlyball(byGroup) {
		t.Errorf("Deployments are a %T, want flyball's informer", byGroup)
	}
	generic, err := f.ForResource(appsv1.SchemeGroupVersion.WithResource("deployments"))
	if err != nil {
		t.Fatal(err)
	}
	byType := f.InformerFor(&appsv1.Deployment{}, nil)
	if byGroup.GetIndexer() != byType.GetIndexer() || byType.GetIndexer() != generic.Informer().GetIndexer() {
		t.Error("one kind has several informers")
	}
}

// A program may register a type for a kind of its own too.
func TestFactory_TypeOfSeveralKindsHasAnInformer(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "test.example.com", Version: "v1", Kind: "OldPod"}, &corev1.Pod{})
	flyball := newFlyball(t, scheme)
	pods := factory.New(flyball, factory.Options{}).Core().V1().Pods().Informer()
	if !isFlyball(pods) {
		t.Errorf("Pods are a %T, want flyball's informer", pods)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := flyball.Run(ctx); err != nil {
		t.Errorf("Run = %v, want no misuse", err)
	}
}

func TestFactory_ForeignFunctionIsClientGosOwnInformer(t *testing.T) {
	client := fake.NewClientset()
	f := factory.New(newFlyball(t, clientscheme.Scheme), factory.Options{Client: client, Resync: time.Hour})
	var given time.Duration
	newPods := func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		given = resync
		return coreinformers.NewPodInformer(c, "prod", resync, cache.Indexers{})
	}
	i := f.InformerFor(&corev1.Pod{}, newPods)
	if isFlyball(i) || given != time.Hour {
		t.Errorf("a function of the caller's yields %T with resync %s, want what it makes with an hour", i, given)
	}
	if f.Core().V1().Pods().Informer().GetIndexer() != i.GetIndexer() {
		t.Error("the first to ask for a type does not decide for all")
	}

	ctx, cancel := context.WithCancel(t.Context())
	f.StartWithContext(ctx)
	f.StartWithContext(ctx)
	if result := f.WaitForCacheSyncWithContext(ctx); result.AsError() != nil || !result.Synced[reflect.TypeFor[*corev1.Pod]()] {
		t.Errorf("sync of client-go's own informer: %v", result)
	}
	cancel()
	f.Shutdown()
	if !i.IsStopped() {
		t.Error("Shutdown returned before the informer had ended")
	}
}

func TestFactory_FunctionMayGiveAnInformerOfFlyballs(t *testing.T) {
	var lines []string
	flyball := newFlyball(t, clientscheme.Scheme)
	f := factory.New(flyball, factory.Options{Logger: funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})})
	own := clientgo.NewSharedIndexInformer(informer.For[*corev1.Pod](flyball, informer.Scope{LabelSelector: "a=b"}), clientgo.Options{})
	i := f.InformerFor(&corev1.Pod{}, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return own })
	if i != cache.SharedIndexInformer(own) || len(lines) != 0 {
		t.Errorf("got %T and %d lines of log, want what the function gives and no line:\n%s", i, len(lines), strings.Join(lines, "\n"))
	}
	f.InformerFor(&corev1.Node{}, func(c kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return coreinformers.NewNodeInformer(c, resync, cache.Indexers{})
	})
	if len(lines) != 1 || !strings.Contains(lines[0], "v1.Node") {
		t.Errorf("an informer of client-go's: got %d lines of log, want one that names the type:\n%s", len(lines), strings.Join(lines, "\n"))
	}
}

func TestFactory_TypeOutsideTheSchemeIsClientGosOwnInformer(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := appsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	flyball := newFlyball(t, scheme)
	f := factory.New(flyball, factory.Options{Client: fake.NewClientset()})
	if i := f.Core().V1().Pods().Informer(); isFlyball(i) {
		t.Error("a type that is not in the scheme has an informer of flyball's")
	}
	if i := f.Apps().V1().ReplicaSets().Informer(); !isFlyball(i) {
		t.Errorf("ReplicaSets are a %T, want flyball's informer", i)
	}
	if _, err := f.ForResource(corev1.SchemeGroupVersion.WithResource("secrets")); err == nil {
		t.Error("ForResource of a type that is not in the scheme is no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := flyball.Run(ctx); err != nil {
		t.Errorf("the flyball factory remembers misuse: %v", err)
	}
}

func TestFactory_NamesClientGosOwnInformersForTheirMetrics(t *testing.T) {
	name, err := cache.NewInformerName("factory-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(name.Release)
	f := factory.New(newFlyball(t, runtime.NewScheme()), factory.Options{Client: fake.NewClientset(), Name: name})
	if f.InformerName() != name {
		t.Errorf("InformerName is %v, want the one of the Options", f.InformerName())
	}
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	f.Core().V1().Pods().Informer()
	if name.WithResource(pods).Reserved() {
		t.Error("client-go's own informer of Pods did not take the name: it publishes no metrics")
	}
}

func TestFactory_WaitForCacheSyncSaysWhatHasNotSynced(t *testing.T) {
	f := factory.New(newFlyball(t, clientscheme.Scheme), factory.Options{})
	f.Core().V1().Nodes().Informer()
	stop := make(chan struct{})
	close(stop)
	if synced := f.WaitForCacheSync(stop); len(synced) != 0 {
		t.Errorf("before the start: %v, want nothing, as in client-go", synced)
	}
	f.Start(stop)
	synced := f.WaitForCacheSync(stop)
	if got, asked := synced[reflect.TypeFor[*corev1.Node]()]; got || !asked {
		t.Errorf("got %v, want Nodes as not synced", synced)
	}
}
