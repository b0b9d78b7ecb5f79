// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package write

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/decode"
)

// A body that is read as JSON has the fields that a reader of YAML finds in it.
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

// mergePatches are applied one after the other, the first five each to the result of the last.
var mergePatches = []string{
	`{"data":{"b":"2","c":null}}`, `{"data":null}`, `{"data":{"d":"4"},"metadata":{"labels":{"x":"y"},"annotations":{"n":null}}}`, `{"metadata":{"labels":null},"immutable":false}`,
	`{"binaryData":{"e":"AQI="}}`, `{"data":{"n":1}}`, `{"data":["x"]}`, `{"data":"x"}`, `{"odd":1}`, `{"metadata":null}`, `{"metadata":{"name":"other"}}`, `{"kind":"Secret"}`, `{"apiVersion":"v2"}`,
	`{"metadata":{"finalizers":["x/y",null]}}`, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"X","name":"x","uid":"u","controller":null}]}}`, `{"metadata":{"generation":1.0}}`,
	`{"metadata":{"managedFields":[{}]}}`, `{"metadata":{"managedFields":[]}}`, `{"metadata":{"deletionGracePeriodSeconds":5,"creationTimestamp":null}}`, `{"metadata":{"creationTimestamp":"x"}}`, `{"immutable":"x"}`, `{"binaryData":{"e":"?"}}`,
	`{"metadata":{"resourceVersion":"1"}}`, `{"metadata":{"Name":"x"},"Data":{}}`, `{}`,
}

// A merge patch that is applied without text in between has the result and the warnings of
// one that is applied to text.
func TestRequest_MergePatchesAreAlike_S8(t *testing.T) {
	q := about("update", runtime.ContentTypeJSON, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"a","uid":"u","resourceVersion":"7","annotations":{"n":"m"}},"data":{"a":"1","c":"3"}}`)
	old, err := q.decode()
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Own(nil, old); err != nil {
		t.Fatal(err)
	}
	for n, body := range mergePatches {
		q := about("patch", string(types.MergePatchType), body)
		patch, err := q.readPatch()
		if err != nil {
			t.Fatal(err)
		}
		got, err := q.patched(patch, old)
		said := fmt.Sprint(err, q.Warnings)
		patch.Merging, q.Warnings = nil, nil
		want, err := q.patched(patch, old)
		if wrong := fmt.Sprint(err, q.Warnings); said != wrong {
			t.Errorf("%s:\ngot  %s\nwant %s", body, said, wrong)
		}
		if err == nil && !reflect.DeepEqual(got.Fields, want.Fields) {
			t.Errorf("%s:\ngot  %v\nwant %v", body, got.Fields, want.Fields)
		}
		if n < 5 { // later patches apply to the result
			if err != nil {
				t.Fatal(err)
			}
			old = want
		}
	}
}
