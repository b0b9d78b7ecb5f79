// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"
)

func TestRESTMapper_IsLazyAndLooksAgainForWhatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, fault := 0, errors.New("no server")
		var served []*restmapper.APIGroupResources
		l := &lazyMapper{load: func() ([]*restmapper.APIGroupResources, error) {
			asked++
			return served, fault
		}}
		site := schema.GroupKind{Group: "example.dev", Kind: "Site"}
		find := func(wantAsked int, want error) {
			t.Helper()
			mapping, err := l.RESTMapping(site)
			switch {
			case asked != wantAsked:
				t.Errorf("discovery was asked %d times, want %d", asked, wantAsked)
			case want == nil && (err != nil || mapping.Resource.Resource != "sites" || mapping.Scope.Name() != meta.RESTScopeNameNamespace):
				t.Errorf("the kind is %v, %v, want sites in namespaces", mapping, err)
			case want != nil && !errors.Is(err, want) && !(meta.IsNoMatchError(want) && meta.IsNoMatchError(err)):
				t.Errorf("the error is %v, want %v", err, want)
			}
		}
		none := &meta.NoKindMatchError{GroupKind: site}
		find(1, fault) // after an error the next call requests discovery again
		fault = nil
		find(2, none)
		find(2, none) // not within a second
		time.Sleep(mapperPause)
		served = []*restmapper.APIGroupResources{{
			Group:              metav1.APIGroup{Name: site.Group, Versions: []metav1.GroupVersionForDiscovery{{Version: "v1"}}},
			VersionedResources: map[string][]metav1.APIResource{"v1": {{Name: "sites", SingularName: "site", Kind: "Site", Namespaced: true}}},
		}}
		find(3, nil)
		time.Sleep(time.Hour)
		find(3, nil) // cached
		if kind, err := l.KindFor(schema.GroupVersionResource{Resource: "site"}); err != nil || kind.Kind != "Site" || asked != 3 {
			t.Errorf("site is %v, %v after %d questions, want Site and 3", kind, err, asked)
		}
	})
}
