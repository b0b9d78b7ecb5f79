// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package discovery serves what describes a server: groups, versions and kinds, in the
// older form and in one document, the OpenAPI documents of all kinds, the version, and
// health. All servers of the process share a cache of the last documents. It sees a
// registry of kinds, and neither objects nor the store.
package discovery

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
)

// Index serves the kinds, their schemas and health.
type Index struct {
	Kinds *kinds.Registry
	// Version returns the version of the server.
	Version func() string
	// Forbidden returns the error for a path below /openapi; nil: the path is allowed.
	Forbidden func(path string) error
}

// ServeHTTP answers requests that are not for a resource: discovery, schemas and health. As
// on a real server, the answer for an unknown path is plain text.
func (x *Index) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; path {
	case "/", "/index.html":
		x.paths(w)
	case "/version", "/version/":
		x.serveVersion(w, r)
	case "/api", "/api/", "/apis", "/apis/":
		x.serveGroups(w, r, strings.TrimSuffix(path, "/"))
	default:
		switch {
		case strings.HasPrefix(path, "/openapi/"):
			x.serveSchemas(w, r, path)
		case !x.serveHealth(w, r, path):
			x.serveKinds(w, r, strings.TrimSuffix(path, "/"))
		}
	}
}

func absent(w http.ResponseWriter) { http.Error(w, "404 page not found", http.StatusNotFound) }

// serveGroups answers /api and /apis: all kinds in one document if the client asks for it,
// otherwise the names of groups and versions.
func (x *Index) serveGroups(w http.ResponseWriter, r *http.Request, path string) {
	if form := aggregatedForm(r.Header.Get("Accept")); form != nil {
		form.serve(w, r, x.aggregated(path == "/api"))
		return
	}
	if path == "/api" {
		if !reads(r) {
			encode.Refuse(w, encode.For(nil, r.Header.Get("Accept")), refusal.Method())
			return
		}
		encode.WriteNegotiated(w, r, "APIVersions", "v1", &metav1.APIVersions{
			TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: r.Host}},
		})
		return
	}
	list := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	for _, g := range x.groups() {
		if g.name != "" {
			list.Groups = append(list.Groups, g.described())
		}
	}
	encode.WriteNegotiated(w, r, "APIGroupList", "v1", list)
}

// reads reports whether r has a method that reads. A real server answers for groups and
// custom kinds whatever the method is.
func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// serveKinds answers for one group, or for one version of a group. Where built-in kinds are
// or could be, the answer for an absent path is a Status.
func (x *Index) serveKinds(w http.ResponseWriter, r *http.Request, path string) {
	name, ok := groupAt(path)
	if !ok {
		absent(w)
		return
	}
	for _, g := range grouped(x.Kinds.Served(func(k *kinds.Kind) bool { return k.Group == name })) {
		if g.name != "" && path == "/apis/"+g.name {
			group := g.described()
			group.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
			encode.WriteNegotiated(w, r, "APIGroup", "v1", &group)
			return
		}
		for _, v := range g.versions {
			switch {
			case path != v.path():
			case v.builtin() && !reads(r):
				encode.Refuse(w, encode.For(nil, r.Header.Get("Accept")), refusal.Method())
				return
			default:
				list := v.described()
				encode.WriteNegotiated(w, r, "APIResourceList", "v1", &list)
				return
			}
		}
	}
	if gv, ok := versionIn(path); ok && x.Kinds.AnswersFor(gv) {
		encode.Refuse(w, encode.For(nil, r.Header.Get("Accept")), refusal.Absent())
		return
	}
	absent(w)
}

// versionIn returns the group and version of a path or of its parent.
func versionIn(path string) (gv schema.GroupVersion, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 1 && parts[0] == "api":
		return schema.GroupVersion{Version: parts[1]}, true
	case len(parts) > 2 && parts[0] == "apis":
		return schema.GroupVersion{Group: parts[1], Version: parts[2]}, true
	}
	return gv, false
}

// described returns the group in the older form of discovery.
func (g servedGroup) described() metav1.APIGroup {
	out := metav1.APIGroup{Name: g.name}
	for _, v := range g.versions {
		out.Versions = append(out.Versions, metav1.GroupVersionForDiscovery{GroupVersion: v.String(), Version: v.Version})
	}
	out.PreferredVersion = out.Versions[0]
	return out
}

// described returns the kinds of a version, each followed by its subresources.
func (v servedVersion) described() metav1.APIResourceList {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: v.String()}
	if v.Group == "" {
		list.APIVersion = "" // as in the time before groups
	}
	for _, k := range v.kinds {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: k.Resource, SingularName: k.Singular, Kind: k.Kind, Namespaced: k.Namespaced,
			Verbs: k.Verbs, ShortNames: k.ShortNames, Categories: k.Categories, StorageVersionHash: storageHash(k),
		})
		for _, sub := range k.Subresources {
			of := metav1.APIResource{Name: k.Resource + "/" + sub.Name, Kind: sub.Kind.Kind, Namespaced: k.Namespaced, Verbs: sub.Verbs}
			if sub.Kind.GroupVersion() != k.GroupVersion() {
				of.Group, of.Version = sub.Kind.Group, sub.Kind.Version
			}
			list.APIResources = append(list.APIResources, of)
		}
	}
	return list
}

// storedAs lists the built-in kinds that a real server stores in another version than this
// one. It shows only in storageHash.
var storedAs = map[schema.GroupKind]schema.GroupVersion{
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:   {Group: "apiextensions.k8s.io", Version: "v1beta1"},
	{Group: "certificates.k8s.io", Kind: "ClusterTrustBundle"}:          {Group: "certificates.k8s.io", Version: "v1beta1"},
	{Group: "certificates.k8s.io", Kind: "PodCertificateRequest"}:       {Group: "certificates.k8s.io", Version: "v1beta1"},
	{Group: "resource.k8s.io", Kind: "DeviceTaintRule"}:                 {Group: "resource.k8s.io", Version: "v1beta2"},
	{Group: "storagemigration.k8s.io", Kind: "StorageVersionMigration"}: {Group: "storagemigration.k8s.io", Version: "v1beta1"},
}

// storageHash changes when the kind is stored in another version. It is empty for a kind
// that is not stored.
func storageHash(k *kinds.Kind) string {
	if !k.Allows("", "watch") {
		return ""
	}
	held := k.GroupVersion()
	if k.Family != nil {
		held = k.Family.Storage.GroupVersion()
	}
	if as, ok := storedAs[k.GroupVersionKind.GroupKind()]; ok {
		held = as
	}
	sum := sha256.Sum256([]byte(held.Group + "/" + held.Version + "/" + k.Kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}
