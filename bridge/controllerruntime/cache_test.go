// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

var configMaps = schema.GroupResource{Resource: "configmaps"}

func configMap(namespace, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"name": name}},
		Data:       data,
	}
}

// started returns a running cache of a simulated server, and a client that reads from it.
func started(t *testing.T, opts cache.Options, objects ...runtime.Object) (*simtest.Server, *kinds, client.Client) {
	t.Helper()
	server := simtest.New(t, nil, objects...)
	made, err := NewCache(server.Config, opts)
	if err != nil {
		t.Fatal(err)
	}
	c := made.(*kinds)
	run(t, c)
	cl, err := NewClient(server.Config, client.Options{Cache: &client.CacheOptions{Reader: c, Unstructured: true}})
	if err != nil {
		t.Fatal(err)
	}
	return server, c, cl
}

// run runs c until the test ends.
func run(t *testing.T, c cache.Cache) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the cache ended with %v, want nil at the end of its context", err)
		}
	})
	if !c.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache does not sync")
	}
}

// names lists ConfigMaps and returns their names with the namespaces, sorted.
func names(t *testing.T, r client.Reader, opts ...client.ListOption) string {
	t.Helper()
	var list corev1.ConfigMapList
	if err := r.List(t.Context(), &list, opts...); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, item := range list.Items {
		out = append(out, item.Namespace+"/"+item.Name)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestCache_EachNamespaceHasItsConfiguration(t *testing.T) {
	mark := func(in any) (any, error) {
		in.(metav1.Object).SetAnnotations(map[string]string{"marked": "yes"})
		return in, nil
	}
	_, c, _ := started(t, cache.Options{
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{"name": "a"}),
		ByObject: map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {Namespaces: map[string]cache.Config{
			"one": {Transform: mark},
			"two": {LabelSelector: labels.Everything(), UnsafeDisableDeepCopy: new(true)},
		}}},
	}, configMap("one", "a", nil), configMap("one", "b", nil), configMap("two", "a", nil), configMap("two", "b", nil), configMap("three", "a", nil))
	if got, want := names(t, c), "one/a two/a two/b"; got != want {
		t.Errorf("all namespaces have %q, want %q", got, want)
	}
	if got, want := names(t, c, client.InNamespace("two"), client.MatchingLabels{"name": "b"}), "two/b"; got != want {
		t.Errorf("b in two is %q, want %q", got, want)
	}
	get := func(namespace string) (*corev1.ConfigMap, error) {
		out := &corev1.ConfigMap{}
		return out, c.Get(t.Context(), types.NamespacedName{Namespace: namespace, Name: "a"}, out)
	}
	one, err := get("one")
	if err != nil || one.Annotations["marked"] != "yes" || one.Kind != "ConfigMap" {
		t.Errorf("the object of one is %v with %v, want it transformed and with its kind", one, err)
	}
	one.Labels["name"] = "changed"
	if again, _ := get("one"); again.Labels["name"] != "a" {
		t.Error("a change of what was read changes the cache")
	}
	two, err := get("two")
	if err != nil || two.Annotations != nil {
		t.Errorf("the object of two is %v with %v, want it as it is", two, err)
	}
	two.Labels["name"] = "changed"
	if again, _ := get("two"); again.Labels["name"] != "changed" {
		t.Error("UnsafeDisableDeepCopy copies")
	}
	if _, err := get("three"); err == nil || apierrors.IsNotFound(err) {
		t.Errorf("a read of a namespace that is not cached gives %v, want an error that says so", err)
	}
	if err := c.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("three")); err == nil {
		t.Error("a list of a namespace that is not cached succeeds")
	}
}

