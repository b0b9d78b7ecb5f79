// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kinds_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

func TestRegistry_ServesTheVersionsOfAResource(t *testing.T) {
	r := kinds.NewRegistry()
	gv1, gv2 := schema.GroupVersion{Group: "test.example.com", Version: "v1"}, schema.GroupVersion{Group: "test.example.com", Version: "v2"}
	of := func(gv schema.GroupVersion) *kinds.Kind {
		return kinds.Kind{GroupVersionKind: gv.WithKind("Widget"), Namespaced: true}.Completed()
	}
	one, two := of(gv1), of(gv2)
	widgets := one.GroupResource()
	if r.AnswersFor(gv1) || r.Lookup(gv1, "widgets") != nil {
		t.Error("a kind is served before it is installed")
	}
	r.Install(kinds.FamilyOf(one, two))
	if r.Lookup(gv1, "widgets") != one || r.Lookup(gv2, "widgets") != two || r.Kind(gv2.WithKind("Widget")) != two || r.Stored(widgets) != one {
		t.Error("a version is not found, or the first is not the one that is stored")
	}
	if one.Sibling(gv2) != two || one.Sibling(schema.GroupVersion{Group: gv1.Group, Version: "v3"}) != nil {
		t.Error("a kind does not know its other versions")
	}
	only := of(gv2)
	r.Install(kinds.FamilyOf(only))
	if r.Lookup(gv1, "widgets") != nil || r.Kind(gv1.WithKind("Widget")) != nil || r.Lookup(gv2, "widgets") != only {
		t.Error("a version that is not installed again is served still")
	}
	if r.Remove(widgets); r.Lookup(gv2, "widgets") != nil || r.AnswersFor(gv2) || slices.Contains(r.Resources(), widgets) {
		t.Error("a removed kind is served still")
	}
}

// What is stored as an Event of one group is read as one of the other.
func TestKind_EventsComeBackFromStorage(t *testing.T) {
	r := kinds.NewRegistry()
	older, newer := r.Lookup(schema.GroupVersion{Version: "v1"}, "events"), r.Lookup(schema.GroupVersion{Group: "events.k8s.io", Version: "v1"}, "events")
	given, err := object.ObjectOf(&corev1.Event{Message: "m", InvolvedObject: corev1.ObjectReference{Name: "p"}, ReportingController: "c"})
	if err != nil {
		t.Fatal(err)
	}
	read, err := newer.FromStorage(given)
	if err != nil || read.Fields["note"] != "m" || read.Fields["message"] != nil {
		t.Fatalf("read as %v (%v), want the note m", read, err)
	}
	kept, err := newer.ToStorage(read)
	if err != nil || kept.Fields["message"] != "m" || kept.Fields["note"] != nil || older.Family.Storage != older {
		t.Errorf("stored as %v (%v), want the message m", kept, err)
	}
}

func TestKind_FieldLabelsThatItSupports(t *testing.T) {
	r, v1 := kinds.NewRegistry(), schema.GroupVersion{Version: "v1"}
	for _, c := range []struct {
		kind  *kinds.Kind
		label string
		want  bool
	}{
		{r.Lookup(v1, "pods"), "metadata.name", true}, {r.Lookup(v1, "pods"), "spec.nodeName", true}, {r.Lookup(v1, "pods"), "spec.color", false},
		{r.Lookup(v1, "configmaps"), "spec.nodeName", false}, {r.Lookup(v1, "configmaps"), "metadata.namespace", true},
		{kinds.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "g.example.com", Version: "v1", Kind: "K"}, Selectable: []string{".spec.color"}}.Completed(), "spec.color", true},
		{kinds.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "g.example.com", Version: "v1", Kind: "K"}}.Completed(), "spec.color", false},
	} {
		if _, _, err := c.kind.FieldLabel(c.label, "x"); (err == nil) != c.want {
			t.Errorf("%s: %s: got %v, want it supported: %v", c.kind.Kind, c.label, err, c.want)
		}
	}
}
