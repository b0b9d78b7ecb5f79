// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	discoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

func TestRESTMapper_IsLazyAndLooksAgainForWhatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, fault := 0, errors.New("no server")
		var served []discoveryv2.APIGroupDiscovery
		l := &lazyMapper{load: func() ([]discoveryv2.APIGroupDiscovery, error) {
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
		served = []discoveryv2.APIGroupDiscovery{{
			ObjectMeta: metav1.ObjectMeta{Name: site.Group},
			Versions: []discoveryv2.APIVersionDiscovery{{Version: "v1", Resources: []discoveryv2.APIResourceDiscovery{{
				Resource: "sites", SingularResource: "site", Scope: discoveryv2.ScopeNamespace, ResponseKind: &metav1.GroupVersionKind{Kind: "Site"},
			}}}},
		}}
		find(3, nil)
		time.Sleep(mapperAge - time.Second)
		find(3, nil) // cached
		if kind, err := l.KindFor(schema.GroupVersionResource{Resource: "site"}); err != nil || kind.Kind != "Site" || asked != 3 {
			t.Errorf("site is %v, %v after %d questions, want Site and 3", kind, err, asked)
		}
	})
}

// A server need not have the core group: an aggregated one answers 404 for /api.
// A definition with another scope, or another preferred version of a group, is noticed. While
// discovery fails, what is known stays the answer.
func TestRESTMapper_LooksAgainAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, fault, scope := 0, error(nil), discoveryv2.ScopeNamespace
		l := &lazyMapper{load: func() ([]discoveryv2.APIGroupDiscovery, error) {
			asked++
			return []discoveryv2.APIGroupDiscovery{{
				ObjectMeta: metav1.ObjectMeta{Name: "example.dev"},
				Versions: []discoveryv2.APIVersionDiscovery{{Version: "v1", Resources: []discoveryv2.APIResourceDiscovery{{
					Resource: "sites", SingularResource: "site", Scope: scope, ResponseKind: &metav1.GroupVersionKind{Kind: "Site"},
				}}}},
			}}, fault
		}}
		find := func(wantAsked int, want meta.RESTScopeName) {
			t.Helper()
			mapping, err := l.RESTMapping(schema.GroupKind{Group: "example.dev", Kind: "Site"})
			if err != nil || mapping.Scope.Name() != want || asked != wantAsked {
				t.Errorf("got %v, %v after %d questions, want scope %s and %d", mapping, err, asked, want, wantAsked)
			}
		}
		find(1, meta.RESTScopeNameNamespace)
		scope, fault = discoveryv2.ScopeCluster, errors.New("no server")
		time.Sleep(mapperAge)
		find(2, meta.RESTScopeNameNamespace)
		find(2, meta.RESTScopeNameNamespace) // not for each call
		fault = nil
		time.Sleep(time.Minute)
		find(3, meta.RESTScopeNameRoot)
	})
}

func TestRESTMapper_ServerWithoutTheCoreGroup(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":"example.dev"},`+
			`"versions":[{"version":"v1","resources":[{"resource":"sites","responseKind":{"kind":"Site"},"scope":"Namespaced"}]}]}]}`)
	}))
	defer server.Close()
	mapper, err := newLazyMapper(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "example.dev", Kind: "Site"}); err != nil || mapping.Resource.Resource != "sites" {
		t.Errorf("the mapping is %v (%v), want that of sites", mapping, err)
	}
}
