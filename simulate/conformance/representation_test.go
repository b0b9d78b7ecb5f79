// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/state"
)

var configMapKind = corev1.SchemeGroupVersion.WithKind("ConfigMap")

// metadataOf is what a metadata informer has: "a@2 b@1", by name and label.
func metadataOf(i *informer.SharedInformer[*metav1.PartialObjectMetadata]) string {
	var names []string
	for o := range i.Lister().All() {
		names = append(names, o.Name+"@"+o.Labels["v"])
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func labelled(name, value string) *corev1.ConfigMap {
	cm := configMap(name, value)
	cm.Labels = map[string]string{"v": value}
	return cm
}

// A kind without a Go type, and metadata alone, live as any informer does.
func TestInformer_RepresentationsLive(t *testing.T) {
	for _, paged := range []bool{false, true} {
		simulated(t, informer.Options{PagedLists: paged, PageSize: 1}, func(t *testing.T, w *world) {
			loose := informer.ForKind(w.factory, widgetKind.GroupVersionKind)
			byResource := informer.ForResource(w.factory, widgets.WithVersion("v1"))
			alone := informer.ForMetadata(w.factory, configMapKind)
			w.Store(newWidget("a", "1"), newWidget("b", "1"), labelled("a", "1"), labelled("b", "1"))
			start(w)
			w.Store(newWidget("a", "2"), labelled("a", "2"))
			w.Delete(widgets, "b")
			w.Delete(configMaps, "b")
			for _, i := range []*informer.SharedInformer[*unstructured.Unstructured]{loose, byResource} {
				got, err := i.Lister().Get(key("a"))
				w.Must(err)
				value, _, _ := unstructured.NestedString(got.Object, "spec", "value")
				if value != "2" || got.GetKind() != "Widget" || i.Snapshot().Objects != 1 {
					t.Errorf("got %v among %d, want a=2 of kind Widget alone", got.Object, i.Snapshot().Objects)
				}
			}
			if got, want := metadataOf(alone), "a@2"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if got, _ := alone.Lister().Get(key("a")); got.Kind != "ConfigMap" || got.APIVersion != "v1" {
				t.Errorf("got kind %s of %s, want ConfigMap of v1", got.Kind, got.APIVersion)
			}
		})
	}
}

// What is watched in full feeds the metadata informer too.
func TestInformer_MetadataSharesTheFullWatch(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		alone := informer.ForMetadata(w.factory, configMapKind)
		full := informer.For[*corev1.ConfigMap](w.factory)
		w.Store(labelled("a", "1"), labelled("b", "1"))
		start(w)
		w.Store(labelled("a", "2"), labelled("c", "1"))
		w.Delete(configMaps, "b")
		if got, want := metadataOf(alone), "a@2 c@1"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if lists, watches := w.lists(configMaps), w.Watches(configMaps); lists != 1 || watches != 1 {
			t.Errorf("got %d lists and %d open watches, want one of each for both", lists, watches)
		}
		s := stateOf(alone)
		if s.SharedWith != "*v1.ConfigMap in all namespaces" || s.State != state.Live || !s.Synced {
			t.Errorf("got %s, want Live by the watch of *v1.ConfigMap", s)
		}
		a, err := alone.Lister().Get(key("a"))
		w.Must(err)
		b, err := full.Lister().Get(key("a"))
		w.Must(err)
		a.Labels["probe"] = "x" // as nobody may
		if b.Labels["probe"] != "x" {
			t.Error("the labels are held twice; the two objects were to share them")
		}
		delete(a.Labels, "probe")
	})
}

// A metadata informer that comes later is fed without a list, and sees what was
// there and what comes.
func TestInformer_MetadataJoinsAWatchThatIsOpen(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		full := informer.For[*corev1.ConfigMap](w.factory)
		h := told(w, full)
		w.Store(labelled("a", "1"), labelled("b", "1"))
		start(w)
		h.next()
		other := labelled("x", "1")
		other.Namespace = "other"
		w.Store(labelled("a", "2"), other)
		alone := informer.ForMetadata(w.factory, configMapKind)
		mine := informer.ForMetadata(w.factory, configMapKind, informer.Scope{Namespaces: []string{"ns"}})
		selected := informer.ForMetadata(w.factory, configMapKind, informer.Scope{LabelSelector: "v=2"})
		pass(time.Second)
		w.Store(labelled("c", "1"))
		w.Delete(configMaps, "b")
		if got, want := metadataOf(alone), "a@2 c@1 x@1"; got != want {
			t.Errorf("all: got %q, want %q", got, want)
		}
		if got, want := metadataOf(mine), "a@2 c@1"; got != want {
			t.Errorf("of one namespace: got %q, want %q", got, want)
		}
		if got, want := metadataOf(selected), "a@2"; got != want {
			t.Errorf("by label: got %q, want %q", got, want)
		}
		if lists := w.lists(configMaps); lists != 2 {
			t.Errorf("got %d lists, want one for the full objects and one for another selection", lists)
		}
		if got, want := h.next(), "updated a=2, added x=1, added c=1, deleted b=1"; got != want {
			t.Errorf("the full informer's handler was told %q, want %q: the interruption changed what it sees", got, want)
		}
		holds(t, full, "a=2 c=1 x=1", "the full objects")
	})
}

