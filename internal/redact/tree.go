// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// Hidden stands for what must not be shown.
	Hidden = "(hidden)"
	// HiddenBytes is Hidden in base64, where the API has bytes.
	HiddenBytes = "KGhpZGRlbik="
)

// secret matches texts that look like a credential: keys, tokens, kubeconfigs and other settings with
// a password.
var secret = regexp.MustCompile(`PRIVATE KEY-----|(?i:bearer|basic) [A-Za-z0-9._~+/=-]{8,}|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}` +
	`|\bgh[pousr]_[A-Za-z0-9]{16,}|\bAKIA[A-Z0-9]{16}\b|(?i:password|passwd|secret|token|api[_-]?key|client-key-data)["']?\s*[:=]\s*\S|://[^/\s:@]+:[^/\s@]+@`)

// Each text that secret matches has one of these, the second in lower case.
var (
	marks = []string{"PRIVATE KEY-----", "eyJ", "AKIA", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "://"}
	words = []string{"bearer ", "basic ", "password", "passwd", "secret", "token", "api", "client-key-data"}
)

// Text returns text, unless it looks like a credential.
func Text(text string) string {
	if mayBeSecret(text) && secret.MatchString(text) {
		return Hidden
	}
	return text
}

// mayBeSecret is a hundred times faster than secret, which takes a second for a few megabytes.
func mayBeSecret(text string) bool {
	for _, mark := range marks {
		if strings.Contains(text, mark) {
			return true
		}
	}
	lower := strings.ToLower(text)
	for _, word := range words {
		if strings.Contains(lower, word) {
			return true
		}
	}
	return false
}

// Fields returns obj as JSON values, which may be its own: Tree copies them.
func Fields(obj runtime.Object) (map[string]any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.Object, nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}

// Tree returns a copy of an object, in whole or in part, as JSON values: texts that look like a
// credential are hidden, those of fields with the name of one, and of confidential kinds, as Kind has
// them, all values but those of the metadata, and of the type of a Secret.
func Tree(kind schema.GroupKind, sub string, tree map[string]any) map[string]any {
	confidential := Kind(kind, sub)
	out := make(map[string]any, len(tree))
	for field, value := range tree {
		switch {
		case !confidential || field == "apiVersion" || field == "kind" || field == "type" || field == "immutable":
			out[field] = Field(field, value)
		case field == "metadata":
			out[field] = metadata(value)
		case field == "data": // of a Secret
			out[field] = hide(value, HiddenBytes)
		default:
			out[field] = hide(value, Hidden)
		}
	}
	return out
}

// metadata hides the annotations of a confidential object: several tools keep the whole object
// there.
func metadata(value any) any {
	out, ok := hide(value, "").(map[string]any)
	if !ok {
		return hide(value, Hidden)
	}
	if annotations, has := out["annotations"]; has {
		out["annotations"] = hide(annotations, Hidden)
	}
	return out
}

// credentials are the names, in lower case, of fields whose texts are credentials.
var credentials = map[string]bool{
	"password": true, "passwd": true, "token": true, "accesstoken": true, "secretkey": true,
	"clientsecret": true, "apikey": true, "api_key": true, "client-key-data": true, "privatekey": true,
}

// Field returns a copy of the value of the field name of an object that is not confidential: a text
// is hidden if it looks like a credential, or if name is that of one.
func Field(name string, value any) any {
	if text, is := value.(string); is && text != "" && credentials[strings.ToLower(name)] {
		return Hidden
	}
	return hide(value, "")
}

// Value hides value in whole, but for the names in it.
func Value(value any) any { return hide(value, Hidden) }

// hide returns a copy of value without what must not be shown. all is what stands for each value in
// it; empty: only texts that look like a credential are hidden.
func hide(value any, all string) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, field := range v {
			if all == "" {
				out[name] = Field(name, field)
			} else {
				out[name] = hide(field, all)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, element := range v {
			out[i] = hide(element, all)
		}
		return out
	case nil:
		return nil
	case string:
		if all == "" {
			return Text(v)
		}
	}
	if all != "" {
		return all
	}
	return value
}