func TestCache_ListsByIndexesWithinLimits(t *testing.T) {
	_, c, cl := started(t, cache.Options{}, configMap("one", "a", map[string]string{"x": "1", "y": "1"}),
		configMap("one", "b", map[string]string{"x": "1", "y": "2"}), configMap("two", "c", map[string]string{"x": "1", "y": "1"}))
	for _, field := range []string{"x", "y"} {
		if err := c.IndexField(t.Context(), &corev1.ConfigMap{}, field, func(obj client.Object) []string {
			return []string{obj.(*corev1.ConfigMap).Data[field]}
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, q := range []struct {
		want string
		opts []client.ListOption
	}{
		{"one/a one/b two/c", []client.ListOption{client.MatchingFields{"x": "1"}}},
		{"one/a one/b", []client.ListOption{client.MatchingFields{"x": "1"}, client.InNamespace("one")}},
		{"one/a two/c", []client.ListOption{client.MatchingFields{"x": "1", "y": "1"}}},
		{"two/c", []client.ListOption{client.MatchingFields{"x": "1", "y": "1"}, client.InNamespace("two")}},
		{"", []client.ListOption{client.MatchingFields{"x": "2"}}},
		{"one/b", []client.ListOption{client.MatchingFields{"x": "1"}, client.MatchingLabels{"name": "b"}, client.Limit(1)}},
	} {
		if got := names(t, cl, q.opts...); got != q.want {
			t.Errorf("%v: got %q, want %q", q.opts, got, q.want)
		}
	}
	var list corev1.ConfigMapList
	if err := c.List(t.Context(), &list, client.Limit(2)); err != nil || len(list.Items) != 2 || list.Continue == "" {
		t.Errorf("a limit of 2 gives %d objects and %v", len(list.Items), err)
	}
	for name, opt := range map[string]client.ListOption{"a field without an index": client.MatchingFields{"z": "1"}, "a continuation": client.Continue("x")} {
		if err := c.List(t.Context(), &list, opt); err == nil {
			t.Errorf("%s is no error", name)
		}
	}
}

func TestCache_ObjectThatCannotBeDecodedAffectsOnlyItself(t *testing.T) {
	server, c, _ := started(t, cache.Options{}, configMap("one", "good", nil), configMap("one", "bad", nil))
	if err := server.Corrupt(configMaps, types.NamespacedName{Namespace: "one", Name: "bad"}); err != nil {
		t.Fatal(err)
	}
	if got := names(t, c); got != "one/good" {
		t.Errorf("the list has %q, want what can be decoded", got)
	}
	err := c.Get(t.Context(), types.NamespacedName{Namespace: "one", Name: "bad"}, &corev1.ConfigMap{})
	if _, ok := errors.AsType[*kube.UndecodableError](err); !ok {
		t.Errorf("a read of the bad object gives %v, want why it cannot be decoded", err)
	}
}

func TestCache_ErrorsAreControllerRuntimes(t *testing.T) {
	server := simtest.New(t, nil)
	key := types.NamespacedName{Namespace: "one", Name: "none"}
	c, err := NewCache(server.Config, cache.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := errors.AsType[*cache.ErrCacheNotStarted](c.Get(t.Context(), key, &corev1.ConfigMap{})); !ok {
		t.Error("a read before the start is no ErrCacheNotStarted")
	}
	run(t, c)
	if err := c.Start(t.Context()); err == nil {
		t.Error("a second start succeeds")
	}
	if err := c.Get(t.Context(), key, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("a read of nothing gives %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Get(gone, key, &corev1.Secret{}); !apierrors.IsTimeout(err) {
		t.Errorf("a read whose context ends before the sync gives %v, want a timeout", err)
	}
	strange := &unstructured.Unstructured{}
	strange.SetGroupVersionKind(schema.GroupVersionKind{Group: "no.such", Version: "v1", Kind: "Group"})
	if err := c.Get(t.Context(), key, strange); err == nil {
		t.Error("a read of a kind that is not served succeeds")
	}
	forbidding, err := NewCache(server.Config, cache.Options{ReaderFailOnMissingInformer: true})
	if err != nil {
		t.Fatal(err)
	}
	run(t, forbidding)
	if _, ok := errors.AsType[*cache.ErrResourceNotCached](forbidding.Get(t.Context(), key, &corev1.ConfigMap{})); !ok {
		t.Error("a read without an informer is no ErrResourceNotCached")
	}
	if _, err := NewCache(server.Config, cache.Options{ByObject: map[client.Object]cache.ByObject{
		&corev1.Namespace{}: {Namespaces: map[string]cache.Config{"one": {}}},
	}}); err == nil {
		t.Error("namespaces of a cluster-scoped kind are no error")
	}
	if _, err := NewCache(nil, cache.Options{}); err == nil {
		t.Error("a nil configuration is no error")
	}
}

func TestCache_ReadThatStartsAnInformerIsSaidOnce(t *testing.T) {
	_, c, _ := started(t, cache.Options{}, configMap("one", "a", map[string]string{"a": "b"}))
	var said []string
	c.log = funcr.New(func(_, args string) { said = append(said, args) }, funcr.Options{})
	for range 3 {
		names(t, c)
	}
	if len(said) != 2 {
		t.Fatalf("the log has %q, want one line when it starts, and one when it is synced", said)
	}
	for _, line := range said {
		if !strings.Contains(line, "ConfigMap") || !strings.Contains(line, "cache_test.go:") {
			t.Errorf("the log has %q, want the kind and the caller", line)
		}
	}
	if strings.Contains(said[1], `"bytes"=0`) || !strings.Contains(said[1], `"objects"=1`) || !strings.Contains(said[1], `"bytes"=`) {
		t.Errorf("the log has %q, want how many objects there are, and their bytes", said[1])
	}
}

func TestCache_RemovedInformerStopsAndStartsAnew(t *testing.T) {
	_, c, _ := started(t, cache.Options{}, configMap("one", "a", nil))
	first, err := c.GetInformer(t.Context(), &corev1.ConfigMap{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.RemoveInformer(t.Context(), &corev1.ConfigMap{}); err != nil || !first.IsStopped() {
		t.Errorf("the removed informer is stopped: %v, with %v", first.IsStopped(), err)
	}
	added := make(chan string, 1)
	second, err := c.GetInformerForKind(t.Context(), corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	if err != nil || second.IsStopped() {
		t.Fatalf("the new informer is stopped, or %v", err)
	}
	if _, err := second.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { added <- fmt.Sprintf("%T", obj) }}); err != nil {
		t.Fatal(err)
	}
	if got := <-added; got != "*v1.ConfigMap" {
		t.Errorf("the handler is given a %s", got)
	}
}
