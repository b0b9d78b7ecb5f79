// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/internal/fixture"
)

// directly has a server answer one request, without a network.
func directly(s *simulate.Server, method, path, media, body string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, "http://simulated"+path, strings.NewReader(body))
	req.Header.Set("Content-Type", media)
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, req)
	return answer
}

// attempts are the requests that a fuzzed body is sent with.
var attempts = []struct{ method, path, media string }{
	{"POST", mapsPath, "application/json"}, {"POST", mapsPath, "application/yaml"}, {"POST", mapsPath, "application/vnd.kubernetes.protobuf"},
	{"POST", "/apis/test.example.com/v1/namespaces/ns/widgets", "application/json"}, {"POST", "/apis/test.example.com/v1/namespaces/ns/widgets", "application/yaml"},
	{"POST", "/apis/apps/v1/namespaces/ns/deployments", "application/json"}, {"POST", "/api/v1/namespaces/ns/pods", "application/json"},
	{"POST", "/api/v1/namespaces/ns/services", "application/json"}, {"POST", "/apis/batch/v1/namespaces/ns/jobs", "application/json"},
	{"PUT", mapsPath + "/a", "application/json"}, {"DELETE", mapsPath + "/a?dryRun=All", "application/json"},
	{"PATCH", mapsPath + "/a", "application/merge-patch+json"}, {"PATCH", mapsPath + "/a", "application/json-patch+json"},
	{"PATCH", mapsPath + "/a", "application/strategic-merge-patch+json"}, {"PATCH", mapsPath + "/a?fieldManager=m&force=true", "application/apply-patch+yaml"},
	{"PATCH", "/apis/apps/v1/namespaces/ns/deployments/d", "application/strategic-merge-patch+json"},
	{"PATCH", "/apis/apps/v1/namespaces/ns/deployments/d", "application/json-patch+json"},
	{"PATCH", "/apis/apps/v1/namespaces/ns/deployments/d?fieldManager=m&force=true", "application/apply-patch+yaml"},
	{"PATCH", "/apis/apps/v1/namespaces/ns/deployments/d/scale", "application/merge-patch+json"},
	{"PUT", "/apis/apps/v1/namespaces/ns/deployments/d/scale", "application/json"},
	{"POST", "/api/v1/namespaces/ns/pods/p/eviction", "application/json"}, {"POST", "/api/v1/namespaces/ns/pods/p/binding", "application/json"},
}

// FuzzServer_Bodies: whatever is sent, the answer has a status that a server
// gives on purpose, and a refusal stores nothing.
func FuzzServer_Bodies_S7(f *testing.F) {
	for _, body := range []string{
		``, `{}`, `[]`, `null`, `"x"`, `{"metadata":{"name":"a","labels":{"a":"b"}},"data":{"v":"1"}}`, `{"metadata":{"name":"b","managedFields":[{}]}}`,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"v":"2"}}`, `{"metadata":null,"spec":null}`,
		`[{"op":"add","path":"/metadata/labels","value":{}},{"op":"move","from":"/data","path":"/x"},{"op":"copy","from":"/","path":"/-"}]`,
		`[{"op":"replace","path":"","value":null}]`, `[{"op":"remove","path":"/metadata"}]`, `[null]`, `{"$patch":"delete"}`, `{"spec":{"template":{"spec":{"containers":[{"$patch":"replace"}]}}}}`,
		`{"spec":{"template":{"spec":{"$setElementOrder/containers":[1]}}}}`, `{"spec":{"$retainKeys":["x"],"replicas":"1"}}`, `{"data":{"$patch":1}}`,
		`{"metadata":{"ownerReferences":[null]},"spec":{"ports":[{}],"containers":[{}],"replicas":1e99}}`, deployment, "a: &a [*a]\n", "metadata:\n  ? [x]\n",
		`{"metadata":{"name":"a","creationTimestamp":7,"deletionTimestamp":"x","finalizers":[1]}}`,
	} {
		f.Add([]byte(body))
	}
	encoder := protobuf.NewSerializer(clientscheme.Scheme, clientscheme.Scheme)
	cm := fixture.ConfigMap("pb", "1")
	cm.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	if raw, err := runtime.Encode(encoder, cm); err != nil {
		f.Fatal(err)
	} else {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		s := simulate.New(simulate.Options{Kinds: []simulate.Kind{fixture.WidgetKind}, Namespaces: []string{"ns", "other"}})
		directly(s, "POST", mapsPath, "application/json", `{"metadata":{"name":"a"},"data":{"v":"1"}}`)
		directly(s, "POST", "/apis/apps/v1/namespaces/ns/deployments", "application/json", deployment)
		for _, a := range attempts {
			before := s.Revision()
			answer := directly(s, a.method, a.path, a.media, string(body))
			if answer.Code < 200 || answer.Code >= 600 {
				t.Errorf("%s %s: status %d", a.method, a.path, answer.Code)
			}
			if answer.Code >= http.StatusBadRequest && s.Revision() != before {
				t.Errorf("%s %s: %d %s, but the revision moved: a refusal stores nothing", a.method, a.path, answer.Code, answer.Body)
			}
		}
	})
}
