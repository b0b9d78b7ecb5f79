// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/kube"
)

func TestParse_PathNamesTheObject_R14(t *testing.T) {
	for _, row := range []struct{ path, want string }{
		{"/api/v1/namespaces/prod/pods/web", "v1 pods prod/web"},
		{"/api/v1/namespaces/prod/pods", "v1 pods prod/"},
		{"/api/v1/namespaces/prod/pods/", "v1 pods prod/"},
		{"/api/v1/pods", "v1 pods /"},
		{"/api/v1/nodes/n1", "v1 nodes /n1"},
		{"/api/v1/nodes/n1/status", "v1 nodes /n1 status"},
		{"/api/v1/nodes/n1/proxy/a/b/c", "v1 nodes /n1 proxy"},
		{"/api/v1/namespaces", "v1 namespaces /"},
		{"/api/v1/namespaces/prod", "v1 namespaces /prod"},
		{"/api/v1/namespaces/prod/status", "v1 namespaces /prod status"},
		{"/api/v1/namespaces/prod/finalize", "v1 namespaces /prod finalize"},
		{"/api/v1/namespaces/status/configmaps/status", "v1 configmaps status/status"},
		{"/api/v1/namespaces/api/configmaps/apis", "v1 configmaps api/apis"},
		{"/api/v1/namespaces/prod/pods/web/exec", "v1 pods prod/web exec"},
		{"/api/v1/namespaces/prod/pods/web/proxy/a/b", "v1 pods prod/web proxy"},
		{"/api/v1/namespaces/prod/namespaces/web", "v1 namespaces prod/web"},
		{"/apis/apps/v1/namespaces/prod/deployments/web/scale", "apps/v1 deployments prod/web scale"},
		{"/apis/example.com/v1alpha1/websites/web", "example.com/v1alpha1 websites /web"},
		{"/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node", "rbac.authorization.k8s.io/v1 clusterroles /system:node"},
		{"/api/v1/namespaces/prod//web", ""},
		{"/api/v1/namespaces/prod/pods//status", ""},
		{"/api/v1/watch/namespaces/prod/pods", ""},
		{"/api/v1/proxy/namespaces/prod/pods/web", ""},
		{"/api/v1", ""},
		{"/api/", ""},
		{"/api", ""},
		{"/apis", ""},
		{"/apis/", ""},
		{"/apis/apps", ""},
		{"/apis//v1/pods/web", ""},
		{"/apis/apps/v1", ""},
		{"/apiserver/v1/pods", ""},
		{"/version", ""},
		{"/k8s/api/v1/pods", ""},
		{"api/v1/pods", ""},
		{"/", ""},
		{"", ""},
	} {
		got := ""
		if to, ok := Parse(row.path, ""); ok {
			got = describe(to)
		}
		if got != row.want {
			t.Errorf("%s names %q, want %q", row.path, got, row.want)
		}
	}
}

func TestParse_PathOfAnotherServerNamesNothing_R14(t *testing.T) {
	const path = "/k8s/clusters/a/api/v1/pods/web"
	if to, ok := Parse(path, "/k8s/clusters/a"); !ok || describe(to) != "v1 pods /web" {
		t.Errorf("%s names %q, %v, want the Pod", path, describe(to), ok)
	}
	for _, prefix := range []string{"/k8s/clusters/b", "", "/k8s", "/clusters/a", "/k8s/clusters/a/api/v1"} {
		if to, ok := Parse(path, prefix); ok {
			t.Errorf("%s under %q names %q, want nothing: another server has the object", path, prefix, describe(to))
		}
	}
}

func describe(to Target) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s %s/%s %s", to.Resource.GroupVersion(), to.Resource.Resource, to.Key.Namespace, to.Key.Name, to.Subresource))
}

// A path that is built from its parts is read as these parts, and no path fails.
func TestParse_IsTheInverseOfBuildingAPath_R14(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	words := []string{"", "api", "apis", "namespaces", "status", "finalize", "pods", "web", "v1", "watch", "proxy", "a:b", "x.y"}
	word := func(min int) string { return words[min+r.IntN(len(words)-min)] }
	for range 20_000 {
		want := Target{
			Resource:    schema.GroupVersionResource{Group: word(0), Version: word(1), Resource: word(1)},
			Key:         kube.Key{Namespace: word(0), Name: word(0)},
			Subresource: word(0),
		}
		if want.Key.Name == "" {
			want.Subresource = ""
		}
		parts := []string{"/prefix/apis", want.Resource.Group, want.Resource.Version}
		if want.Resource.Group == "" {
			parts = []string{"/prefix/api", want.Resource.Version}
		}
		if want.Key.Namespace != "" {
			parts = append(parts, "namespaces", want.Key.Namespace)
		}
		parts = append(parts, want.Resource.Resource)
		if want.Key.Name != "" {
			parts = append(parts, want.Key.Name)
		}
		if want.Subresource != "" {
			parts = append(parts, want.Subresource)
		}
		path := strings.Join(parts, "/")
		got, ok := Parse(path, "/prefix")
		switch resource := want.Resource.Resource; {
		case resource == "watch" || resource == "proxy":
			if ok {
				t.Fatalf("%s names %+v, want nothing", path, got)
			}
		case want.Key.Namespace != "" && (resource == "status" || resource == "finalize"),
			want.Key.Namespace == "" && resource == "namespaces" && want.Subresource != "":
			// These paths have another meaning.
		case !ok || got != want:
			t.Fatalf("%s names %+v, %v, want %+v", path, got, ok, want)
		}
	}
	for range 20_000 {
		var path strings.Builder
		for range r.IntN(9) {
			path.WriteString("/" + words[r.IntN(len(words))])
		}
		if to, ok := Parse(path.String(), ""); ok && (to.Resource.Version == "" || to.Resource.Resource == "") {
			t.Fatalf("%s names %+v, want nothing or a resource", path.String(), to)
		}
	}
}
