// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/json"
	"slices"
	"strconv"
)

// appendJSON appends a value of an object's fields as JSON, maps in the order
// of their keys. It does what json.Marshal does, for what objects are made of.
func appendJSON(to []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case nil:
		return append(to, "null"...), nil
	case string:
		return appendText(to, v)
	case bool:
		return strconv.AppendBool(to, v), nil
	case int64:
		return strconv.AppendInt(to, v, 10), nil
	case map[string]any:
		return appendFields(to, v)
	case []any:
		return appendList(to, v)
	}
	text, err := json.Marshal(value)
	return append(to, text...), err
}

func appendList(to []byte, list []any) (_ []byte, err error) {
	if list == nil {
		return append(to, "null"...), nil
	}
	to = append(to, '[')
	for i, item := range list {
		if i > 0 {
			to = append(to, ',')
		}
		if to, err = appendJSON(to, item); err != nil {
			return to, err
		}
	}
	return append(to, ']'), nil
}

// fewFields is how many fields most objects have, so that their names need no
// memory of their own.
const fewFields = 16

func appendFields(to []byte, fields map[string]any, but ...string) (_ []byte, err error) {
	if fields == nil {
		return append(to, "null"...), nil
	}
	var few [fewFields]string
	names := few[:0]
	for name := range fields {
		if !slices.Contains(but, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	to = append(to, '{')
	for i, name := range names {
		if i > 0 {
			to = append(to, ',')
		}
		if to, err = appendText(to, name); err != nil {
			return to, err
		}
		to = append(to, ':')
		if to, err = appendJSON(to, fields[name]); err != nil {
			return to, err
		}
	}
	return append(to, '}'), nil
}

// appendText appends a string, plain ones without a detour.
func appendText(to []byte, text string) ([]byte, error) {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			quoted, err := json.Marshal(text)
			return append(to, quoted...), err
		}
	}
	to = append(to, '"')
	to = append(to, text...)
	return append(to, '"'), nil
}
