// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// Requests, and what a real server's authorizer is asked for them.
func TestNeeded_IsWhatTheAuthorizerIsAsked_P1(t *testing.T) {
	for _, c := range []struct{ method, url, want string }{
		{"GET", "/api/v1/namespaces/a/pods/p", "get pods p in a"},
		{"GET", "/api/v1/namespaces/a/pods", "list pods in a"},
		{"GET", "/api/v1/pods?watch=true", "watch pods"},
		{"GET", "/api/v1/pods?watch=1&fieldSelector=metadata.name%3Dp", "watch pods p"},
		{"GET", "/prefix/of/proxy/apis/apps/v1/deployments", "list deployments.apps"},
		{"GET", "/api/v1/namespaces", "list namespaces"},
		{"GET", "/api/v1/namespaces/a", "get namespaces a"},
		{"PUT", "/api/v1/namespaces/a/finalize", "update namespaces/finalize a"},
		{"PATCH", "/api/v1/namespaces/a/status", "patch namespaces/status a"},
		{"POST", "/apis/apps/v1/namespaces/a/deployments", "create deployments.apps in a"},
		{"PUT", "/apis/apps/v1/namespaces/a/deployments/d/scale", "update deployments/scale.apps d in a"},
		{"POST", "/api/v1/namespaces/a/pods/p/eviction", "create pods/eviction p in a"},
		{"DELETE", "/api/v1/namespaces/a/pods/p", "delete pods p in a"},
		{"DELETE", "/api/v1/namespaces/a/pods", "deletecollection pods in a"},
		{"GET", "/api/v1/nodes/n/proxy/metrics", "get nodes/proxy n"},
		{"GET", "/apis", ""},
		{"GET", "/apis/apps/v1", ""},
		{"GET", "/api/v1", ""},
		{"GET", "/openapi/v3", ""},
		{"GET", "/healthz", ""},
		{"OPTIONS", "/api/v1/pods", ""},
	} {
		right, ok := needed(httptest.NewRequest(c.method, "https://server"+c.url, nil))
		if got := right.String(); ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%s %s needs %q, want %q", c.method, c.url, got, c.want)
		}
	}
}

// manifest is a file as operators have it.
const manifest = `apiVersion: v1
kind: ServiceAccount
metadata:
  name: op
---
# What the operator may do.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: op
rules:
  - apiGroups: [apps]
    resources: [deployments]
    verbs: [list, watch, patch, create]
  - apiGroups: [example.dev] # keep: some clusters demand it
    resources: [websites/finalizers]
    verbs: [update]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: op
  namespace: system
rules:
- apiGroups:
  - coordination.k8s.io
  resources:
  - leases
  verbs:
  - create
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  resourceNames: [op]
  verbs: [get, update]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: unrelated}
`

// usedBy returns a Recorder with these requests; one that ends in 201 creates.
func usedBy(requests ...string) *Recorder {
	r := &Recorder{}
	for _, line := range requests {
		method, url, _ := strings.Cut(line, " ")
		url, created := strings.CutSuffix(url, " 201")
		code := http.StatusOK
		if created {
			code = http.StatusCreated
		}
		r.record(httptest.NewRequest(method, "https://server"+url, nil), code)
	}
	return r
}

const lease = "/apis/coordination.k8s.io/v1/namespaces/system/leases"

var whole = []string{
	"GET /apis/apps/v1/deployments", "GET /apis/apps/v1/deployments?watch=true",
	"PATCH /apis/apps/v1/namespaces/default/deployments/d 201",
	"POST " + lease, "GET " + lease + "/op", "PUT " + lease + "/op",
}

