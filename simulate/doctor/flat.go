// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// flat is an object as the values of its fields by path, such as
// spec.template.spec.containers[name=web].image.
type flat map[string]string

// flatten returns the fields of an object that a program decides on: not those that the server keeps, and no
// times. rename replaces what differs in each run in a text, such as UIDs.
func flatten(tree map[string]any, rename func(string) string) flat {
	f := flattener{out: flat{}, rename: rename}
	metadata, _ := tree["metadata"].(map[string]any)
	f.generation = metadata["generation"]
	kind, _ := tree["kind"].(string)
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		switch name {
		case "metadata":
			f.metadata(metadata)
		case "apiVersion", "kind":
		case "data":
			f.add(name, decoded(kind, tree[name]))
		default:
			f.add(name, tree[name])
		}
	}
	maps.DeleteFunc(f.out, func(path, value string) bool { return isAssigned(kind, path) && value != `"None"` })
	return f.out
}

// decoded returns the data of a Secret as texts, in which times and UIDs can be recognized. What is not text stays as
// it is.
func decoded(kind string, data any) any {
	fields, ok := data.(map[string]any)
	if kind != "Secret" || !ok {
		return data
	}
	texts := map[string]any{}
	for name, value := range fields {
		texts[name] = value
		encoded, _ := value.(string)
		if text, err := base64.StdEncoding.DecodeString(encoded); err == nil && utf8.Valid(text) {
			texts[name] = string(text)
		}
	}
	return texts
}

// isAssigned reports whether the server or the cluster chooses a field's value.
func isAssigned(kind, path string) bool {
	switch kind {
	case "Service":
		return strings.HasPrefix(path, "spec.clusterIP") || strings.HasSuffix(path, ".nodePort") || path == "spec.healthCheckNodePort"
	case "PersistentVolumeClaim":
		return path == "spec.volumeName"
	case "StatefulSet": // the names of its history
		return path == "status.currentRevision" || path == "status.updateRevision"
	case "Pod":
		return path == "spec.nodeName" || strings.HasPrefix(path, "status.podIP") || slices.Contains(ofHistory, path)
	case "Deployment":
		return strings.HasPrefix(path, "metadata.annotations.deployment.kubernetes.io/")
	case "DaemonSet": // a count of its changes
		return path == "metadata.annotations.deprecated.daemonset.template.generation"
	}
	return false
}

// ofHistory are the labels of Pods that tell where in a workload's history they are from.
var ofHistory = []string{"metadata.labels.controller-revision-hash", "metadata.labels.pod-template-hash", "metadata.labels.pod-template-generation"}

type flattener struct {
	out        flat
	rename     func(string) string
	generation any
}

func (f *flattener) metadata(metadata map[string]any) {
	for _, name := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
		f.add("metadata."+name, metadata[name])
	}
	if metadata["deletionTimestamp"] != nil {
		f.out["metadata.deletionTimestamp"] = "set"
	}
}

// faultMark is part of the path of annotations that faults write, also where a program has copied them to.
const faultMark = "annotations.kit.flyball.dev/"

func (f *flattener) add(path string, value any) {
	switch value := value.(type) {
	case nil:
	case map[string]any:
		for name, inner := range value {
			f.add(path+"."+name, inner)
		}
	case []any:
		for i, inner := range value {
			f.add(path+"["+f.rename(labelOf(inner, i))+"]", inner)
		}
	case string:
		if strings.Contains(path, faultMark) {
			return
		}
		f.out[path] = f.text(path, value)
	default:
		if strings.HasSuffix(path, "observedGeneration") && f.generation != nil {
			// How many writes it took may differ.
			f.out[path] = map[bool]string{true: "current", false: "behind"}[fmt.Sprint(value) == fmt.Sprint(f.generation)]
			return
		}
		text, err := json.Marshal(value)
		if err != nil {
			text = fmt.Append(nil, value)
		}
		f.out[path] = string(text)
	}
}

// aTime stands for each time.
const aTime = "a time"

func (f *flattener) text(path, value string) string {
	if _, err := time.Parse(time.RFC3339Nano, value); err == nil {
		return aTime
	}
	if strings.HasSuffix(path, ".uid") {
		return "a UID"
	}
	text, err := json.Marshal(f.rename(value))
	if err != nil {
		return value
	}
	return string(text)
}

// labelOf returns what identifies an element of a list: the field that is its key in most lists of
// Kubernetes, or its index.
func labelOf(element any, index int) string {
	if fields, ok := element.(map[string]any); ok {
		for _, key := range []string{"name", "type", "key", "containerPort", "port"} {
			if value, ok := fields[key]; ok {
				return fmt.Sprintf("%s=%v", key, value)
			}
		}
	}
	return fmt.Sprint(index)
}

var index = regexp.MustCompile(`\[[0-9]+\]`)

// anywhere returns path for all elements of lists that have no key.
func anywhere(path string) string { return index.ReplaceAllString(path, "[*]") }

// difference is one field in which two objects differ.
type difference struct {
	Path      string
	Want, Got string // empty: it is not there
}

func (d difference) String() string {
	switch {
	case d.Want == "":
		return fmt.Sprintf("%s is %s, and would not be there", d.Path, short(d.Got))
	case d.Got == "":
		return fmt.Sprintf("%s is not there, and would be %s", d.Path, short(d.Want))
	}
	return fmt.Sprintf("%s is %s, and would be %s", d.Path, short(d.Got), short(d.Want))
}

func short(text string) string {
	const most = 80
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}

// differ returns the fields in which got differs from want, in the order of their paths.
func differ(want, got flat, masked func(path string) bool) (out []difference) {
	paths := map[string]bool{}
	for path := range want {
		paths[path] = true
	}
	for path := range got {
		paths[path] = true
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if want[path] != got[path] && !masked(anywhere(path)) {
			out = append(out, difference{path, want[path], got[path]})
		}
	}
	return out
}

// withoutFalse leaves out conditions that are false on one side and not there on the other one, which says the same.
func withoutFalse(all []difference) []difference {
	condition := func(d difference) string {
		of, _, _ := strings.Cut(d.Path, "].")
		return of
	}
	no, both := map[string]bool{}, map[string]bool{}
	for _, d := range all {
		of := condition(d)
		no[of] = no[of] || d.Path == of+"].status" && strings.HasPrefix(of, "status.conditions[") && d.Want+d.Got == `"False"`
		both[of] = both[of] || d.Want != "" && d.Got != ""
	}
	return slices.DeleteFunc(slices.Clone(all), func(d difference) bool { return no[condition(d)] && !both[condition(d)] })
}