// What is broken behind the metadata is no trouble to who reads the metadata.
func TestInformer_CorruptionSparesMetadata_I8(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		full, alone := informer.For[*corev1.ConfigMap](w.factory), informer.ForMetadata(w.factory, configMapKind)
		w.Store(labelled("a", "1"), labelled("bad", "1"))
		w.Must(w.Corrupt(configMaps, key("bad")))
		start(w)
		if got, want := metadataOf(alone), "a@1 bad@1"; got != want {
			t.Errorf("listed: got %q, want %q", got, want)
		}
		w.Must(w.Corrupt(configMaps, key("a")))
		pass(time.Second)
		late := informer.ForMetadata(w.factory, configMapKind, informer.Scope{Namespaces: []string{"ns"}})
		pass(time.Second)
		for name, i := range map[string]*informer.SharedInformer[*metav1.PartialObjectMetadata]{"watched": alone, "joined later": late} {
			if got, want := metadataOf(i), "a@1 bad@1"; got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
			if n := i.Snapshot().Undecodable; n != 0 {
				t.Errorf("%s: %d objects cannot be decoded, want none", name, n)
			}
		}
		if n := full.Snapshot().Undecodable; n != 2 {
			t.Errorf("in full %d objects cannot be decoded, want both: the test corrupts nothing", n)
		}
		w.Delete(configMaps, "bad")
		if got, want := metadataOf(alone), "a@1"; got != want {
			t.Errorf("deleted: got %q, want %q", got, want)
		}
	})
}

// A transform may take metadata away, so its informer's objects are not shared.
func TestInformer_TransformedObjectsAreNotShared(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		full, alone := informer.For[*corev1.ConfigMap](w.factory), informer.ForMetadata(w.factory, configMapKind)
		w.Must(full.SetTransform(func(cm *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			cm.Labels = nil
			return cm, nil
		}))
		w.Store(labelled("a", "1"))
		start(w)
		if got, want := metadataOf(alone), "a@1"; got != want {
			t.Errorf("got %q, want %q: the transform of one informer shows in another", got, want)
		}
		if s := stateOf(alone); s.SharedWith != "" {
			t.Errorf("got %s, want a watch of its own", s)
		}
	})
}

// A metadata informer that was there first keeps its watch until that ends, and
// shares the other's from then on.
func TestInformer_MetadataMovesOverWhenItsOwnWatchEnds(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		alone := informer.ForMetadata(w.factory, configMapKind)
		w.Store(labelled("a", "1"))
		start(w)
		full := informer.For[*corev1.ConfigMap](w.factory)
		pass(time.Second)
		if n := w.Watches(configMaps); n != 2 || stateOf(alone).SharedWith != "" {
			t.Errorf("got %d watches and %s, want two until one ends", n, stateOf(alone))
		}
		pass(12 * time.Minute)
		w.Store(labelled("a", "2"), labelled("b", "1"))
		if n := w.Watches(configMaps); n != 1 || stateOf(alone).SharedWith == "" {
			t.Errorf("got %d watches and %s, want one for both", n, stateOf(alone))
		}
		if got, want := metadataOf(alone), "a@2 b@1"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		holds(t, full, "a=2 b=1", "the full objects")
		if n := w.lists(configMaps); n != 2 {
			t.Errorf("got %d lists, want one for each informer", n)
		}
	})
}

// What befalls the watch befalls the taps as well: a compaction, and a server
// that was restored from a backup.
func TestInformer_SharedWatchSurvivesWhatAWatchDoes(t *testing.T) {
	simulated(t, informer.Options{}, func(t *testing.T, w *world) {
		full, alone := informer.For[*corev1.ConfigMap](w.factory), informer.ForMetadata(w.factory, configMapKind)
		w.Store(labelled("a", "1"), labelled("b", "1"))
		start(w)
		w.Mute(configMaps)
		w.Store(labelled("a", "2"), labelled("c", "1"))
		w.Delete(configMaps, "b")
		w.Compact()
		w.CloseWatches(configMaps)
		pass(5 * time.Minute)
		if got, want := metadataOf(alone), "a@2 c@1"; got != want {
			t.Errorf("after a compaction: got %q, want %q; %s", got, want, stateOf(alone))
		}
		w.Store(labelled("a", "3"), labelled("d", "1"))
		w.Rewind(2)
		pass(10 * time.Minute)
		if got, want := metadataOf(alone), "a@2 c@1"; got != want {
			t.Errorf("after a restore: got %q, want %q; %s", got, want, stateOf(alone))
		}
		holds(t, full, "a=2 c=1", "the full objects")
		if s := stateOf(alone); s.SharedWith == "" {
			t.Errorf("got %s, want it to share the watch to the end", s)
		}
	})
}
