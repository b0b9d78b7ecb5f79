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

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	openapiv3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate"
)

var zooWidget = simulate.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "zoo.example.com", Version: "v1", Kind: "Widget"}, Namespaced: true}

type openAPIIndex struct {
	Paths map[string]struct {
		URL string `json:"serverRelativeURL"`
	} `json:"paths"`
}

// openAPIDocument is what these tests look at in one.
type openAPIDocument struct {
	Paths      map[string]map[string]json.RawMessage
	Components struct{ Schemas map[string]openAPISchema }
}

type openAPIOperation struct {
	Action     string `json:"x-kubernetes-action"`
	Parameters []struct{ Name string }
}

type openAPISchema struct {
	Kinds      []schema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
	Properties map[string]openAPISchema
	Required   []string
	ListType   string   `json:"x-kubernetes-list-type"`
	ListKeys   []string `json:"x-kubernetes-list-map-keys"`
	MergeKey   string   `json:"x-kubernetes-patch-merge-key"`
	Default    any
	Enum       []string
	AllOf      []struct {
		Ref string `json:"$ref"`
	}
}

func documentAt(t *testing.T, s *simulate.Server, path string) openAPIDocument {
	t.Helper()
	index := read[openAPIIndex](t, s, "/openapi/v3", "")
	return read[openAPIDocument](t, s, index.Paths[path].URL, "application/json")
}

func TestServer_SchemasDescribeJustWhatIsServed_S18(t *testing.T) {
	s := simulate.New(simulate.Options{Kinds: []simulate.Kind{zooWidget}})
	verbs := map[string]string{"post": "create", "put": "update", "get": "get", "list": "list", "patch": "patch", "delete": "delete", "deletecollection": "deletecollection"}
	documents := len(read[openAPIIndex](t, s, "/openapi/v3", "").Paths)
	for _, group := range discovered(t, s) {
		for _, version := range group.Versions {
			documents--
			prefix := strings.TrimPrefix("apis/"+group.Name+"/"+version.Version, "apis//")
			if group.Name == "" {
				prefix = "api/v1"
			}
			doc := documentAt(t, s, prefix)
			described := map[string][]string{}
			for path, item := range doc.Paths {
				_, of, _ := strings.Cut(path, prefix+"/")
				of = strings.TrimPrefix(strings.ReplaceAll(of, "/{name}", ""), "namespaces/{namespace}/")
				for method, text := range item {
					var op openAPIOperation
					if method == "parameters" || json.Unmarshal(text, &op) != nil {
						continue
					}
					if verb := verbs[op.Action]; !slices.Contains(described[of], verb) {
						described[of] = append(described[of], verb)
					}
				}
			}
			for _, resource := range version.Resources {
				kind := schema.GroupVersionKind{Group: group.Name, Version: version.Version, Kind: resource.ResponseKind.Kind}
				if !slices.ContainsFunc(mapsValues(doc.Components.Schemas), func(s openAPISchema) bool { return slices.Contains(s.Kinds, kind) }) {
					t.Errorf("%s: no schema is of %s", prefix, kind)
				}
				holdVerbs(t, prefix+"/"+resource.Resource, described[resource.Resource], resource.Verbs)
				for _, sub := range resource.Subresources {
					holdVerbs(t, prefix+"/"+resource.Resource+"/"+sub.Subresource, described[resource.Resource+"/"+sub.Subresource], sub.Verbs)
				}
			}
		}
	}
	if documents != 0 {
		t.Errorf("%d documents more than versions", documents)
	}
}

