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
