// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	discoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate"
)

const aggregated = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// tells is what a server answers to one request.
func tells(s *simulate.Server, method, path, accept string) *httptest.ResponseRecorder {
	r, w := httptest.NewRequest(method, path, strings.NewReader("{}")), httptest.NewRecorder()
	r.Header.Set("Accept", accept)
	s.ServeHTTP(w, r)
	return w
}

// read decodes an answer that has to be a 200.
func read[T any](t *testing.T, s *simulate.Server, path, accept string) (out T) {
	t.Helper()
	w := tells(s, http.MethodGet, path, accept)
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil || w.Code != http.StatusOK {
		t.Fatalf("GET %s: %d %s (%v)", path, w.Code, w.Body, err)
	}
	return out
}

// discovered is all groups, the oldest one first.
func discovered(t *testing.T, s *simulate.Server) []discoveryv2.APIGroupDiscovery {
	t.Helper()
	var out []discoveryv2.APIGroupDiscovery
	for _, path := range []string{"/api", "/apis"} {
		out = append(out, read[discoveryv2.APIGroupDiscoveryList](t, s, path, "application/json"+aggregated).Items...)
	}
	return out
}

// served reports whether a verb can be asked for at a path: whatever comes of
// it, it is not that there is no such thing.
func served(s *simulate.Server, verb, path string) bool {
	methods := map[string]string{"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE", "deletecollection": "DELETE"}
	method := methods[verb]
	if method == "" {
		method = http.MethodGet
	}
	if verb == "watch" {
		path += "?watch=true&timeoutSeconds=1&resourceVersion=none"
	}
	w := tells(s, method, path, "application/json")
	var status metav1.Status
	_ = json.Unmarshal(w.Body.Bytes(), &status)
	missing := w.Code == http.StatusNotFound && (status.Details == nil || status.Details.Name == "")
	return !missing && w.Code != http.StatusMethodNotAllowed
}

func TestServer_TellsOfJustTheVerbsThatItServes_S18(t *testing.T) {
	s := simulate.New(simulate.Options{Kinds: []simulate.Kind{{GroupVersionKind: schema.GroupVersionKind{Group: "test.example.com", Version: "v1", Kind: "Widget"}, Namespaced: true}}})
	verbs := []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	for _, group := range discovered(t, s) {
		for _, version := range group.Versions {
			prefix := "/apis/" + group.Name + "/" + version.Version
			if group.Name == "" {
				prefix = "/api/" + version.Version
			}
			for _, resource := range version.Resources {
				all := prefix + "/" + resource.Resource
				if resource.Scope == discoveryv2.ScopeNamespace {
					all = prefix + "/namespaces/ns/" + resource.Resource
				}
				for _, verb := range verbs {
					path := all
					if slices.Contains([]string{"get", "update", "patch", "delete"}, verb) {
						path += "/x"
					}
					if got, want := served(s, verb, path), slices.Contains(resource.Verbs, verb); got != want {
						t.Errorf("%s %s: served %t, told of %t", verb, path, got, want)
					}
				}
				for _, sub := range resource.Subresources {
					for _, verb := range []string{"create", "get", "patch", "update"} {
						if got, want := served(s, verb, all+"/x/"+sub.Subresource), slices.Contains(sub.Verbs, verb); got != want {
							t.Errorf("%s %s/%s: served %t, told of %t", verb, all, sub.Subresource, got, want)
						}
					}
				}
			}
		}
	}
}

// What clients of different ages ask for says the same.
func TestServer_AllFormsOfDiscoverySayTheSame_S18(t *testing.T) {
	s := simulate.New(simulate.Options{})
	var groups []string
	for _, group := range discovered(t, s)[1:] {
		groups = append(groups, group.Name)
		old := read[metav1.APIGroup](t, s, "/apis/"+group.Name, "")
		for i, version := range group.Versions {
			if old.Versions[i].Version != version.Version || old.PreferredVersion != old.Versions[0] {
				t.Errorf("%s: %+v, want the versions %+v and the first preferred", group.Name, old, group.Versions)
			}
			var got, want []string
			for _, r := range read[metav1.APIResourceList](t, s, "/apis/"+old.Versions[i].GroupVersion, "").APIResources {
				got = append(got, r.Name)
			}
			for _, r := range version.Resources {
				want = append(want, r.Resource)
				for _, sub := range r.Subresources {
					want = append(want, r.Resource+"/"+sub.Subresource)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: got %v, want %v", old.Versions[i].GroupVersion, got, want)
			}
		}
	}
	var old []string
	for _, group := range read[metav1.APIGroupList](t, s, "/apis", "").Groups {
		old = append(old, group.Name)
	}
	if !slices.Equal(old, groups) {
		t.Errorf("groups are %v, want %v", old, groups)
	}
}

func TestServer_TellsOfAKindFromTheMomentItIsThere_S18(t *testing.T) {
	s := simulate.New(simulate.Options{})
	widget := simulate.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "zoo.example.com", Version: "v1beta1", Kind: "Widget"}, Namespaced: true}
	before := tells(s, http.MethodGet, "/apis", "application/json"+aggregated).Header().Get("ETag")
	if w := tells(s, http.MethodGet, "/apis/zoo.example.com/v1beta1", ""); w.Code != http.StatusNotFound || w.Body.String() != "404 page not found\n" {
		t.Errorf("got %d %q for a group that is not there", w.Code, w.Body)
	}
	s.Install(widget)
	all := discovered(t, s)
	last := all[len(all)-1]
	if last.Name != "zoo.example.com" || last.Versions[0].Resources[0].ResponseKind.Version != "v1beta1" {
		t.Errorf("the last group is %+v, want zoo.example.com with its version named", last)
	}
	if r := read[metav1.APIResourceList](t, s, "/apis/zoo.example.com/v1beta1", "").APIResources[0]; r.SingularName != "widget" || !r.Namespaced || r.StorageVersionHash == "" {
		t.Errorf("told of %+v", r)
	}
	after := tells(s, http.MethodGet, "/apis", "application/json"+aggregated).Header().Get("ETag")
	s.Uninstall(schema.GroupResource{Group: "zoo.example.com", Resource: "widgets"})
	again := tells(s, http.MethodGet, "/apis", "application/json"+aggregated).Header().Get("ETag")
	if after == before || again != before {
		t.Errorf("tags are %q, %q with the kind and %q without it", before, after, again)
	}
	if w := tells(s, http.MethodGet, "/apis/zoo.example.com", ""); w.Code != http.StatusNotFound {
		t.Errorf("got %d for a group that is gone", w.Code)
	}
}

