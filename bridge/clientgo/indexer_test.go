// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/bridge/clientgo"
	"github.com/flyball-dev/flyball/informer"
)

func newFactory(t *testing.T) *informer.SharedInformerFactory {
	t.Helper()
	f, err := informer.NewSharedInformerFactory(&rest.Config{Host: "https://flyball.invalid"}, clientscheme.Scheme, informer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func byV(obj any) ([]string, error) { return []string{obj.(cmap).Data["v"]}, nil }

func names(objects []any) []string {
	var out []string
	for _, obj := range objects {
		out = append(out, obj.(metav1.Object).GetName())
	}
	slices.Sort(out)
	return out
}

func sorted(s []string) []string {
	s = slices.Clone(s)
	slices.Sort(s)
	return s
}

func inNamespace(obj cmap, namespace string) cmap {
	obj.Namespace = namespace
	return obj
}

func TestIndexer_ReadsByKeyAndIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, configMap("a", "1"), configMap("b", "2"), inNamespace(configMap("c", "1"), "test"))
		i := adapt(s, informer.Options{})
		if err := i.AddIndexers(cache.Indexers{"v": byV}); err != nil {
			t.Fatal(err)
		}
		x := i.GetIndexer()
		if _, exists, err := x.GetByKey("prod/a"); exists || err != nil {
			t.Errorf("before the list: %v, %v, want what is not there", exists, err)
		}
		run(t, i)
		synctest.Wait()

		expect(t, "ListKeys", sorted(x.ListKeys()), "prod/a", "prod/b", "test/c")
		expect(t, "List", names(x.List()), "a", "b", "c")
		if obj, exists, err := x.GetByKey("prod/b"); !exists || err != nil || obj.(cmap).Data["v"] != "2" {
			t.Errorf("GetByKey: %v, %v, %v", obj, exists, err)
		}
		if obj, exists, err := x.Get(configMap("a", "old")); !exists || err != nil || obj.(cmap).Data["v"] != "1" {
			t.Errorf("Get: %v, %v, %v", obj, exists, err)
		}
		for _, key := range []string{"prod/z", "z", "a/b/c", ""} {
			if obj, exists, err := x.GetByKey(key); exists || err != nil || obj != nil {
				t.Errorf("GetByKey %q: %v, %v, %v, want nothing and no error", key, obj, exists, err)
			}
		}
		if _, _, err := x.Get("not an object"); err == nil {
			t.Error("Get of what has no key is no error")
		}

		read := func(objects []any, err error) []string {
			t.Helper()
			if err != nil {
				t.Error(err)
			}
			return names(objects)
		}
		expect(t, "ByIndex", read(x.ByIndex("v", "1")), "a", "c")
		expect(t, "ByIndex of the namespace", read(x.ByIndex(cache.NamespaceIndex, "prod")), "a", "b")
		expect(t, "ByIndex of no namespace", read(x.ByIndex(cache.NamespaceIndex, "")))
		expect(t, "Index", read(x.Index("v", configMap("z", "1"))), "a", "c")
		expect(t, "Index as generated listers ask", read(x.Index(cache.NamespaceIndex, &metav1.ObjectMeta{Namespace: "test"})), "c")
		keys, err := x.IndexKeys("v", "1")
		if err != nil {
			t.Error(err)
		}
		expect(t, "IndexKeys", sorted(keys), "prod/a", "test/c")
		expect(t, "ListIndexFuncValues", sorted(x.ListIndexFuncValues("v")), "1", "2")
		expect(t, "ListIndexFuncValues of the namespace", sorted(x.ListIndexFuncValues(cache.NamespaceIndex)), "prod", "test")
		expect(t, "ListIndexFuncValues of no index", x.ListIndexFuncValues("none"))
		if _, err := x.ByIndex("none", "1"); err == nil {
			t.Error("ByIndex of an index that is not there is no error")
		}
		if _, err := x.IndexKeys("none", "1"); err == nil {
			t.Error("IndexKeys of an index that is not there is no error")
		}
		if _, err := x.Index("none", configMap("a", "1")); err == nil {
			t.Error("Index of an index that is not there is no error")
		}
	})
}

func TestIndexer_IndexersCanBeAddedAfterTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, configMap("a", "1"), configMap("b", "2"))
		i := adapt(s, informer.Options{})
		run(t, i)
		synctest.Wait()
		if err := i.AddIndexers(cache.Indexers{"v": byV, "both": func(obj any) ([]string, error) {
			return []string{"all", obj.(cmap).Name}, nil
		}}); err != nil {
			t.Fatal(err)
		}
		s.Modify(configMap("b", "1"))
		synctest.Wait()
		x := i.GetIndexer()
		got, err := x.ByIndex("v", "1")
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "an index over what was there and what came", names(got), "a", "b")
		got, err = x.Index("both", configMap("a", ""))
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "Index by two values, each object once", names(got), "a", "b")

		indexers := x.GetIndexers()
		for _, name := range []string{cache.NamespaceIndex, "v", "both"} {
			if indexers[name] == nil {
				t.Errorf("GetIndexers lacks %q", name)
			}
		}
		if x.AddIndexers(cache.Indexers{"v": byV, "new": byV}) == nil {
			t.Error("an index of a name that is taken is added")
		}
		if x.AddIndexers(cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}) == nil {
			t.Error("a second namespace index is added")
		}
		if x.GetIndexers()["new"] != nil {
			t.Error("of indexers that conflict, some were added")
		}
		delete(indexers, "v")
		if x.GetIndexers()["v"] == nil {
			t.Error("what GetIndexers returns is the indexer's own map")
		}
	})
}

