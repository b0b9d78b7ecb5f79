// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/models"
	"github.com/flyball-dev/flyball/simulate/internal/wire"
)

const ofMeta = ";g=meta.k8s.io;v=v1"

// reply is what a server answers to a GET in a form.
func reply(s *Server, path, accept string, header ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(http.MethodGet, path, nil)
	req.Header.Set("Accept", accept)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	answer := httptest.NewRecorder()
	s.ServeHTTP(answer, req)
	return answer
}

// inForm is the object of an answer, read back from its form.
func inForm(t *testing.T, form string, body []byte) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	var err error
	switch form {
	case encode.ContentJSON:
		err = json.Unmarshal(body, pod)
	case encode.ContentYAML:
		err = yaml.UnmarshalStrict(body, pod)
	case encode.ContentProtobuf:
		_, _, err = models.Codecs().UniversalDeserializer().Decode(body, nil, pod)
		pod.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	case encode.AsTable:
		var table metav1.Table
		if err = json.Unmarshal(body, &table); err == nil {
			err = json.Unmarshal(table.Rows[0].Object.Raw, pod)
		}
	}
	if err != nil {
		t.Fatalf("%s: %v in %q", form, err, body)
	}
	return pod
}

// Whatever form an object is asked for in, and whether it is asked for alone,
// in a list or is told of, it is the same object.
func TestServer_AllFormsShowOneObject_S16(t *testing.T) {
	s := New(Options{Namespaces: []string{"n"}})
	stored(t, s, `{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":"n","name":"a","labels":{"<&>":"é\u2028\"\\"},"annotations":{"text":"line\nline\ttab","quoted":"\"word\""}},"spec":{"containers":[{"name":"c","resources":{"limits":{"cpu":"1500m"}},"ports":[{"containerPort":80}]}],"terminationGracePeriodSeconds":0},"status":{"phase":"Running","startTime":"2026-01-02T03:04:05Z"}}`)
	const path = "/api/v1/namespaces/n/pods"
	want := inForm(t, encode.ContentJSON, reply(s, path+"/a", encode.ContentJSON).Body.Bytes())
	if want.Labels["<&>"] != "é\u2028\"\\" || want.Status.Phase != corev1.PodRunning || want.Spec.Containers[0].Ports[0].ContainerPort != 80 {
		t.Fatalf("got %+v, want what was stored", want)
	}
	for _, form := range []string{encode.ContentYAML, encode.ContentProtobuf} {
		if got := inForm(t, form, reply(s, path+"/a", form).Body.Bytes()); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got  %+v\nwant %+v", form, got, want)
		}
	}
	for name, query := range map[string]string{"pretty": "?pretty=true", "in a table": "?includeObject=Object"} {
		form, accept := encode.ContentJSON, encode.ContentJSON
		if name == "in a table" {
			form, accept = encode.AsTable, encode.ContentJSON+";as=Table"+ofMeta
		}
		if got := inForm(t, form, reply(s, path+"/a"+query, accept).Body.Bytes()); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got  %+v\nwant %+v", name, got, want)
		}
	}
	for _, form := range []string{encode.ContentJSON, encode.ContentYAML, encode.ContentProtobuf} {
		list := &corev1.PodList{}
		if _, _, err := models.Codecs().UniversalDeserializer().Decode(reply(s, path, form).Body.Bytes(), nil, list); err != nil || len(list.Items) != 1 {
			t.Fatalf("list as %s: %v, %d items", form, err, len(list.Items))
		}
		list.Items[0].TypeMeta = want.TypeMeta
		if !reflect.DeepEqual(&list.Items[0], want) {
			t.Errorf("list as %s: got  %+v\nwant %+v", form, list.Items[0], want)
		}
	}
	var event struct{ Object json.RawMessage }
	synctest.Test(t, func(t *testing.T) {
		if err := json.Unmarshal(reply(s, path+"?watch=true&timeoutSeconds=1", encode.ContentJSON).Body.Bytes(), &event); err != nil {
			t.Fatal(err)
		}
	})
	if got := inForm(t, encode.ContentJSON, event.Object); !reflect.DeepEqual(got, want) {
		t.Errorf("watched: got  %+v\nwant %+v", got, want)
	}
	for _, accept := range []string{encode.ContentJSON, encode.ContentYAML, encode.ContentJSON + ";as=Table"} {
		as := ";as=PartialObjectMetadata"
		if strings.Contains(accept, "Table") {
			as = ""
		}
		var partial struct {
			metav1.PartialObjectMetadata
			Rows []struct{ Object metav1.PartialObjectMetadata }
		}
		if err := yaml.Unmarshal(reply(s, path+"/a", accept+as+ofMeta).Body.Bytes(), &partial); err != nil {
			t.Fatal(err)
		}
		got := partial.ObjectMeta
		if as == "" {
			got = partial.Rows[0].Object.ObjectMeta
		}
		if !reflect.DeepEqual(got, want.ObjectMeta) {
			t.Errorf("metadata as %s: got  %+v\nwant %+v", accept, got, want.ObjectMeta)
		}
	}
}

