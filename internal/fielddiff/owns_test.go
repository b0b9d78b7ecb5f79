// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package fielddiff_test

import (
	"testing"

	"github.com/flyball-dev/flyball/internal/fielddiff"
)

// A set of fields, as an entry of managedFields has it, has the fields that fielddiff names.
func TestOwns(t *testing.T) {
	set := []byte(`{"f:metadata":{"f:labels":{".":{},"f:app.kubernetes.io/name":{}}},
		"f:spec":{"f:replicas":{},"f:selector":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{}}},"f:tolerations":{}}}},
		"f:data":{"f:a.b":{}},"f:list":{"v:\"x\"":{}},"f:other":{"f:[0]":{}}}`)
	for path, want := range map[string]bool{
		"spec.replicas": true, "spec.paused": false, "spec": true, "status.replicas": false, "": false, "replicas": false,
		`metadata.labels["app.kubernetes.io/name"]`: true, `metadata.labels["app"]`: false, `metadata.labels`: true,
		"spec.template.spec.containers[1].image": true, "spec.template.spec.containers[0].command": false,
		"spec.template.spec.tolerations[0].key": true, "spec.selector.matchLabels": true,
		`data["a.b"]`: true, "data.a.b": false, "list[0]": true, "list": true, "other[0]": false, "spec.repl…": false, `data["a.b`: false, "spec.": false, "spec..replicas": false,
		`metadata.labels["app.kubernetes.io/name"].more`: true,
	} {
		if got := fielddiff.Owns(set, path); got != want {
			t.Errorf("Owns(%q) = %v, want %v", path, got, want)
		}
	}
	for _, set := range []string{"", "{}", "null", "[]", `{"f:spec"`, `"x"`} {
		if fielddiff.Owns([]byte(set), "spec.replicas") {
			t.Errorf("the set %s has a field", set)
		}
	}
}
