// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
)

// script is an API server in the test: it answers discovery, and every other request
// with the next of the answers.
type script struct {
	answers []reply

	mu struct {
		sync.Mutex
		requests []request
	}
}

// reply is one answer. Its type is JSON unless set otherwise.
type reply struct {
	code   int // 0: 200
	body   string
	header http.Header
	fails  error // of the transport, in place of an answer
}

type request struct {
	method, path, query string
	header              http.Header
	body                string
}

const (
	coreDiscovery = `{"kind":"APIResourceList","groupVersion":"v1","resources":[
		{"name":"configmaps","namespaced":true,"kind":"ConfigMap"},
		{"name":"pods","namespaced":true,"kind":"Pod"},
		{"name":"pods/eviction","namespaced":true,"kind":"Eviction"},
		{"name":"secrets","namespaced":true,"kind":"Secret"},
		{"name":"serviceaccounts","namespaced":true,"kind":"ServiceAccount"},
		{"name":"serviceaccounts/token","namespaced":true,"kind":"TokenRequest","group":"authentication.k8s.io","version":"v1"},
		{"name":"namespaces","namespaced":false,"kind":"Namespace"}]}`
	appsDiscovery = `{"kind":"APIResourceList","groupVersion":"apps/v1","resources":[
		{"name":"deployments","namespaced":true,"kind":"Deployment"},
		{"name":"controllerrevisions","namespaced":true,"kind":"ControllerRevision"},
		{"name":"statefulsets","namespaced":true,"kind":"StatefulSet"},
		{"name":"deployments/status","namespaced":true,"kind":"Deployment"},
		{"name":"deployments/scale","namespaced":true,"kind":"Scale","group":"autoscaling","version":"v1"}]}`
	websiteDiscovery = `{"kind":"APIResourceList","groupVersion":"example.com/v1","resources":[
		{"name":"websites","namespaced":true,"kind":"Website"},
		{"name":"websites/status","namespaced":true,"kind":"Website"},
		{"name":"secrets","namespaced":true,"kind":"Secret"}]}`
	rbacDiscovery = `{"kind":"APIResourceList","groupVersion":"rbac.authorization.k8s.io/v1","resources":[
		{"name":"rolebindings","namespaced":true,"kind":"RoleBinding"}]}`
)

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	switch r.URL.Path {
	case "/api/v1":
		return respond(r, reply{body: coreDiscovery}), nil
	case "/apis/apps/v1":
		return respond(r, reply{body: appsDiscovery}), nil
	case "/apis/rbac.authorization.k8s.io/v1":
		return respond(r, reply{body: rbacDiscovery}), nil
	case "/apis/example.com/v1":
		return respond(r, reply{body: websiteDiscovery}), nil
	}
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.requests = append(s.mu.requests, request{r.Method, r.URL.Path, r.URL.RawQuery, r.Header, string(body)})
	if n := len(s.mu.requests); n <= len(s.answers) {
		if err := s.answers[n-1].fails; err != nil {
			return nil, err
		}
		return respond(r, s.answers[n-1]), nil
	}
	return respond(r, reply{code: http.StatusTeapot, body: `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"the script has no more answers","code":418}`}), nil
}

func respond(r *http.Request, a reply) *http.Response {
	if a.code == 0 {
		a.code = http.StatusOK
	}
	if a.header == nil {
		a.header = http.Header{}
	}
	if a.header.Get("Content-Type") == "" {
		a.header.Set("Content-Type", "application/json")
	}
	return &http.Response{StatusCode: a.code, Header: a.header, Body: io.NopCloser(bytes.NewBufferString(a.body)), Request: r}
}

func (s *script) requests() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.requests
}

// scripted returns a client of a server that gives the answers.
func scripted(t testing.TB, opts client.Options, answers ...reply) (*client.Client, *script) {
	t.Helper()
	s := &script{answers: answers}
	c, err := client.New(&rest.Config{Host: "http://api.test", Transport: s}, testScheme(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

func testScheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, autoscalingv1.AddToScheme, policyv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	addWebsites(scheme)
	return scheme
}

// status is a failure in the server's format. details is JSON without braces.
func status(code int, reason, message, details string) reply {
	return reply{code: code, body: `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"` + reason +
		`","message":"` + strings.ReplaceAll(message, `"`, `\"`) + `","details":{` + details + `}}`}
}
