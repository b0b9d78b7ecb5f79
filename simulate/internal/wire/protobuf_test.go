// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/models"
	"github.com/flyball-dev/flyball/simulate/internal/wire"
)

// TestMessages_AreThoseOfTheGoTypes_S28 fills an object of each built-in kind at random,
// and compares the encoding of its fields with that of its Go type.
func TestMessages_AreThoseOfTheGoTypes_S28(t *testing.T) {
	messages := &wire.ProtoMessages{}
	fill := randfill.NewWithSeed(1).NilChance(0.2).NumElements(1, 2).MaxDepth(14).Funcs(
		func(at *metav1.Time, c randfill.Continue) {
			at.Time = time.Unix(c.Int63n(1<<33), 0).UTC()
		},
		func(at *metav1.MicroTime, c randfill.Continue) {
			at.Time = time.Unix(c.Int63n(1<<33), c.Int63n(1e6)*1000).UTC()
		},
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse([]string{"0", "250m", "64Mi", "1500", "-3", "1e9", "2.5Gi"}[c.Intn(7)])
		},
		func(v *intstr.IntOrString, c randfill.Continue) {
			*v = []intstr.IntOrString{intstr.FromInt32(c.Int31()), intstr.FromString("25%")}[c.Intn(2)]
		},
		func(raw *runtime.RawExtension, c randfill.Continue) {
			raw.Raw = []byte(`{"a":{"b":["<c>",1,null]}}`)
		},
		func(fields *metav1.FieldsV1, c randfill.Continue) {
			*fields = *metav1.NewFieldsV1(`{"f:metadata":{"f:name":{}}}`)
		},
		func(s *string, c randfill.Continue) {
			*s = []string{"", "plain", "ümläut & <tag>", strings.Repeat("long", 60)}[c.Intn(4)]
		},
		func(n *int64, c randfill.Continue) { *n = c.Int63() - c.Int63() },
	)
	var written, left []string
	all := kinds.NewRegistry().Served(func(k *kinds.Kind) bool { return k.Builtin })
	slices.SortFunc(all, func(a, b *kinds.Kind) int {
		return cmp.Compare(a.GroupVersionKind.String(), b.GroupVersionKind.String())
	})
	for _, kind := range all {
		name := kind.GroupVersionKind.String()
		if _, ok := messages.Append(nil, kind.GroupVersionKind, nil, nil); !ok {
			left = append(left, name)
			continue
		}
		written = append(written, name)
		for round := range 20 {
			typed, err := models.Scheme().New(kind.GroupVersionKind)
			if err != nil {
				t.Fatal(err)
			}
			if round > 0 { // the first is empty
				fill.Fill(typed)
			}
			compareMessages(t, messages, kind, typed)
		}
	}
	t.Logf("%d kinds are written from their fields; left to their Go types: %s", len(written), strings.Join(left, ", "))
	if pods := (schema.GroupVersionKind{Version: "v1", Kind: "Pod"}).String(); !slices.Contains(written, pods) {
		t.Errorf("%s is left to its Go type", pods)
	}
}

func compareMessages(t *testing.T, messages *wire.ProtoMessages, kind *kinds.Kind, typed runtime.Object) {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return // a value that has no JSON
	}
	read, _ := models.Scheme().New(kind.GroupVersionKind)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, read); err != nil {
		t.Fatal(err)
	}
	want, err := read.(interface{ Marshal() ([]byte, error) }).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	got, ok := messages.Append(nil, kind.GroupVersionKind, fields, nil)
	if !ok && hasNull(fields) {
		return
	}
	if !ok {
		t.Fatalf("%s: a value was not taken: %v", kind.Kind, fields)
	}
	if !bytes.Equal(got, want) {
		at := 0
		for at < min(len(got), len(want)) && got[at] == want[at] {
			at++
		}
		t.Fatalf("%s: %d bytes, want %d; they differ from byte %d on: %s", kind.Kind, len(got), len(want), at,
			fmt.Sprintf("%q, want %q", got[max(0, at-20):min(len(got), at+40)], want[max(0, at-20):min(len(want), at+40)]))
	}
}

// hasNull reports whether an element or an entry is null, which only the Go type handles.
func hasNull(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, each := range v {
			if each == nil || hasNull(each) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(each any) bool { return each == nil || hasNull(each) })
	}
	return false
}

// TestMessages_LeaveOtherValuesToTheGoType_S28: the Go type refuses values that are not of
// a field's type.
func TestMessages_LeaveOtherValuesToTheGoType_S28(t *testing.T) {
	messages, pod := &wire.ProtoMessages{}, &kinds.Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}}
	for _, spec := range []map[string]any{
		{"nodeName": int64(1)},
		{"priority": int64(1) << 40},
		{"hostNetwork": "yes"},
		{"containers": "none"},
		{"containers": []any{"none"}},
		{"nodeSelector": []any{}},
		{"activeDeadlineSeconds": 1.5},
		{"overhead": map[string]any{"cpu": "much"}},
		{"overhead": map[string]any{"cpu": "1000m"}}, // encoded as 1
		{"readinessGates": []any{nil}},
	} {
		if raw, ok := messages.Append(nil, pod.GroupVersionKind, map[string]any{"spec": spec}, nil); ok {
			t.Errorf("%v: %d bytes were written, want none", spec, len(raw))
		}
	}
}
