// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package write

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// oneObject is a Store of one object. It records what is done to it.
type oneObject struct {
	held *object.Object
	done []string
}

func (s *oneObject) Put(_ schema.GroupResource, obj *object.Object) *object.Object {
	s.held, s.done = obj, append(s.done, "put")
	return obj
}

func (s *oneObject) Remove(schema.GroupResource, types.NamespacedName) *object.Object {
	defer func() { s.held = nil }()
	s.done = append(s.done, "remove")
	return s.held
}

func held(gvk schema.GroupVersionKind, edit func(fields map[string]any)) *object.Object {
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	fields := map[string]any{
		"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{"namespace": "default", "name": "a", "uid": "u", "resourceVersion": "7", "generation": int64(1)},
		"spec":     map[string]any{}, "status": map[string]any{},
	}
	edit(fields)
	return &object.Object{Fields: fields}
}

func TestDelete_RemovesOrMarks_S11(t *testing.T) {
	registry := kinds.NewRegistry()
	pod, maps := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	onNode := func(f map[string]any) { f["spec"].(map[string]any)["nodeName"] = "n" }
	kept := func(f map[string]any) { f["metadata"].(map[string]any)["finalizers"] = []any{"a.b/c"} }
	for _, c := range []struct {
		name       string
		gvk        schema.GroupVersionKind
		edit       func(map[string]any)
		opts       metav1.DeleteOptions
		done       string
		removed    bool
		finalizers string
	}{
		{"nothing keeps it", maps, func(map[string]any) {}, metav1.DeleteOptions{}, "[remove]", true, "[]"},
		{"a finalizer keeps it", maps, kept, metav1.DeleteOptions{}, "[put]", false, "[a.b/c]"},
		{"dependents first", maps, func(map[string]any) {}, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}, "[put]", false, "[foregroundDeletion]"},
		//lint:ignore SA1019 clients still send it
		{"dependents stay", maps, func(map[string]any) {}, metav1.DeleteOptions{OrphanDependents: new(true)}, "[put]", false, "[orphan]"},
		{"a dry run", maps, func(map[string]any) {}, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, "[]", true, "[]"},
		{"a dry run of a mark", maps, kept, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, "[]", false, "[a.b/c]"},
		{"a Pod that runs nowhere", pod, func(map[string]any) {}, metav1.DeleteOptions{}, "[put remove]", true, "[]"},
		{"a Pod on a node", pod, onNode, metav1.DeleteOptions{}, "[put]", false, "[]"},
		{"a Pod that has no time", pod, onNode, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, "[put remove]", true, "[]"},
	} {
		store := &oneObject{held: held(c.gvk, c.edit)}
		obj, removed, err := Delete(store, registry.Kind(c.gvk), store.held, &c.opts)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := fmt.Sprint(store.done); got != c.done || removed != c.removed {
			t.Errorf("%s: did %s, removed %t; want %s, %t", c.name, got, removed, c.done, c.removed)
		}
		if got := fmt.Sprint(obj.Meta().GetFinalizers()); got != c.finalizers {
			t.Errorf("%s: finalizers are %s, want %s", c.name, got, c.finalizers)
		}
		if marked := !object.Unset(obj.Meta().GetDeletionTimestamp()); marked == (removed && c.gvk == maps) {
			t.Errorf("%s: the answer is marked: %t", c.name, marked)
		}
	}
}

func TestDelete_HoldsPreconditions_S8(t *testing.T) {
	gvk := schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	kind := kinds.NewRegistry().Kind(gvk)
	for _, only := range []metav1.Preconditions{{UID: new(types.UID("other"))}, {ResourceVersion: new("6")}} {
		store := &oneObject{held: held(gvk, func(map[string]any) {})}
		if _, _, err := Delete(store, kind, store.held, &metav1.DeleteOptions{Preconditions: &only}); !apierrors.IsConflict(err) || store.held == nil {
			t.Errorf("%v: got %v with %d changes, want a conflict and none", only, err, len(store.done))
		}
	}
}
