// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// serverMade are fields that every object gets, and how the author of a
// CertificateSigningRequest authenticated.
var serverMade = []string{"spec.extra", "metadata.uid", "metadata.resourceVersion", "metadata.creationTimestamp", "metadata.managedFields", "metadata.namespace"}

// changesOf returns what a server changed in a body: each path whose value is different in
// the answer, null if the answer lacks it. For a refusal it returns the reason with the
// causes, or with the message if there are no causes.
func changesOf(sent []byte, answer any) any {
	status, _ := answer.(map[string]any)
	if status["kind"] == "Status" {
		details, _ := status["details"].(map[string]any)
		if causes, ok := details["causes"]; ok {
			return map[string]any{"reason": status["reason"], "causes": causes}
		}
		return map[string]any{"reason": status["reason"], "message": status["message"]}
	}
	var body any
	if err := json.Unmarshal(sent, &body); err != nil {
		return answer
	}
	out := map[string]any{}
	eachDifference("", body, answer, func(path string, sent, got any) {
		switch path = strings.TrimPrefix(path, "."); {
		case isServerMade(path):
		case got != (any)(absent{}):
			out[path] = got
		case sent != nil:
			out[path] = nil
		}
	})
	return out
}

// isServerMade reports whether path is one of serverMade, or inside one.
func isServerMade(path string) bool {
	return slices.ContainsFunc(serverMade, func(of string) bool {
		rest, ok := strings.CutPrefix(path, of)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// withoutWords returns entries without the messages of refusals.
func withoutWords(entries []Entry) []Entry {
	entries = slices.Clone(entries)
	for i, e := range entries {
		body, ok := e.Body.(map[string]any)
		if !ok || body["reason"] == nil {
			continue
		}
		body = maps.Clone(body)
		delete(body, "message")
		causes, _ := body["causes"].([]any)
		var kept []string
		for _, cause := range causes {
			c, _ := cause.(map[string]any)
			kept = append(kept, fmt.Sprintf("%v %v", c["reason"], c["field"]))
		}
		slices.Sort(kept)
		body["causes"] = slices.Compact(kept)
		entries[i].Body = body
	}
	return entries
}

// DiffButWords is Diff, except for the messages of refusals.
func DiffButWords(got, want []Entry) []string {
	return Diff(withoutWords(got), withoutWords(want))
}

// edited returns object after edits, which are separated by " ; ":
//
//	spec.containers[0].image=nginx   sets a value, in YAML's flow style
//	-spec.containers                 removes one
//
// Dots in a name are escaped as \., and the index after the last item appends to a list.
func edited(object map[string]any, edits string) (map[string]any, error) {
	text, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var root any
	if err := json.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	for _, edit := range strings.Split(edits, " ; ") {
		path, removed := strings.CutPrefix(edit, "-")
		var value any = absent{}
		if !removed {
			name, flow, ok := strings.Cut(edit, "=")
			if !ok {
				return nil, fmt.Errorf("%q has no =; write -path to remove a field", edit)
			}
			path = name
			if err := yaml.Unmarshal([]byte(flow), &value); err != nil {
				return nil, fmt.Errorf("%q: %w", edit, err)
			}
		}
		if root, err = replaced(root, splitPath(path), value); err != nil {
			return nil, fmt.Errorf("%q: %w", edit, err)
		}
	}
	return root.(map[string]any), nil
}

// splitPath splits a path into names and indexes such as "[0]".
func splitPath(path string) (parts []string) {
	const dot = "\x00"
	path = strings.ReplaceAll(strings.ReplaceAll(path, `\.`, dot), "[", ".[")
	for _, part := range strings.Split(path, ".") {
		parts = append(parts, strings.ReplaceAll(part, dot, "."))
	}
	return parts
}

// replaced returns at with value at the path parts, or without that path if value is
// absent.
func replaced(at any, parts []string, value any) (any, error) {
	if len(parts) == 0 {
		return value, nil
	}
	if number, ok := strings.CutPrefix(parts[0], "["); ok {
		list, _ := at.([]any)
		i, err := strconv.Atoi(strings.TrimSuffix(number, "]"))
		if err != nil || i > len(list) {
			return nil, errors.New("not a place in the list")
		}
		if i == len(list) {
			list = append(list, nil)
		}
		if list[i], err = replaced(list[i], parts[1:], value); err != nil {
			return nil, err
		}
		if list[i] == (any)(absent{}) {
			list = slices.Delete(list, i, i+1)
		}
		return list, nil
	}
	fields, ok := at.(map[string]any)
	if !ok {
		fields = map[string]any{}
	}
	inner, err := replaced(fields[parts[0]], parts[1:], value)
	if err != nil {
		return nil, err
	}
	if fields[parts[0]] = inner; inner == (any)(absent{}) {
		delete(fields, parts[0])
	}
	return fields, nil
}
