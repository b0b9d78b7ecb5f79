// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"fmt"
	"net/http/httptest"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
)

func TestRoute_PathsOfResources(t *testing.T) {
	served := kinds.NewRegistry()
	for _, c := range []struct{ method, path, want string }{
		{"GET", "/api/v1/pods", "list Pod /"},
		{"GET", "/api/v1/pods?watch=1", "watch Pod /"},
		{"GET", "/api/v1/pods?watch=false", "list Pod /"},
		{"GET", "/api/v1/watch/namespaces/ns/pods", "watch Pod ns/"},
		{"GET", "/api/v1/namespaces/ns/pods/a", "get Pod ns/a"},
		{"GET", "/api/v1/namespaces/ns/pods/a/log", "get Pod ns/a log"},
		{"POST", "/apis/apps/v1/namespaces/ns/deployments", "create Deployment ns/"},
		{"PUT", "/apis/apps/v1/namespaces/ns/deployments/a/status", "update Deployment ns/a status"},
		{"DELETE", "/apis/apps/v1/namespaces/ns/deployments", "deletecollection Deployment ns/"},
		{"DELETE", "/apis/apps/v1/namespaces/ns/deployments/a", "delete Deployment ns/a"},
		{"PATCH", "/api/v1/nodes/a", "patch Node /a"},
		// A subresource of a namespace is not a resource in it.
		{"PUT", "/api/v1/namespaces/ns/finalize", "update Namespace /ns finalize"},
		{"GET", "/api/v1/namespaces/ns", "get Namespace /ns"},
		// The path names what there is not.
		{"GET", "/api/v1/things", "404"},
		{"GET", "/api/v1/namespaces/ns/nodes", "404"},
		{"GET", "/api/v1/namespaces/ns/configmaps/a/status", "404"},
		{"GET", "/api/v1/watch/pods/a", "404"},
		// The path is none of resources.
		{"GET", "/apis/apps/v1", "get"},
		{"GET", "/healthz", "get"},
		{"GET", "/apis/none.example.com/v1/things", "get"},
		// The verb does not fit.
		{"POST", "/api/v1/pods", "create: 405"},
		{"PUT", "/api/v1/namespaces/ns/pods", "update: 405"},
		{"DELETE", "/api/v1/pods", "deletecollection: 405"},
		{"POST", "/api/v1/namespaces/ns/pods/a", "create: 405"},
		{"GET", "/api/v1/pods/a", "get: 404"},
		{"GET", "/api/v1/namespaces/ns/bindings", "list: 405"},
	} {
		call := Route(httptest.NewRequest(c.method, c.path, nil), served)
		got := call.Verb
		switch {
		case call.Absent != nil:
			got = codeOf(call.Absent)
		case call.Kind != nil && call.Check() != nil:
			got += ": " + codeOf(call.Check())
		case call.Kind != nil:
			got += fmt.Sprintf(" %s %s/%s", call.Kind.Kind, call.Namespace, call.Name)
			if call.Subresource != "" {
				got += " " + call.Subresource
			}
		}
		if got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.method, c.path, got, c.want)
		}
	}
}

func codeOf(err error) string {
	status, ok := err.(apierrors.APIStatus)
	if !ok {
		return err.Error()
	}
	return fmt.Sprint(status.Status().Code)
}
