// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
)

// painting is a kind of a CRD that can be selected by its colour.
var painting = kinds.Kind{
	GroupVersionKind: schema.GroupVersionKind{Group: "test.example.com", Version: "v1", Kind: "Painting"}, Namespaced: true,
	Selectable: []string{".spec.color", ".spec['frame.size']"},
}

// stored has a server hold objects, each a JSON text with a kind.
func stored(t *testing.T, s *Server, objects ...string) {
	t.Helper()
	for _, text := range objects {
		obj := &unstructured.Unstructured{}
		if err := json.Unmarshal([]byte(text), obj); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Put(obj); err != nil {
			t.Fatal(err)
		}
	}
}

// asked is what a server answers to a GET: the names in a list, or why not.
func asked(t *testing.T, s *Server, path string) string {
	t.Helper()
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
	var list struct {
		Message string
		Items   []struct{ Metadata metav1.ObjectMeta }
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &list); err != nil {
		t.Fatalf("%s: %v", answer.Body, err)
	}
	if list.Message != "" {
		return fmt.Sprint(answer.Code, " ", list.Message)
	}
	var names []string
	for _, item := range list.Items {
		names = append(names, item.Metadata.Name)
	}
	return strings.Join(names, " ")
}

func TestServer_SelectsByFieldsOfItsKind_S17(t *testing.T) {
	s := New(Options{Namespaces: []string{"n"}})
	s.kinds.Install(kinds.FamilyOf(painting.Completed()))
	for _, c := range []struct {
		path    string
		objects []string
		want    map[string]string // selector to names
	}{
		{"/api/v1/pods", []string{
			`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"n","name":"a"},"spec":{"nodeName":"x","hostNetwork":true,"restartPolicy":"Never","schedulerName":"s","serviceAccountName":"sa"},"status":{"phase":"Running","podIPs":[{"ip":"10.0.0.1"},{"ip":"f::1"}],"nominatedNodeName":"y"}}`,
			`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"n","name":"b"},"status":{"phase":"Pending","podIP":"10.0.0.2"}}`,
		}, map[string]string{
			"spec.nodeName=x": "a", "spec.nodeName=": "b", "spec.nodeName!=x": "b", "spec.host=x": "a", "spec.hostNetwork=true": "a", "spec.hostNetwork=false": "b",
			"spec.restartPolicy=Never": "a", "spec.schedulerName=s": "a", "spec.serviceAccountName=sa": "a", "status.phase=Pending": "b",
			"status.podIP=10.0.0.1": "a", "status.podIP=10.0.0.2": "b", "status.podIPs=10.0.0.1": "", "status.nominatedNodeName=y": "a",
			"metadata.namespace=n,status.phase=Running": "a", "spec.other=x": "400 field label not supported: spec.other",
		}},
		{"/api/v1/nodes", []string{
			`{"apiVersion":"v1","kind":"Node","metadata":{"name":"a"},"spec":{"unschedulable":true}}`,
			`{"apiVersion":"v1","kind":"Node","metadata":{"name":"b"}}`,
		}, map[string]string{"spec.unschedulable=true": "a", "spec.unschedulable=false": "b", "metadata.namespace=n": "400 field label not supported: metadata.namespace"}},
		{"/api/v1/replicationcontrollers", []string{
			`{"apiVersion":"v1","kind":"ReplicationController","metadata":{"namespace":"n","name":"a"},"status":{"replicas":2}}`,
			`{"apiVersion":"v1","kind":"ReplicationController","metadata":{"namespace":"n","name":"b"}}`,
		}, map[string]string{"status.replicas=2": "a", "status.replicas=0": "b"}},
		{"/api/v1/secrets", []string{`{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"n","name":"a"},"type":"t"}`}, map[string]string{"type=t": "a", "type=u": ""}},
		{"/api/v1/services", []string{
			`{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"n","name":"a"},"spec":{"clusterIP":"None","type":"ClusterIP"}}`,
		}, map[string]string{"spec.clusterIP=None": "a", "spec.type!=ClusterIP": ""}},
		{"/apis/batch/v1/jobs", []string{
			`{"apiVersion":"batch/v1","kind":"Job","metadata":{"namespace":"n","name":"a"},"status":{"succeeded":1}}`,
		}, map[string]string{"status.successful=1": "a", "status.successful=0": "", "status.succeeded=1": `400 field label "status.succeeded" not supported for Job`}},
		{"/api/v1/events", []string{
			`{"apiVersion":"v1","kind":"Event","metadata":{"namespace":"n","name":"a"},"involvedObject":{"kind":"Pod","name":"p"},"reason":"Won","reportingComponent":"c"}`,
			`{"apiVersion":"v1","kind":"Event","metadata":{"namespace":"n","name":"b"},"involvedObject":{"kind":"Pod","name":"q"},"source":{"component":"d"},"type":"Normal"}`,
		}, map[string]string{"involvedObject.kind=Pod,involvedObject.name=q": "b", "source=c": "a", "source=d": "b", "reason=Won": "a", "type=Normal": "b", "reportingComponent=c": "a"}},
		{"/apis/certificates.k8s.io/v1/certificatesigningrequests", []string{
			`{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest","metadata":{"name":"a"},"spec":{"signerName":"x/y"}}`,
		}, map[string]string{"spec.signerName=x/y": "a", "spec.signerName=z": ""}},
		{"/api/v1/configmaps", []string{`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":"a"}}`}, map[string]string{
			"metadata.name=a": "a", "metadata.namespace=m": "",
			"data.x=y": `400 "data.x" is not a known field selector: only "metadata.name", "metadata.namespace"`,
			"data":     "400 invalid selector: 'data'; can't understand 'data'",
		}},
		{"/apis/resource.k8s.io/v1/resourceslices", nil, map[string]string{"x=y": "400 field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: x"}},
		{"/apis/test.example.com/v1/paintings", []string{
			`{"apiVersion":"test.example.com/v1","kind":"Painting","metadata":{"namespace":"n","name":"a"},"spec":{"color":"red","frame.size":3}}`,
			`{"apiVersion":"test.example.com/v1","kind":"Painting","metadata":{"namespace":"n","name":"b"}}`,
		}, map[string]string{
			"spec.color=red": "a", "spec.color=": "b", "spec['frame.size']=3": "a",
			"spec.size=1": "400 field label not supported: spec.size",
		}},
	} {
		stored(t, s, c.objects...)
		for selector, want := range c.want {
			if got := asked(t, s, c.path+"?fieldSelector="+url.QueryEscape(selector)); got != want {
				t.Errorf("%s by %q: got %q, want %q", c.path, selector, got, want)
			}
		}
	}
}