func writeManifest(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rbac.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestCheck_EqualRightsPass(t *testing.T) {
	if err := usedBy(whole...).check(writeManifest(t, manifest), false); err != nil {
		t.Error(err)
	}
}

func TestCheck_MissingRightsAreNamed_P1(t *testing.T) {
	for _, c := range []struct{ request, want string }{
		{"GET /apis/apps/v1/namespaces/a/deployments/d", "missing: get deployments.apps d in a"},
		{"PUT " + lease + "/other", "missing: update leases.coordination.k8s.io other in system"},
		{"GET /apis/coordination.k8s.io/v1/leases", "missing: list leases.coordination.k8s.io"},
		{"PATCH /apis/example.dev/v1/namespaces/a/websites/w/status", "missing: patch websites/status.example.dev w in a"},
	} {
		err := usedBy(append(whole, c.request)...).check(writeManifest(t, manifest), false)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Count(err.Error(), "\t") != 1 {
			t.Errorf("%s: got %v, want only %q", c.request, err, c.want)
		}
	}
}

func TestCheck_UnusedRightsAreNamed_P2(t *testing.T) {
	for i, want := range []string{
		"ClusterRole op: list deployments.apps", "ClusterRole op: watch deployments.apps",
		"ClusterRole op: create deployments.apps", "Role op: create leases.coordination.k8s.io",
		"Role op: get leases.coordination.k8s.io op", "Role op: update leases.coordination.k8s.io op",
	} {
		less := append(append([]string{}, whole[:i]...), whole[i+1:]...)
		if i == 2 {
			less = append(less, "PATCH /apis/apps/v1/namespaces/default/deployments/d") // it exists
		}
		err := usedBy(less...).check(writeManifest(t, manifest), false)
		if err == nil || !strings.Contains(err.Error(), "unused: "+want) || strings.Count(err.Error(), "\t") != 1 {
			t.Errorf("without %s: got %v, want only %q", whole[i], err, want)
		}
	}
}

func TestCheck_UpdateWritesWhatACheckThenPasses_P3(t *testing.T) {
	used := usedBy(append(whole[1:], "GET /api/v1/namespaces/a/secrets/s", "GET /api/v1/namespaces/b/secrets/s")...)
	file := writeManifest(t, manifest)
	for range 2 { // the second changes nothing
		if err := used.check(file, true); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(text) != updated {
			t.Errorf("the file became\n%s\nwant\n%s", text, updated)
		}
	}
	if err := used.check(file, false); err != nil {
		t.Error(err)
	}
}

const updated = `apiVersion: v1
kind: ServiceAccount
metadata:
  name: op
---
# What the operator may do.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: op
rules:
  - apiGroups: [example.dev] # keep: some clusters demand it
    resources: [websites/finalizers]
    verbs: [update]
  - apiGroups: [""]
    resources: [secrets]
    verbs: [get]
  - apiGroups: [apps]
    resources: [deployments]
    verbs: [watch, create, patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: op
  namespace: system
rules:
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    verbs: [create]
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    resourceNames: [op]
    verbs: [get, update]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: unrelated}
`

func TestCheck_BadInput(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		used             *Recorder
	}{
		{"no requests", manifest, "no request was recorded", &Recorder{}},
		{"no roles", "kind: ConfigMap\n", "there is no Role and no ClusterRole", usedBy(whole...)},
		{"not YAML", "kind: [\n", "document 1", usedBy(whole...)},
		{"a Role without a namespace", "kind: Role\nmetadata: {name: r}\nrules: []\n", "has no namespace", usedBy(whole...)},
		{"rules in one line", "kind: ClusterRole\nmetadata: {name: r}\nrules: [{apiGroups: [a], resources: [b], verbs: [c]}]\n", "not a YAML list", usedBy(whole...)},
	} {
		for _, write := range []bool{false, true} {
			file := writeManifest(t, c.text)
			err := c.used.check(file, write)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %q", c.name, err, c.want)
			}
			if text, _ := os.ReadFile(file); string(text) != c.text {
				t.Errorf("%s: the file was changed", c.name)
			}
		}
	}
	if err := usedBy(whole...).check(filepath.Join(t.TempDir(), "none.yaml"), true); err == nil {
		t.Error("a missing file is no error")
	}
}

func TestRecorder_RecordsThroughAConfig(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "secrets") {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer server.Close()
	r := &Recorder{}
	cfg := &rest.Config{Host: server.URL}
	client, err := rest.HTTPClientFor(r.Config(cfg))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api/v1/pods", "/api/v1/secrets", "/version"} {
		answer, err := client.Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	if got := r.Used(); len(got) != 1 || got[0].String() != "list pods" {
		t.Errorf("recorded %v, want list pods alone", got)
	}
	if cfg.WrapTransport != nil {
		t.Error("Config changed its argument")
	}
}