func TestIndexer_IndexFunctionThatFailsCostsItsObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, configMap("a", "1"), configMap("b", "bad"))
		i := adapt(s, informer.Options{})
		if err := i.AddIndexers(cache.Indexers{"v": func(obj any) ([]string, error) {
			if v := obj.(cmap).Data["v"]; v != "bad" {
				return []string{v}, nil
			}
			return nil, errors.New("no value")
		}}); err != nil {
			t.Fatal(err)
		}
		run(t, i)
		synctest.Wait()
		expect(t, "the store", sorted(i.GetStore().ListKeys()), "prod/a", "prod/b")
		expect(t, "the index", i.GetIndexer().ListIndexFuncValues("v"), "1")
		if _, err := i.GetIndexer().Index("v", configMap("z", "bad")); err == nil {
			t.Error("Index of an object that has no value is no error")
		}
	})
}

func TestIndexer_WritesAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, configMap("a", "1"))
		i := adapt(s, informer.Options{})
		run(t, i)
		synctest.Wait()
		x := i.GetStore()
		for what, err := range map[string]error{
			"Add":     x.Add(configMap("z", "1")),
			"Update":  x.Update(configMap("a", "9")),
			"Delete":  x.Delete(configMap("a", "1")),
			"Replace": x.Replace(nil, "9"),
		} {
			if !errors.Is(err, clientgo.ErrReadOnly) {
				t.Errorf("%s: %v, want ErrReadOnly", what, err)
			}
		}
		x.Bookmark("99")
		if err := x.Resync(); err != nil {
			t.Error(err)
		}
		obj, exists, err := x.GetByKey("prod/a")
		if !exists || err != nil || obj.(cmap).Data["v"] != "1" || x.LastStoreSyncResourceVersion() != "1" {
			t.Errorf("after refused writes the store has %v at %q", obj, x.LastStoreSyncResourceVersion())
		}
	})
}

func TestIndexer_GeneratedListerReadsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		labelled := inNamespace(configMap("c", "1"), "test")
		labelled.Labels = map[string]string{"app": "x"}
		s := newServer(t, configMap("a", "1"), configMap("b", "2"), labelled)
		i := adapt(s, informer.Options{})
		run(t, i)
		synctest.Wait()
		lister := corelisters.NewConfigMapLister(i.GetIndexer())
		count := func(objects []*corev1.ConfigMap, err error) int {
			t.Helper()
			if err != nil {
				t.Error(err)
			}
			return len(objects)
		}
		if got := count(lister.List(labels.Everything())); got != 3 {
			t.Errorf("List has %d objects, want 3", got)
		}
		if got := count(lister.List(labels.SelectorFromSet(labels.Set{"app": "x"}))); got != 1 {
			t.Errorf("List by label has %d objects, want 1", got)
		}
		if got := count(lister.ConfigMaps("prod").List(labels.Everything())); got != 2 {
			t.Errorf("List of a namespace has %d objects, want 2", got)
		}
		if obj, err := lister.ConfigMaps("test").Get("c"); err != nil || obj.Name != "c" {
			t.Errorf("Get: %v, %v", obj, err)
		}
		if _, err := lister.ConfigMaps("test").Get("a"); !apierrors.IsNotFound(err) {
			t.Errorf("Get of what is not there: %v, want NotFound", err)
		}
	})
}

func TestIndexer_KeysOfClusterScopeHaveNoSlash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t)
		var node runtime.Object = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
		s.Add(node)
		i := clientgo.NewSharedIndexInformer(informer.New(clientgo.NewListerWatcher[*corev1.Node](s), corev1.SchemeGroupVersion.WithKind("Node"), informer.Options{}), clientgo.Options{})
		run(t, i)
		synctest.Wait()
		expect(t, "ListKeys", i.GetStore().ListKeys(), "n1")
		if _, exists, err := i.GetStore().GetByKey("n1"); !exists || err != nil {
			t.Errorf("GetByKey: %v, %v", exists, err)
		}
		objects, err := i.GetIndexer().ByIndex(cache.NamespaceIndex, "")
		if err != nil {
			t.Fatal(err)
		}
		expect(t, "those of no namespace", names(objects), "n1")
	})
}