// What is kept of an object's forms is of that version of it alone.
func TestServer_KeptFormsAreOfTheirVersion_S16(t *testing.T) {
	s := New(Options{Namespaces: []string{"n"}})
	for n := range 3 {
		stored(t, s, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":"a"},"data":{"v":"%d"}}`, n))
		for range 2 { // the second is kept
			for _, accept := range []string{encode.ContentJSON, encode.ContentProtobuf, encode.ContentJSON + ";as=PartialObjectMetadata" + ofMeta} {
				body := reply(s, "/api/v1/namespaces/n/configmaps/a", accept).Body.String()
				if want := fmt.Sprint(s.Revision()); !strings.Contains(body, want) {
					t.Errorf("%s: got %q, want version %s", accept, body, want)
				}
			}
		}
	}
}

func TestEncodings_AreBounded_S16(t *testing.T) {
	s := New(Options{Namespaces: []string{"n"}})
	s.encodings.AtMost = 4 << 20
	value := strings.Repeat("x", 256<<10)
	for n := range 20 {
		stored(t, s, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":"a%d"},"data":{"v":%q}}`, n, value))
		if body := reply(s, fmt.Sprintf("/api/v1/namespaces/n/configmaps/a%d", n), encode.ContentJSON).Body; !strings.Contains(body.String(), value) {
			t.Fatalf("a%d is not answered whole", n)
		}
	}
	if n := s.encodings.Size(); n > s.encodings.AtMost || n < s.encodings.AtMost/2 {
		t.Errorf("%d bytes are kept, want at most %d, and not much less", n, s.encodings.AtMost)
	}
	if body := reply(s, "/api/v1/namespaces/n/configmaps/a0", encode.ContentJSON).Body; !strings.Contains(body.String(), value) {
		t.Error("what was given up is not made anew")
	}
}

// A large answer comes in parts, compressed for who takes that.
func TestServer_LargeListsArePackedForWhoTakesIt_S16(t *testing.T) {
	s := New(Options{Namespaces: []string{"n"}})
	for n := range 100 {
		stored(t, s, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"n","name":"a%02d"},"data":{"v":%q}}`, n, strings.Repeat("x", 2000)))
	}
	for _, accept := range []string{encode.ContentJSON, encode.ContentYAML, encode.ContentProtobuf, encode.ContentJSON + ";as=PartialObjectMetadataList" + ofMeta} {
		plain := reply(s, "/api/v1/configmaps", accept)
		packed := reply(s, "/api/v1/configmaps", accept, "Accept-Encoding", "deflate, gzip;q=1")
		small := reply(s, "/api/v1/configmaps?limit=1", accept, "Accept-Encoding", "gzip")
		if plain.Header().Get("Content-Encoding")+small.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s: a small answer, or one for who does not take it, is compressed", accept)
		}
		if plain.Body.Len() < encode.AnswerAtOnce {
			continue // the metadata alone
		}
		zip, err := gzip.NewReader(packed.Body)
		if err != nil {
			t.Errorf("%s: %v", accept, err)
			continue
		}
		if body, err := io.ReadAll(zip); err != nil || !bytes.Equal(body, plain.Body.Bytes()) {
			t.Errorf("%s: compressed it is another answer: %v", accept, err)
		}
	}
}

func FuzzAppendJSON_S16(f *testing.F) {
	for _, text := range []string{`{"a":[1,-2.5,1e300,true,null,"x"],"b":{},"c":[],"":"\u2028<>&\"\\\n\u0000é"}`, `[]`, `"x"`, `{"z":1,"a":{"b":{"c":[[],{}]}}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		fields := map[string]any{}
		if err := json.Unmarshal(text, &fields); err != nil {
			return
		}
		if strings.Contains(string(text), "7") {
			fields["count"] = int64(len(text))
		}
		want, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := wire.AppendJSON(nil, fields); err != nil || !bytes.Equal(got, want) {
			t.Errorf("got  %s, %v\nwant %s", got, err, want)
		}
	})
}
