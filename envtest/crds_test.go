// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func crdNames(objects []runtime.Object) []string {
	var names []string
	for _, object := range objects {
		names = append(names, object.(*unstructured.Unstructured).GetName())
	}
	return names
}

func TestParseCRDs(t *testing.T) {
	const crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.b}\n"
	for _, tc := range []struct {
		name, in string
		want     []string
		wantErr  string
	}{
		{name: "nothing", in: ""},
		{name: "empty documents and comments", in: "---\n# none\n---\n" + crd + "---\n", want: []string{"a.b"}},
		{name: "other kinds are passed over", in: "apiVersion: v1\nkind: Namespace\nmetadata: {name: n}\n---\n" + crd, want: []string{"a.b"}},
		{name: "no kind at all", in: "resources: [a.yaml]\n"},
		{name: "JSON", in: `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"j.b"}}`, want: []string{"j.b"}},
		{name: "old version", in: strings.Replace(crd, "/v1", "/v1beta1", 1), wantErr: `read the CRD "a.b": its version is apiextensions.k8s.io/v1beta1`},
		{name: "no YAML", in: "a: [b", wantErr: "read CRDs: "},
		{name: "no object", in: "- a\n- b\n", wantErr: "read CRDs: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := ParseCRDs(strings.NewReader(tc.in))
			if (tc.wantErr == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Fatalf("ParseCRDs(%q): error %v, want %q", tc.in, err, tc.wantErr)
			}
			if names := crdNames(got); !slices.Equal(names, tc.want) {
				t.Errorf("ParseCRDs(%q) = %v, want %v", tc.in, names, tc.want)
			}
		})
	}
}

func TestParseCRDs_NumbersKeepTheirDigits(t *testing.T) {
	const big = int64(9007199254740993) // a float64 would round it
	in := `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a.b"},"spec":{"maximum":9007199254740993}}`
	crds, err := ParseCRDs(strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := unstructured.NestedInt64(crds[0].(*unstructured.Unstructured).Object, "spec", "maximum")
	if got != big || err != nil {
		t.Errorf("maximum = %d, %v, want %d: a schema's bound was changed on the way", got, err, big)
	}
}

func TestReadCRDs_NamesTheWrongPath(t *testing.T) {
	empty := t.TempDir()
	for path, want := range map[string]string{
		"testdata/none.yaml": "testdata/none.yaml: no such file",
		empty:                "has no CustomResourceDefinition",
	} {
		if _, err := readCRDs([]string{path}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("readCRDs(%q): error %v, want one with %q", path, err, want)
		}
	}
	if crds, err := readCRDs([]string{"testdata", "testdata/crds.yaml"}); err != nil || len(crds) != 4 {
		t.Errorf("readCRDs of a directory and of its file = %d CRDs, %v, want 2 + 2", len(crds), err)
	}
}

func TestCRDsOf_WhatCanBeApplied(t *testing.T) {
	given := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "a.b", "creationTimestamp": nil},
		"spec":     map[string]any{"minimum": 1}, // as programs write it, and no decoder does
		"status":   map[string]any{"conditions": nil},
	}}
	crds, err := crdsOf([]runtime.Object{given})
	if err != nil {
		t.Fatal(err)
	}
	if got := crds[0]; got.GetKind() != crdKind || got.GetAPIVersion() != crdAPIVersion || got.Object["status"] != nil {
		t.Errorf("got %v, want kind and version filled in and no status", got.Object)
	}
	if given.GetKind() != "" || given.Object["status"] == nil {
		t.Errorf("the caller's object was changed: %v", given.Object)
	}
	for name, wrong := range map[string]runtime.Object{
		"nil":        nil,
		"no name":    &unstructured.Unstructured{Object: map[string]any{}},
		"other kind": &unstructured.Unstructured{Object: map[string]any{"kind": "Pod", "metadata": map[string]any{"name": "p"}}},
	} {
		if _, err := crdsOf([]runtime.Object{wrong}); err == nil {
			t.Errorf("%s: no error, want one", name)
		}
	}
}

func TestCRDState_Judge(t *testing.T) {
	type condition = struct {
		Type    string `json:"type"`
		Status  string `json:"status"`
		Reason  string `json:"reason"`
		Message string `json:"message"`
	}
	for _, tc := range []struct {
		name          string
		conditions    []condition
		waiting, fail bool
	}{
		{name: "new", waiting: true},
		{name: "accepted only", conditions: []condition{{Type: "NamesAccepted", Status: "True"}}, waiting: true},
		{name: "established", conditions: []condition{{Type: "NamesAccepted", Status: "True"}, {Type: "Established", Status: "True"}}},
		{name: "refused", conditions: []condition{{Type: "NamesAccepted", Status: "False", Reason: "PluralConflict"}}, fail: true},
	} {
		var state crdState
		state.Status.Conditions = append(state.Status.Conditions, tc.conditions...)
		waiting, err := state.accepted()
		if (waiting != nil) != tc.waiting || (err != nil) != tc.fail {
			t.Errorf("%s: waiting %v, error %v, want waiting %t, error %t", tc.name, waiting, err, tc.waiting, tc.fail)
		}
	}
}

func TestDiscovered(t *testing.T) {
	const aggregated = `{"items":[{"metadata":{"name":"g"},"versions":[{"version":"v1","resources":[{"resource":"things"}]}]}]}`
	const groups = `{"groups":[{"name":"g","versions":[{"version":"v1"}]}]}`
	for _, tc := range []struct {
		answer, version, resource string
		want                      bool
	}{
		{aggregated, "v1", "things", true},
		{aggregated, "v2", "things", false},
		{aggregated, "v1", "others", false},
		{groups, "v1", "things", true},
		{groups, "v2", "things", false},
		{`no JSON`, "v1", "things", false},
	} {
		if got := discovered([]byte(tc.answer), "g", tc.version, tc.resource); got != tc.want {
			t.Errorf("discovered(%s, g/%s %s) = %t, want %t", tc.answer, tc.version, tc.resource, got, tc.want)
		}
	}
}

func FuzzParseCRDs(f *testing.F) {
	f.Add([]byte("kind: List\nitems: [{kind: CustomResourceDefinition}]"))
	f.Add([]byte("---\n---\n{}"))
	f.Add([]byte(`{"kind":"List","items":[1]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		crds, err := ParseCRDs(bytes.NewReader(in))
		if err != nil {
			if len(crds) > 0 {
				t.Errorf("%d CRDs beside the error %v: a caller could install half a file", len(crds), err)
			}
			return
		}
		// A CRD without a name is refused; only a failed conversion wraps an error.
		if _, err := crdsOf(crds); errors.Unwrap(err) != nil {
			t.Errorf("what was read cannot be turned into objects: %v", err)
		}
	})
}
