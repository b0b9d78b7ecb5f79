// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"encoding/base64"
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// withoutStringData returns the tree of a Secret with its stringData in data, as the server
// stores it. The server would take over each entry, but the owner of the entry would own
// only stringData, which is never stored: what it no longer applies would stay. The maps of
// tree may be those of the caller, and are not modified. What is no text is left to the server.
func withoutStringData(kind schema.GroupVersionKind, tree map[string]any) map[string]any {
	texts, ok := tree["stringData"].(map[string]any)
	if !ok || kind.Group != "" || kind.Kind != "Secret" {
		return tree
	}
	data, ok := tree["data"].(map[string]any)
	if !ok && tree["data"] != nil {
		return tree
	}
	data = maps.Clone(data)
	if data == nil {
		data = make(map[string]any, len(texts))
	}
	for name, text := range texts {
		s, ok := text.(string)
		if !ok {
			return tree
		}
		data[name] = base64.StdEncoding.EncodeToString([]byte(s))
	}
	tree = maps.Clone(tree)
	delete(tree, "stringData")
	tree["data"] = data
	return tree
}
