// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/flyball-dev/flyball/simulate/internal/decode"
)

// A body of JSON that is read as such is what a reader of YAML reads.
func FuzzPlainFields_S7(f *testing.F) {
	for _, text := range []string{
		`{"a":{"b":[1,-2,true,null,"x"],"c":""}}`, `{"a":"\u003cb\u003e\\u\/\n\u0000\u0085"}`, `{"a":1.0}`, `{"a":-0}`, `{"a":12345678901234567890}`, `{"a":1e3}`,
		`{"a":1,"a":2}`, `{"a" : 1 , "b":{}}` + "\n", `{"<<":{"a":1}}`, `{"true":"yes","y":"2001-01-01","null":"~"}`, `{"a":"\ud83d\ude00"}`, `{"a":"é"}`, `{"a":"\`, `{"a":"\u00`,
		`{` + strings.Repeat(" ", 2000) + `"a":1}`, `{"` + strings.Repeat("a", 1200) + `":1}`, `{"a":"` + strings.Repeat("b ", 2000) + `","c":1}`, `{}x`, `{"a":"# b: c","d":"- e"}`, `{"!a":"&b *c"}`,
		"{\"a\":\"\x7f\"}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, ok := decode.PlainFields(body)
		if !ok {
			return
		}
		want := map[string]any{}
		if err := unmarshalYAML(body, &want, true); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %v, want %v, %v", body, got, want, err)
		}
	})
}

// mergePatches are done in turns, each to what the ones before have left.
var mergePatches = []string{
	`{"data":{"b":"2","c":null}}`, `{"data":null}`, `{"data":{"d":"4"},"metadata":{"labels":{"x":"y"},"annotations":{"n":null}}}`, `{"metadata":{"labels":null},"immutable":false}`,
	`{"binaryData":{"e":"AQI="}}`, `{"data":{"n":1}}`, `{"data":["x"]}`, `{"data":"x"}`, `{"odd":1}`, `{"metadata":null}`, `{"metadata":{"name":"other"}}`, `{"kind":"Secret"}`, `{"apiVersion":"v2"}`,
	`{"metadata":{"finalizers":["x/y",null]}}`, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"X","name":"x","uid":"u","controller":null}]}}`, `{"metadata":{"generation":1.0}}`,
	`{"metadata":{"managedFields":[{}]}}`, `{"metadata":{"managedFields":[]}}`, `{"metadata":{"deletionGracePeriodSeconds":5,"creationTimestamp":null}}`, `{"metadata":{"creationTimestamp":"x"}}`, `{"immutable":"x"}`, `{"binaryData":{"e":"?"}}`,
	`{"metadata":{"resourceVersion":"1"}}`, `{"metadata":{"Name":"x"},"Data":{}}`, `{}`,
}

// A merge patch that is done without a text in between leads to what it leads
// to with one.
func TestServer_MergePatchesAreDoneAlike_S8(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{})
		stored(t, s, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"a","annotations":{"n":"m"}},"data":{"a":"1","c":"3"}}`)
		for n, patch := range mergePatches {
			req := httptest.NewRequest(http.MethodPatch, "/api/v1/namespaces/default/configmaps/a?fieldManager=m", strings.NewReader(patch))
			req.Header.Set("Content-Type", "application/merge-patch+json")
			c := s.route(req)
			q, err := c.writing()
			if err != nil {
				t.Fatal(err)
			}
			tried, err := q.readPatch()
			if err != nil {
				t.Fatal(err)
			}
			_, old, err := s.current(q)
			if err != nil {
				t.Fatal(err)
			}
			got, err := q.patched(tried, old)
			said := fmt.Sprint(err, q.warnings)
			tried.Merging, q.warnings = nil, nil
			want, err := q.patched(tried, old)
			if wrong := fmt.Sprint(err, q.warnings); said != wrong {
				t.Errorf("%s:\ngot  %s\nwant %s", patch, said, wrong)
			}
			if err == nil && !reflect.DeepEqual(got.Fields, want.Fields) {
				t.Errorf("%s:\ngot  %v\nwant %v", patch, got.Fields, want.Fields)
			}
			if n < 5 { // the next one is of what this one makes
				text, err := json.Marshal(want.Fields)
				if err != nil {
					t.Fatal(err)
				}
				stored(t, s, string(text))
			}
		}
	})
}
