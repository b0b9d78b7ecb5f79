// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package effects_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/effects"
	"github.com/flyball-dev/flyball/kube"
)

func object(apiVersion, kind, fields string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"namespace":"prod","name":"web","uid":"u","resourceVersion":"7"%s}}`, apiVersion, kind, fields)
}

const (
	dying = `,"deletionTimestamp":"2026-01-01T00:00:00Z"`
	held  = `,"finalizers":["example.com/a"]`
	gone  = `{"kind":"Status","apiVersion":"v1","status":"Success","details":{"uid":"u"}}`
)

var web = kube.Key{Namespace: "prod", Name: "web"}

func describe(all []kube.Written) string {
	var out []string
	for _, w := range all {
		effect := map[kube.WriteEffect]string{kube.Stored: "Stored", kube.Removed: "Removed", kube.Touched: "Touched"}[w.Effect]
		if (w.Object != nil) != (w.Effect == kube.Stored) {
			effect += " with a wrong object"
		}
		out = append(out, fmt.Sprintf("%s %s %s@%d", effect, w.Key, w.UID, w.Version))
	}
	return strings.Join(out, ", ")
}

func TestWrite_EffectsAreWhatTheAnswerSays_R14(t *testing.T) {
	configMap := func(fields string) string { return object("v1", "ConfigMap", fields) }
	metadata := func(fields string) string { return object("meta.k8s.io/v1", "PartialObjectMetadata", fields) }
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	change := effects.Write{Kind: kind, Key: web}
	create := effects.Write{Kind: kind, Key: kube.Key{Namespace: "prod"}}
	remove := effects.Write{Verb: effects.Delete, Kind: kind, Key: web}
	removeAll := effects.Write{Verb: effects.DeleteAll, Kind: kind, Key: kube.Key{Namespace: "prod"}}
	on := func(w effects.Write, sub string) effects.Write { w.Subresource = sub; return w }
	of := func(w effects.Write, kind schema.GroupVersionKind) effects.Write { w.Kind = kind; return w }
	namespace := corev1.SchemeGroupVersion.WithKind("Namespace")
	for _, row := range []struct {
		name   string
		write  effects.Write
		answer string
		want   string
	}{
		{"change", change, configMap(""), "Stored prod/web u@7"},
		{"create", create, configMap(""), "Stored prod/web u@7"},
		{"status", on(change, "status"), configMap(""), "Stored prod/web u@7"},
		{"the last finalizer", change, configMap(dying), "Removed prod/web u@7"},
		{"one finalizer of two", change, configMap(dying + held), "Stored prod/web u@7"},
		{"another version of the kind", of(change, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}), object("apps/v1beta1", "Deployment", ""), "Touched prod/web u@7"},
		{"another name", effects.Write{Kind: kind, Key: kube.Key{Namespace: "prod", Name: "api"}}, configMap(""), "Touched prod/api @0"},
		{"another namespace", effects.Write{Kind: kind, Key: kube.Key{Namespace: "test", Name: "web"}}, configMap(""), "Touched test/web @0"},
		{"create in another namespace", effects.Write{Kind: kind, Key: kube.Key{Namespace: "test"}}, configMap(""), "Touched test/ @0"},
		{"metadata", change, metadata(""), "Stored prod/web u@7"},
		{"metadata, the last finalizer", change, metadata(dying), "Removed prod/web u@7"},
		{"metadata of a namespace that is going", of(change, namespace), metadata(dying), "Touched prod/web u@7"},
		{"metadata of a namespace", of(change, namespace), metadata(""), "Stored prod/web u@7"},
		{"a table", change, `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"rows":[]}`, "Touched prod/web @0"},
		{"scale", on(change, "scale"), object("autoscaling/v1", "Scale", ""), "Touched prod/web u@7"},
		{"eviction", on(change, "eviction"), gone, "Touched prod/web @0"},
		{"nothing", change, "", "Touched prod/web @0"},
		{"an object that does not fit its type", change, strings.Replace(configMap(""), `"v1"`, `"v1","data":7`, 1), "Touched prod/web @0"},
		{"delete", remove, gone, "Removed prod/web u@0"},
		{"delete, finalizers", remove, configMap(dying + held), "Stored prod/web u@7"},
		{"delete of a subresource", on(remove, "status"), gone, "Touched prod/web @0"},
		{"delete of a collection", removeAll, `{"apiVersion":"v1","kind":"ConfigMapList","items":[` + configMap("") + `,` + configMap(held) + `]}`, "Removed prod/web u@0, Touched prod/web u@0"},
	} {
		t.Run(row.name, func(t *testing.T) {
			a, err := effects.Open("application/json", []byte(row.answer))
			if err != nil {
				t.Fatal(err)
			}
			for like, empty := range map[string]func() kube.Object{
				"unstructured": func() kube.Object { return &unstructured.Unstructured{} },
				"typed":        func() kube.Object { return &corev1.ConfigMap{} },
			} {
				want := row.want
				if like == "unstructured" && strings.Contains(row.name, "its type") {
					want = "Stored prod/web u@7"
				}
				if got := describe(row.write.Effects(a, empty)); got != want {
					t.Errorf("%s: got %s, want %s", like, got, want)
				}
			}
		})
	}
}

func TestWrite_EffectsOfProtobufAreThoseOfJSON_R14(t *testing.T) {
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	write := effects.Write{Kind: kind, Key: web}
	obj := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "prod", Name: "web", UID: "u", ResourceVersion: "7"},
		Data:       map[string]string{"a": "1"},
	}
	raw, err := obj.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	envelope := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, Raw: raw}
	body, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	body = append([]byte(effects.ProtobufMagic), body...)
	a, err := effects.Open(runtime.ContentTypeProtobuf, body)
	if err != nil {
		t.Fatal(err)
	}
	got := write.Effects(a, func() kube.Object { return &corev1.ConfigMap{} })
	if describe(got) != "Stored prod/web u@7" || got[0].Object.(*corev1.ConfigMap).Data["a"] != "1" {
		t.Errorf("got %s with %v, want the object as it was stored", describe(got), got[0].Object)
	}
	if got := describe(write.Effects(a, func() kube.Object { return &unstructured.Unstructured{} })); got != "Touched prod/web @0" {
		t.Errorf("got %s of a type that cannot read protobuf, want Touched", got)
	}
	if _, err := effects.Open(runtime.ContentTypeProtobuf, body[:len(body)-3]); err == nil {
		t.Error("half an answer was read as a whole one")
	}
}
