// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// createdFields returns the fields that kube-controller-manager owns in a Pod that it
// created like template. What admission adds is nobody's.
func createdFields(template *corev1.Pod) string {
	pod := fieldsOf(template)
	meta := pod["metadata"].(map[string]any)
	delete(meta, "creationTimestamp")
	return fieldsText(map[string]any{"metadata": meta, "spec": pod["spec"]})
}

// kubeletEntry returns the entry of the kubelet in a Pod with its status.
func kubeletEntry(pod *corev1.Pod) metav1.ManagedFieldsEntry {
	at := pod.CreationTimestamp.Unix()
	for _, c := range pod.Status.Conditions {
		at = max(at, c.LastTransitionTime.Unix())
	}
	status := pod.Status.DeepCopy()
	status.QOSClass = "" // the API server sets it
	fields := fieldsOf(&corev1.Pod{Status: *status})
	return entry("kubelet", "status", at, fieldsText(map[string]any{"status": fields["status"]}))
}

func entry(manager, subresource string, at int64, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: of(metav1.Unix(at, 0)),
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields), Subresource: subresource,
	}
}

func fieldsOf(pod *corev1.Pod) map[string]any {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err != nil {
		panic(fmt.Sprintf("convert a Pod: %v", err)) // a type of k8s.io/api always converts
	}
	return fields
}

// listKeys are the keys of the items of lists that are maps for server-side apply, by the
// name of the field; other lists are owned as a whole.
var listKeys = map[string][]string{
	"containers": {"name"}, "initContainers": {"name"}, "env": {"name"}, "volumes": {"name"}, "imagePullSecrets": {"name"},
	"ports": {"containerPort", "protocol"}, "volumeMounts": {"mountPath"}, "ownerReferences": {"uid"},
	"topologySpreadConstraints": {"topologyKey", "whenUnsatisfiable"}, "conditions": {"type"}, "podIPs": {"ip"},
}

// whole are structs, and items of lists, that are owned as a whole.
var whole = []string{"ownerReferences", "imagePullSecrets", "fieldRef", "secretKeyRef", "resourceFieldRef", "nodeSelector", "labelSelector"}

// always are fields that exist in the empty object, too: nobody owns the field itself.
var always = []string{"metadata", "spec", "status", "containers"}

// fieldsText returns the FieldsV1 of an object whose fields are all owned.
func fieldsText(object map[string]any) string {
	var out strings.Builder
	out.WriteByte('{')
	writeFields(&out, object)
	out.WriteByte('}')
	return out.String()
}

func writeFields(out *strings.Builder, object map[string]any) {
	for i, name := range slices.Sorted(maps.Keys(object)) {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString(quoted("f:"+name) + ":{")
		writeField(out, name, object[name])
		out.WriteByte('}')
	}
}

func writeField(out *strings.Builder, name string, value any) {
	var items func()
	switch value := value.(type) {
	case map[string]any:
		if len(value) == 0 || slices.Contains(whole, name) {
			return
		}
		items = func() { writeFields(out, value) }
	case []any:
		keys := listKeys[name]
		if keys == nil {
			return
		}
		items = func() { writeItems(out, value, keys, slices.Contains(whole, name)) }
	default:
		return
	}
	if !slices.Contains(always, name) {
		out.WriteString(`".":{},`)
	}
	items()
}

func writeItems(out *strings.Builder, list []any, keys []string, whole bool) {
	byKey := make(map[string]map[string]any, len(list))
	for _, item := range list {
		item := item.(map[string]any)
		key := make(map[string]any, len(keys))
		for _, name := range keys {
			key[name] = item[name]
		}
		inner, _ := json.Marshal(key) // strings and numbers
		byKey["k:"+string(inner)] = item
	}
	for i, key := range slices.Sorted(maps.Keys(byKey)) {
		if i > 0 {
			out.WriteByte(',')
		}
		if whole {
			out.WriteString(quoted(key) + ":{}")
			continue
		}
		out.WriteString(quoted(key) + `:{".":{},`)
		writeFields(out, byKey[key])
		out.WriteByte('}')
	}
}

func quoted(text string) string {
	out, _ := json.Marshal(text) // a string
	return string(out)
}
