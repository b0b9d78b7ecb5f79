// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What two samples of a kind have in common is changed in one of them. Their walks have names of their own.
func TestDifferent_SamplesOfAKind(t *testing.T) {
	sample := func(name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"kind": "Shop"}}
		u.SetName(name)
		return u
	}
	size := func(was int64) mutation {
		return mutation{path: path{"spec", "size"}, how: "changed", was: was, value: was + 1}
	}
	one, two := sample("one"), sample("two")
	var got []string
	for _, f := range different([]fieldOf{{sample: one, mutation: size(1)}, {sample: two, mutation: size(1)}, {sample: two, mutation: size(2)}}) {
		got = append(got, f.name())
	}
	if want := "Shop spec.size changed, Shop two spec.size changed"; strings.Join(got, ", ") != want {
		t.Errorf("the walks are %q, want %s", got, want)
	}
}
