// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"bytes"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/internal/decodelimit"
)

// FuzzDecode_Unstructured checks that an object without a Go type equals
// apimachinery's result for the same text, or is an error where that is.
func FuzzDecode_Unstructured(f *testing.F) {
	for _, seed := range []string{
		fixture.JSONSite("a", `{"replicas":1,"share":0.5,"big":9007199254740993,"minus":-0,"exp":1e3,"none":null,"list":[1,"a",{}]}`),
		`{"apiVersion":"example.com/v1","kind":"Site","metadata":{"name":"a","managedFields":[{"manager":"m"}]}}`,
		`{"kind":"Site","metadata":{"name":"a"},"metadata":{"name":"b","managedFields":null}}`,
		`{"apiVersion":"example.com/v2","kind":"Site","metadata":{"name":"a"}}`, `{"kind":"Site","metadata":{"name":5}}`, `{"kind":"Site"}`, `{"kind":"Pod","metadata":{"name":"a"}}`,
		`null`, `[]`, `{"kind":"Site","items":[]}`, "{\"kind\":\"Site\",\"metadata\":{\"name\":\"\xff\"}}", `{"Kind":"Site","metadata":{"name":"a"}}`,
	} {
		f.Add([]byte(seed))
	}
	whole, err := NewDecoder(reflect.TypeFor[fixture.Loose](), fixture.SiteKind, true)
	if err != nil {
		f.Fatal(err)
	}
	cut := decoderOf[fixture.Loose](f, fixture.SiteKind)
	f.Fuzz(func(t *testing.T, raw []byte) {
		want := &unstructured.Unstructured{}
		_, _, err := unstructured.UnstructuredJSONScheme.Decode(raw, nil, want)
		valid := err == nil && want.GetKind() == "Site" && want.GetName() != "" && (want.GetAPIVersion() == "" || want.GetAPIVersion() == "example.com/v1")
		item := whole.jsonItem(bytes.Clone(raw), true, decodelimit.Alone())
		if valid != (item.Err == nil) {
			t.Fatalf("%q: got error %v, want valid %v (apimachinery: %v)", raw, item.Err, valid, err)
		}
		if valid {
			want.Object["apiVersion"] = "example.com/v1" // of its list or watch
			if !reflect.DeepEqual(item.Object, want) {
				t.Fatalf("%q:\ngot  %#v\nwant %#v", raw, item.Object, want)
			}
		}
		if item := cut.jsonItem(bytes.Clone(raw), true, decodelimit.Alone()); item.Err == nil {
			metadata, _ := item.Object.(fixture.Loose).Object["metadata"].(map[string]any)
			if _, left := metadata["managedFields"]; left {
				t.Fatalf("%q: managedFields are left", raw)
			}
		}
	})
}
