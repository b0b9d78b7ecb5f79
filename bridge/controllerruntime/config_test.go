// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

func label(name string) labels.Selector { return labels.SelectorFromSet(labels.Set{"from": name}) }

func TestPlan_DefaultsHaveControllerRuntimesOrder(t *testing.T) {
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	inNamespace := fields.OneTermEqualSelector("metadata.namespace", "one")
	for _, c := range []struct {
		name       string
		opts       cache.Options
		by         cache.ByObject
		cluster    bool
		want       string
		resync     time.Duration
		uncoveredX bool
	}{
		{name: "nothing", want: "[] ", resync: 10 * time.Hour},
		{
			name: "the defaults of all", opts: cache.Options{DefaultLabelSelector: label("all"), SyncPeriod: new(time.Minute)},
			want: "[] from=all", resync: time.Minute,
		},
		{
			name: "the kind before the defaults", opts: cache.Options{DefaultLabelSelector: label("all"), SyncPeriod: new(time.Minute)},
			by: cache.ByObject{Label: label("kind"), SyncPeriod: new(time.Hour)}, want: "[] from=kind", resync: time.Hour,
		},
		{
			name: "a namespace of the kind before all, then the kind, the default of the namespace, all",
			opts: cache.Options{
				DefaultLabelSelector: label("all"), SyncPeriod: new(time.Duration(0)),
				DefaultNamespaces: map[string]cache.Config{"one": {FieldSelector: inNamespace, LabelSelector: label("default")}},
			},
			by: cache.ByObject{
				Label:      label("kind"),
				Namespaces: map[string]cache.Config{"one": {}, "two": {LabelSelector: label("namespace")}},
			},
			want: "[one] from=kind metadata.namespace=one, [two] from=namespace", uncoveredX: true,
		},
		{
			name: "the default namespaces",
			opts: cache.Options{DefaultLabelSelector: label("all"), DefaultNamespaces: map[string]cache.Config{"one": {}, "two": {LabelSelector: label("two")}}},
			want: "[one] from=all, [two] from=two", resync: 10 * time.Hour, uncoveredX: true,
		},
		{
			name: "no namespaces in spite of the default", opts: cache.Options{DefaultNamespaces: map[string]cache.Config{"one": {}}},
			by: cache.ByObject{Namespaces: map[string]cache.Config{}}, want: "[] ", resync: 10 * time.Hour,
		},
		{
			name: "a cluster-scoped kind has no namespaces", opts: cache.Options{DefaultNamespaces: map[string]cache.Config{"one": {}}},
			cluster: true, want: "[] ", resync: 10 * time.Hour,
		},
		{
			name: "all other namespaces", opts: cache.Options{DefaultNamespaces: map[string]cache.Config{"": {LabelSelector: label("rest")}, "one": {}}},
			want: "[] from=rest metadata.namespace!=one, [one] ", resync: 10 * time.Hour,
		},
		{
			name: "a field that names the namespace", opts: cache.Options{DefaultFieldSelector: inNamespace},
			want: "[one]  metadata.namespace=one", resync: 10 * time.Hour,
		},
	} {
		completed := config{Options: c.opts, byKind: map[schema.GroupVersionKind]cache.ByObject{kind: c.by}}
		p, got := completed.planOf(kind, !c.cluster), ""
		for _, s := range p.scopes() {
			if got != "" {
				got += ", "
			}
			got += fmt.Sprint(s.Namespaces, " ", s.LabelSelector)
			if s.FieldSelector != "" {
				got += " " + s.FieldSelector
			}
		}
		if got != c.want || p.resync() != c.resync || p.covers("x") == c.uncoveredX {
			t.Errorf("%s: watched is %q, resynced each %s, a read of x is allowed: %v; want %q, %s, %v", c.name, got, p.resync(), p.covers("x"), c.want, c.resync, !c.uncoveredX)
		}
	}
}

// controller-runtime's own transform, wherever it is compiled, is an option of the cache; others
// with its name are not.
func TestPlan_StripIsAnOptionOfTheCache(t *testing.T) {
	strip := cache.TransformStripManagedFields()
	own := TransformStripManagedFields()
	for name, c := range map[string]struct {
		always         bool
		of             []toolscache.TransformFunc // by namespace
		stripped, left bool
	}{
		"none, kept":            {false, []toolscache.TransformFunc{nil}, false, false},
		"none, not kept":        {true, []toolscache.TransformFunc{nil}, true, false},
		"strip":                 {false, []toolscache.TransformFunc{strip}, true, false},
		"strip of one, kept":    {false, []toolscache.TransformFunc{strip, nil}, false, true},
		"strip of one":          {true, []toolscache.TransformFunc{strip, nil}, true, false},
		"one of that name":      {false, []toolscache.TransformFunc{own}, false, true},
		"strip and of a user's": {true, []toolscache.TransformFunc{strip, own}, true, true},
	} {
		p := plan{namespaces: map[string]cache.Config{}}
		for i, f := range c.of {
			p.namespaces[string(rune('a'+i))] = cache.Config{Transform: f}
		}
		if got := p.strip(c.always); got != c.stripped || p.transforms() != c.left {
			t.Errorf("%s: stripped %v and with a transform %v, want %v and %v", name, got, p.transforms(), c.stripped, c.left)
		}
	}
}

func TransformStripManagedFields() toolscache.TransformFunc {
	return func(in any) (any, error) { return in, nil }
}
