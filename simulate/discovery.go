// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// discover answers what is not a resource: which kinds there are, and health.
// What there is not, is a plain text, as a real server's is.
func (s *Server) discover(w http.ResponseWriter, r *http.Request) {
	var answer any
	path := strings.TrimSuffix(r.URL.Path, "/")
	switch path {
	case "/healthz", "/livez", "/readyz":
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write([]byte("ok"))
		return
	case "/version":
		answer = s.version()
	case "/openapi/v3":
		index, err := s.schemas()
		if err != nil {
			refuse(w, encoder{}, err)
			return
		}
		answer = index
	case "/api":
		answer = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	case "/apis":
		answer = s.groups()
	default:
		if list := s.resources(path); list != nil {
			answer = list
		}
	}
	if answer == nil {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("404 page not found\n"))
		return
	}
	body, err := json.Marshal(answer)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	respond(w, encoder{}, http.StatusOK, body)
}

func (s *Server) version() version.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	return version.Info{Major: "1", Minor: "37", GitVersion: s.mu.version}
}

func (s *Server) groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	var seen []schema.GroupVersion
	for _, k := range s.served() {
		gv := k.GroupVersion()
		if gv.Group == "" || slices.Contains(seen, gv) {
			continue
		}
		seen = append(seen, gv)
		in := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
		if n := len(list.Groups); n > 0 && list.Groups[n-1].Name == gv.Group {
			list.Groups[n-1].Versions = append(list.Groups[n-1].Versions, in)
			continue
		}
		list.Groups = append(list.Groups, metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{in}, PreferredVersion: in})
	}
	return list
}

// resources are the kinds of one group and version; nil when it is not served.
func (s *Server) resources(path string) *metav1.APIResourceList {
	var list *metav1.APIResourceList
	for _, k := range s.served() {
		if k.path() != path {
			continue
		}
		if list == nil {
			list = &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: k.GroupVersion().String()}
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: k.Resource, SingularName: k.singular, Kind: k.Kind, Namespaced: k.Namespaced,
			Verbs: k.verbs, ShortNames: k.shortNames, Categories: k.categories,
		})
		for _, sub := range k.subresources {
			of := metav1.APIResource{Name: k.Resource + "/" + sub.name, Kind: sub.kind.Kind, Namespaced: k.Namespaced, Verbs: sub.verbs}
			if sub.kind.GroupVersion() != k.GroupVersion() {
				of.Group, of.Version = sub.kind.Group, sub.kind.Version
			}
			list.APIResources = append(list.APIResources, of)
		}
	}
	return list
}

// served are the kinds in the order of their groups and names.
func (s *Server) served() []*Kind {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.mu.kinds), func(a, b *Kind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Resource, b.Resource))
	})
}