// What comes into a selection is added for its watch, what leaves it deleted.
func TestServer_FieldSelectionsHaveTransitions_S17(t *testing.T) {
	for _, c := range []struct{ path, object, selector string }{
		{"/api/v1/pods", `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"n","name":"a"},"status":{"phase":%q}}`, "status.phase=in"},
		{"/apis/test.example.com/v1/paintings", `{"apiVersion":"test.example.com/v1","kind":"Painting","metadata":{"namespace":"n","name":"a"},"spec":{"color":%q}}`, "spec.color=in"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := New(Options{Namespaces: []string{"n"}})
			s.kinds.Install(kinds.FamilyOf(painting.Completed()))
			answer := httptest.NewRecorder()
			var watching sync.WaitGroup
			watching.Go(func() {
				s.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, c.path+"?watch=true&timeoutSeconds=9&fieldSelector="+url.QueryEscape(c.selector), nil))
			})
			time.Sleep(time.Second)
			for _, value := range []string{"out", "in", "in", "out", "in"} {
				// A label is always another: a write that changes nothing is none.
				text := fmt.Sprintf(c.object, value)
				stored(t, s, strings.Replace(text, `"name":"a"`, fmt.Sprintf(`"name":"a","labels":{"n":"%d"}`, s.Revision()), 1))
			}
			watching.Wait()
			var got []string
			for line := range strings.Lines(answer.Body.String()) {
				var event struct {
					Type   string
					Object struct{ Metadata metav1.ObjectMeta }
				}
				if err := json.Unmarshal([]byte(line), &event); err != nil {
					t.Fatal(err)
				}
				got = append(got, event.Type+"@"+event.Object.Metadata.ResourceVersion)
			}
			if got, want := strings.Join(got, " "), "ADDED@3 MODIFIED@4 DELETED@5 ADDED@6"; got != want {
				t.Errorf("%s by %s: got %s, want %s", c.path, c.selector, got, want)
			}
		})
	}
}

// Whatever a selector says, a list has a status that a server gives on purpose.
func FuzzServer_Selectors_S17(f *testing.F) {
	for _, text := range []string{"a=b", "metadata.name=a", "a in (b,c),!d", "spec['frame.size']=3", "x==", ",", "a\\,b=c", "spec[=1", "status.podIP!=", "a>1", "=="} {
		f.Add(text, text)
	}
	s := New(Options{Namespaces: []string{"n"}})
	s.kinds.Install(kinds.FamilyOf(painting.Completed()))
	f.Fuzz(func(t *testing.T, labels, fields string) {
		for _, path := range []string{"/api/v1/pods", "/api/v1/configmaps", "/apis/test.example.com/v1/paintings", "/apis/batch/v1/jobs"} {
			query := url.Values{"labelSelector": {labels}, "fieldSelector": {fields}}
			answer := httptest.NewRecorder()
			s.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path+"?"+query.Encode(), nil))
			if answer.Code != http.StatusOK && answer.Code != http.StatusBadRequest {
				t.Errorf("%s by %q and %q: got %d %s", path, labels, fields, answer.Code, answer.Body)
			}
		}
	})
}