func TestServer_FormsOfDiscovery_S18(t *testing.T) {
	s := simulate.New(simulate.Options{})
	const protobuf = "application/vnd.kubernetes.protobuf"
	for _, c := range []struct{ accept, media string }{
		{"", "application/json"},
		{"application/json" + aggregated + ",application/json", "application/json" + aggregated},
		{"application/json;q=0.5," + protobuf + aggregated, protobuf + aggregated},
		{"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json", "application/json"},
		{"application/json;g=meta.k8s.io;v=v1;as=Table,application/json", "application/json"},
		{"application/json,application/json" + aggregated, "application/json"},
		{protobuf, protobuf},
	} {
		w := tells(s, http.MethodGet, "/apis", c.accept)
		if got := w.Header().Get("Content-Type"); w.Code != http.StatusOK || got != c.media {
			t.Errorf("Accept %q: got %d %q, want %q", c.accept, w.Code, got, c.media)
		}
		if c.media != protobuf+aggregated {
			continue
		}
		var in runtime.Unknown
		var list discoveryv2.APIGroupDiscoveryList
		if err := in.Unmarshal(w.Body.Bytes()[4:]); err != nil || list.Unmarshal(in.Raw) != nil || list.Items[1].Name != "apps" {
			t.Errorf("protobuf holds %+v (%v)", list, err)
		}
	}
}

func TestServer_UnchangedDiscoveryIsNotSentAgain_S18(t *testing.T) {
	s := simulate.New(simulate.Options{})
	for _, path := range []string{"/api", "/apis"} {
		tag := tells(s, http.MethodGet, path, "application/json"+aggregated).Header().Get("ETag")
		r, w := httptest.NewRequest(http.MethodGet, path, nil), httptest.NewRecorder()
		r.Header.Set("Accept", "application/json"+aggregated)
		r.Header.Set("If-None-Match", tag)
		s.ServeHTTP(w, r)
		if w.Code != http.StatusNotModified || w.Body.Len() > 0 || w.Header().Get("Vary") != "Accept" {
			t.Errorf("%s: got %d with %d bytes for what the client has", path, w.Code, w.Body.Len())
		}
	}
}

func TestServer_Health(t *testing.T) {
	s := simulate.New(simulate.Options{})
	for _, c := range []struct {
		path   string
		status int
		want   string
	}{
		{"/healthz", 200, "ok"},
		{"/livez/ping", 200, "ok"},
		{"/readyz/nope", 404, "404 page not found\n"},
		{"/livez?verbose", 200, "livez check passed\n"},
		{"/readyz?verbose", 200, "[+]shutdown ok\nreadyz check passed\n"},
		{"/readyz?verbose&exclude=z&exclude=shutdown&exclude=a", 200,
			"[+]shutdown excluded: ok\nwarn: some health checks cannot be excluded: no matches for \"a\",\"z\"\nreadyz check passed\n"},
	} {
		if w := tells(s, http.MethodGet, c.path, ""); w.Code != c.status || !strings.HasSuffix(w.Body.String(), c.want) {
			t.Errorf("%s: got %d %q, want %d and at the end %q", c.path, w.Code, w.Body, c.status, c.want)
		}
	}
	if paths := read[metav1.RootPaths](t, s, "/", "").Paths; !slices.Contains(paths, "/apis/apps/v1") || !slices.IsSorted(paths) {
		t.Errorf("paths are %v", paths)
	}
	if v := read[map[string]string](t, s, "/version", ""); v["minor"] != "37" || v["goVersion"] == "" {
		t.Errorf("version is %v", v)
	}
	if w := tells(s, http.MethodGet, "/api/v1/nothings", ""); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "the server could not find the requested resource") {
		t.Errorf("got %d %q for a resource that a built-in group does not have", w.Code, w.Body)
	}
}
