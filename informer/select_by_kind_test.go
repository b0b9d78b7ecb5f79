// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer/listwatch"
)

// A selector by kind is that of informers without a scope, and of scopes with options alone.
func TestFactory_SelectorOfAKindIsThatOfInformersWithoutAScope(t *testing.T) {
	for _, c := range []struct {
		scopes []Scope
		want   listwatch.Scope
	}{
		{nil, listwatch.Scope{Namespace: "prod", LabelSelector: "shard=a"}},
		{[]Scope{{Fields: []string{"data"}}}, listwatch.Scope{Namespace: "prod", LabelSelector: "shard=a"}},
		{[]Scope{{}}, listwatch.Scope{}},
		{[]Scope{{LabelSelector: "app=web"}}, listwatch.Scope{LabelSelector: "app=web"}},
	} {
		f, err := NewSharedInformerFactory(&rest.Config{Host: "http://memory"}, clientscheme.Scheme, Options{
			Namespaces: []string{"prod"}, SelectByKind: map[schema.GroupKind]string{{Kind: "ConfigMap"}: "shard=a"},
		})
		if err != nil {
			t.Fatal(err)
		}
		selected, other := For[*corev1.ConfigMap](f, c.scopes...), For[*corev1.Secret](f)
		if got := selected.Snapshot().Scopes; len(got) != 1 || got[0].Scope != c.want {
			t.Errorf("For with %+v watches %+v, want %+v", c.scopes, got, c.want)
		}
		if got := other.Snapshot().Scopes; len(got) != 1 || got[0].Scope != (listwatch.Scope{Namespace: "prod"}) {
			t.Errorf("another kind is watched in %+v", got)
		}
	}
}
