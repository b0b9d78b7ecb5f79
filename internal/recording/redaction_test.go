// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package recording_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/recording"
)

// A field is hidden in every body about its kind, whether the redaction names the kind or the
// resource.
func TestHide_FieldsInEachBody_M28(t *testing.T) {
	const copied = `"metadata":{"annotations":{"a/last-applied":" {\"data\":\"c4n4ry\"}","note":"shown"}}`
	maps := schema.GroupResource{Resource: "configmaps"}
	policies := schema.GroupResource{Group: "web.example.com", Resource: "policies"}
	for _, row := range []struct {
		resource schema.GroupResource
		body     string
	}{
		{maps, `{"apiVersion":"v1","kind":"ConfigMap","data":{"p":"c4n4ry"},` + copied + `}`},
		{maps, `{"data":{"p":"c4n4ry"},` + copied + `}`},
		{maps, `[{"op":"add","path":"/data/p","value":"c4n4ry"},{"op":"test","path":"/data","value":{"p":"c4n4ry"}}]`},
		{maps, `{"apiVersion":"v1","kind":"ConfigMapList","items":[{"data":{"p":"c4n4ry"},` + copied + `}]}`},
		{schema.GroupResource{}, `{"apiVersion":"v1","kind":"ConfigMapList","items":[{"data":{"p":"c4n4ry"}}]}`},
		{schema.GroupResource{}, `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"ConfigMap","data":{"p":"c4n4ry"}}]}`},
		{maps, `{"apiVersion":"v1","kind":"Status","message":"c4n4ry","details":{"causes":[{"message":"c4n4ry"}]}}`},
		{maps, `{"apiVersion":"meta.k8s.io/v1","kind":"Table","rows":[{"cells":["c4n4ry"],"object":{"data":{"p":"c4n4ry"}}}]}`},
		{policies, `{"apiVersion":"web.example.com/v1","kind":"Policy","spec":{"pin":"c4n4ry"}}`},
		{policies, `{"spec":{"pin":"c4n4ry"}}`},
		{policies, `[{"op":"add","path":"/spec/pin","value":"c4n4ry"}]`},
		{policies, `{"apiVersion":"web.example.com/v1","kind":"PolicyList","items":[{"spec":{"pin":"c4n4ry"}}]}`},
	} {
		for _, fields := range [][]string{{"ConfigMap:data", "Policy.web.example.com:spec.pin"}, {"configmaps:data", "policies.web.example.com:spec.pin"}} {
			tree, err := decode("", []byte(row.body))
			if err != nil {
				t.Fatal(err)
			}
			text := string(recording.Hide(fields, row.resource, "", tree))
			if text == "" || strings.Contains(text, canary) || strings.Contains(row.body, "shown") != strings.Contains(text, "shown") {
				t.Errorf("with %q, %s\nis written as %s", fields, row.body, text)
			}
			if again, _ := decode("", []byte(text)); string(recording.Hide(fields, row.resource, "", again)) != text {
				t.Errorf("what is hidden in %s is not hidden the same way again", text)
			}
		}
	}
	if recording.Hide([]string{"x"}, maps, "", map[string]any{}) != nil {
		t.Error("a body is written although the fields are invalid")
	}
}

// What is confidential everywhere is hidden without a redaction.
func TestHide_Confidential_M28(t *testing.T) {
	for _, row := range []struct {
		resource, group, sub, body string
	}{
		{"secrets", "", "", `{"apiVersion":"v1","kind":"Secret","items":[{"x":"c4n4ry"}],"data":{"p":"c4n4ry"}}`},
		{"", "", "", `{"apiVersion":"v1","kind":"Secret","items":[],"data":{"p":"c4n4ry"}}`},
		{"", "", "", `{"apiVersion":"v1","kind":"SecretList","items":[{"data":{"p":"c4n4ry"}},"c4n4ry",["c4n4ry"]]}`},
		{"", "", "", `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Secret","data":{"p":"c4n4ry"}}]}`},
		{"serviceaccounts", "", "token", `{"apiVersion":"v1","kind":"Status","message":"c4n4ry"}`},
		{"tokenreviews", "authentication.k8s.io", "", `{"apiVersion":"v1","kind":"Status","message":"c4n4ry"}`},
		{"tokenreviews", "authentication.k8s.io", "", `{"spec":{"x":"c4n4ry"}}`},
		{"users", "example.com", "", `{"spec":{"Password":"c4n4ry","login":[{"apiKey":"c4n4ry"}]},"token":"c4n4ry"}`},
		{"users", "example.com", "", `[{"op":"add","path":"/spec/password","value":"c4n4ry"},{"op":"add","path":"/spec","value":{"token":"c4n4ry"}}]`},
	} {
		tree, err := decode("", []byte(row.body))
		if err != nil {
			t.Fatal(err)
		}
		resource := schema.GroupResource{Group: row.group, Resource: row.resource}
		if text := string(recording.Hide(nil, resource, row.sub, tree)); text == "" || strings.Contains(text, canary) {
			t.Errorf("%s of %s is written as %s", row.body, resource, text)
		}
	}
}

// Errors about hidden content are hidden, and others are not.
func TestAnswer_ErrorsAboutHiddenContent_M28(t *testing.T) {
	b, _ := written(t, recording.Options{Redact: []string{"Site.example.com:spec"}}, func(_ *recording.Recorder, w *recording.Window) {
		w.Informer(recording.Source{Kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Site"}},
			yields(&unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"x": canary}}}))
		for _, resource := range []schema.GroupResource{{Resource: "secrets"}, {Group: "example.com", Resource: "sites"}, {Resource: "pods"}} {
			c := recording.Content{Resource: resource}
			run := w.Begin("c", "k", "")
			text := "shown"
			if resource.Resource != "pods" {
				text = canary
			}
			run.Answer(run.Request(http.MethodGet, "/x", c), 0, "", c, errors.New(text))
			run.End("error", 0, text)
			run = w.Begin("c", "k", "")
			run.Answer(run.Request(http.MethodGet, "/x", c), 422, "", c, nil)
			run.End("error", 0, text)
			run = w.Begin("c", "k", "")
			run.Answer(run.Request(http.MethodGet, "/x", c), 404, "", c, nil)
			run.End("error", 0, "shown")
		}
	})
	var shown int
	for _, e := range b.Entries {
		if strings.Contains(e.Error+string(e.Object), canary) {
			t.Errorf("%+v has what is hidden", e)
		}
		if e.Error == "shown" {
			shown++
		}
	}
	if shown != 6 {
		t.Errorf("%d errors are shown, want 4 about Pods, and 2 about missing objects", shown)
	}
}
