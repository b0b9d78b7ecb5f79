// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package fielddiff

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Owns reports whether a set of fields, as an entry of managedFields has it, has the field at a path
// of Fields. An element of a list counts as in the set if any element of that list is: the set names
// elements by their keys. A path that is cut short is in none.
func Owns(set []byte, path string) bool {
	return !strings.HasSuffix(path, "…") && path != "" && has(set, "."+path, 0)
}

// has reports whether a part of a set has what is left of a path.
func has(set []byte, path string, depth int) bool {
	if path == "" || path[0] != '.' && path[0] != '[' {
		return path == ""
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(set, &members) != nil {
		return false
	}
	if len(members) == 0 {
		return depth > 0 // all below is one field
	}
	name, rest, ok := stepIn(path)
	if !ok {
		return false
	}
	if name != "" {
		part, found := members["f:"+name]
		return found && has(part, rest, depth+1)
	}
	for key, part := range members {
		if kind, _, found := strings.Cut(key, ":"); found && kind != "f" && has(part, rest, depth+1) {
			return true
		}
	}
	return false
}

// stepIn returns the first step of a path; an empty name: an element of a list.
func stepIn(path string) (name, rest string, ok bool) {
	if path[0] == '.' {
		end := strings.IndexAny(path[1:], ".[")
		if end < 0 {
			return path[1:], "", len(path) > 1
		}
		return path[1 : end+1], path[end+1:], end > 0
	}
	quoted, err := strconv.QuotedPrefix(path[1:])
	if err != nil {
		_, rest, ok = strings.Cut(path, "]")
		return "", rest, ok
	}
	name, err = strconv.Unquote(quoted)
	rest, ok = strings.CutPrefix(path[1+len(quoted):], "]")
	return name, rest, ok && err == nil && name != ""
}