func mapsValues[K comparable, V any](m map[K]V) (out []V) {
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

// holdVerbs compares what is described with what discovery says. A watch is a
// way of listing.
func holdVerbs(t *testing.T, of string, described, told []string) {
	t.Helper()
	want := slices.DeleteFunc(slices.Sorted(slices.Values(told)), func(verb string) bool { return verb == "watch" })
	if got := slices.Sorted(slices.Values(described)); !slices.Equal(got, want) {
		t.Errorf("%s: described are %v, discovery tells of %v", of, got, want)
	}
}

func TestServer_SchemasOfBuiltinKinds(t *testing.T) {
	s := simulate.New(simulate.Options{})
	core := documentAt(t, s, "api/v1").Components.Schemas
	pod, port := core["io.k8s.api.core.v1.PodSpec"], core["io.k8s.api.core.v1.ContainerPort"]
	if c := pod.Properties["containers"]; c.ListType != "map" || !slices.Equal(c.ListKeys, []string{"name"}) || c.MergeKey != "name" {
		t.Errorf("containers are %+v", c)
	}
	if p := port.Properties["protocol"]; p.Default != "TCP" || !slices.Equal(p.Enum, []string{"SCTP", "TCP", "UDP"}) {
		t.Errorf("protocol is %+v", p)
	}
	if p := port.Properties["containerPort"]; !slices.Equal(port.Required, []string{"containerPort"}) || p.Default != 0.0 {
		t.Errorf("containerPort is %+v of %v", p, port.Required)
	}
	apps := documentAt(t, s, "apis/apps/v1")
	deployment := apps.Components.Schemas["io.k8s.api.apps.v1.Deployment"]
	if m := deployment.Properties["metadata"]; len(m.AllOf) != 1 || m.AllOf[0].Ref != "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" {
		t.Errorf("metadata is %+v", m)
	}
	if !slices.Equal(deployment.Required, []string{"spec"}) {
		t.Errorf("a Deployment requires %v", deployment.Required)
	}
	var patch openAPIOperation
	if err := json.Unmarshal(apps.Paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"], &patch); err != nil {
		t.Fatal(err)
	}
	var named []string
	for _, p := range patch.Parameters {
		named = append(named, p.Name)
	}
	if want := []string{"dryRun", "fieldManager", "fieldValidation", "force"}; !slices.Equal(named, want) {
		t.Errorf("a patch has the parameters %v, want %v", named, want)
	}
}

// Who has the document of a hash need not ask again, and never gets another.
func TestServer_HashOfASchemaIsOfItsContent_S18(t *testing.T) {
	s, other := simulate.New(simulate.Options{}), simulate.New(simulate.Options{Kinds: []simulate.Kind{zooWidget}})
	before := read[openAPIIndex](t, s, "/openapi/v3", "").Paths
	s.Install(zooWidget)
	after := read[openAPIIndex](t, s, "/openapi/v3", "").Paths
	at := after["apis/zoo.example.com/v1"].URL
	if before["apis/apps/v1"] != after["apis/apps/v1"] || before["apis/zoo.example.com/v1"].URL != "" || at == "" {
		t.Errorf("before %v, after %v", before["apis/apps/v1"], after["apis/apps/v1"])
	}
	if same := read[openAPIIndex](t, other, "/openapi/v3", "").Paths["apis/zoo.example.com/v1"].URL; same != at {
		t.Errorf("the same kind has the document %q on one server, %q on another", at, same)
	}
	w := tells(s, http.MethodGet, at, "application/json")
	if h := w.Header(); h.Get("Cache-Control") != "public, immutable" || h.Get("Expires") == "" || h.Get("Vary") != "Accept" {
		t.Errorf("headers are %v", h)
	}
	r, again := httptest.NewRequest(http.MethodGet, at, nil), httptest.NewRecorder()
	r.Header.Set("If-None-Match", w.Header().Get("Etag"))
	if s.ServeHTTP(again, r); again.Code != http.StatusNotModified {
		t.Errorf("got %d for a document that the client has", again.Code)
	}
	changed := zooWidget
	changed.Namespaced = false
	s.Install(changed)
	if w := tells(s, http.MethodGet, at, "application/json"); w.Code != http.StatusMovedPermanently || w.Header().Get("Location") == at || w.Header().Get("Location") == "" {
		t.Errorf("got %d to %q for the hash of a kind that has changed", w.Code, w.Header().Get("Location"))
	}
	s.Uninstall(schema.GroupResource{Group: "zoo.example.com", Resource: "widgets"})
	if w := tells(s, http.MethodGet, at, ""); w.Code != http.StatusNotFound {
		t.Errorf("got %d for the document of a kind that is gone", w.Code)
	}
}

func TestServer_FormsOfSchemas(t *testing.T) {
	s := simulate.New(simulate.Options{Kinds: []simulate.Kind{zooWidget}})
	old := tells(s, http.MethodGet, "/openapi/v2", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf")
	var v2 openapiv2.Document
	if err := proto.Unmarshal(old.Body.Bytes(), &v2); err != nil || old.Header().Get("Content-Type") != "application/com.github.proto-openapi.spec.v2.v1.0+protobuf" {
		t.Errorf("%s: %v", old.Header().Get("Content-Type"), err)
	}
	if !slices.ContainsFunc(v2.GetDefinitions().GetAdditionalProperties(), func(s *openapiv2.NamedSchema) bool { return s.Name == "com.example.zoo.v1.Widget" }) {
		t.Error("version 2 does not describe a custom kind")
	}
	var v3 openapiv3.Document
	modern := tells(s, http.MethodGet, "/openapi/v3/apis/zoo.example.com/v1", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf")
	if err := proto.Unmarshal(modern.Body.Bytes(), &v3); err != nil || len(v3.GetPaths().GetPath()) != 3 {
		t.Errorf("%d paths: %v", len(v3.GetPaths().GetPath()), err)
	}
	if w := tells(s, http.MethodGet, "/openapi/v2", "text/html"); w.Code != http.StatusNotAcceptable {
		t.Errorf("got %d for a form that there is not", w.Code)
	}
	if w := tells(s, http.MethodGet, "/openapi/v2", "application/json;q=0.5,text/html"); w.Code != http.StatusOK || !json.Valid(w.Body.Bytes()) {
		t.Errorf("got %d", w.Code)
	}
}
