// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/munnerz/goautoneg"
	discoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
)

// aggregation is the form in which a client wants all kinds in one document.
type aggregation struct{ media string }

// aggregatedForm returns the form of the first acceptable media type, or nil if that is not
// one document.
func aggregatedForm(accept string) *aggregation {
	for _, clause := range goautoneg.ParseAccept(accept) {
		media := clause.Type + "/" + clause.SubType
		if media == "*/*" || media == "application/*" {
			media = encode.ContentJSON
		}
		if media != encode.ContentJSON && media != encode.ContentProtobuf {
			continue
		}
		switch p := clause.Params; {
		case p["as"] == "":
			return nil
		case p["as"] == "APIGroupDiscoveryList" && p["g"] == discoveryv2.GroupName && p["v"] == "v2":
			return &aggregation{media}
		}
	}
	return nil
}

// serve writes the document, or 304 if the client has it already.
func (a aggregation) serve(w http.ResponseWriter, r *http.Request, list *discoveryv2.APIGroupDiscoveryList) {
	text, err := json.Marshal(list)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	tag := strconv.Quote(fmt.Sprintf("%X", sha512.Sum512(text)))
	w.Header().Set("ETag", tag)
	w.Header().Set("Vary", "Accept")
	w.Header().Set("Cache-Control", "public")
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if a.media == encode.ContentProtobuf {
		text, err = encode.Spell(true, list.Kind, list.APIVersion, list)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	w.Header().Set("Content-Type", a.media+";g="+discoveryv2.GroupName+";v=v2;as="+list.Kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(text)
}

// aggregated returns the kinds of the core group, or those of all other groups.
func (x *Index) aggregated(oldest bool) *discoveryv2.APIGroupDiscoveryList {
	list := &discoveryv2.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: discoveryv2.SchemeGroupVersion.String()}}
	for _, g := range x.groups() {
		if oldest != (g.name == "") {
			continue
		}
		group := discoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.name}}
		for _, v := range g.versions {
			in := discoveryv2.APIVersionDiscovery{Version: v.Version, Freshness: discoveryv2.DiscoveryFreshnessCurrent}
			for _, k := range v.kinds {
				in.Resources = append(in.Resources, discoveryOf(k))
			}
			group.Versions = append(group.Versions, in)
		}
		list.Items = append(list.Items, group)
	}
	return list
}

// discoveryOf returns the kind and its subresources. A built-in kind does not repeat the
// group and version around it.
func discoveryOf(k *kinds.Kind) discoveryv2.APIResourceDiscovery {
	out := discoveryv2.APIResourceDiscovery{
		Resource: k.Resource, SingularResource: k.Singular, Scope: discoveryv2.ScopeCluster,
		ResponseKind: responseKind(k, metav1.GroupVersionKind(k.GroupVersionKind)),
		Verbs:        k.Verbs, ShortNames: k.ShortNames, Categories: k.Categories,
	}
	if k.Namespaced {
		out.Scope = discoveryv2.ScopeNamespace
	}
	for _, sub := range k.Subresources {
		out.Subresources = append(out.Subresources, discoveryv2.APISubresourceDiscovery{
			Subresource: sub.Name, ResponseKind: responseKind(k, metav1.GroupVersionKind(sub.Kind)), Verbs: sub.Verbs,
		})
	}
	return out
}

func responseKind(k *kinds.Kind, of metav1.GroupVersionKind) *metav1.GroupVersionKind {
	if k.Place > 0 && of.Group == k.Group && of.Version == k.Version {
		of.Group, of.Version = "", ""
	}
	return &of
}
