// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package wire encodes the fields of objects as JSON and as protobuf: the same bytes as
// json.Marshal and the Go types of the built-in kinds. Parts that the objects of a list
// share are encoded once and copied. It sees Go types and nothing of kinds or requests.
package wire

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// AppendJSON appends a value of an object's fields as JSON, maps in the order of their
// keys, as json.Marshal does for such values.
func AppendJSON(to []byte, value any) ([]byte, error) {
	w := JSONWriter{To: to}
	err := w.value(value)
	return w.To, err
}

// AppendFields appends fields as JSON, except some.
func AppendFields(to []byte, fields map[string]any, but ...string) ([]byte, error) {
	w := JSONWriter{To: to}
	err := w.Fields(fields, but...)
	return w.To, err
}

func AppendList(to []byte, list []any) ([]byte, error) {
	w := JSONWriter{To: to}
	err := w.list(list)
	return w.To, err
}

// JSONWriter appends JSON to a text.
type JSONWriter struct {
	To    []byte
	Known *OpenFragments
	// entries of the maps that are being encoded, the innermost last.
	entries []jsonEntry
}

type jsonEntry struct {
	name  string
	value any
}

// Clear resets w and keeps its memory.
func (w *JSONWriter) Clear() {
	clear(w.entries[:cap(w.entries)])
	w.To, w.entries, w.Known = w.To[:0], w.entries[:0], nil
}

func (w *JSONWriter) value(value any) error {
	switch v := value.(type) {
	case nil:
		w.To = append(w.To, "null"...)
	case string:
		return w.text(v)
	case bool:
		w.To = strconv.AppendBool(w.To, v)
	case int64:
		w.To = strconv.AppendInt(w.To, v, 10)
	case map[string]any, []any:
		return w.part(v)
	default:
		text, err := json.Marshal(value)
		w.To = append(w.To, text...)
		return err
	}
	return nil
}

// part encodes a map or a list, or copies its fragment.
func (w *JSONWriter) part(value any) (err error) {
	text, p := w.Known.find(value, nil)
	if text != nil {
		w.To = append(w.To, text...)
		return nil
	}
	from := len(w.To)
	switch v := value.(type) {
	case map[string]any:
		err = w.Fields(v)
	case []any:
		err = w.list(v)
	}
	w.Known.end(p, w.To[from:])
	return err
}

func (w *JSONWriter) list(list []any) error {
	if list == nil {
		w.To = append(w.To, "null"...)
		return nil
	}
	w.To = append(w.To, '[')
	for i, item := range list {
		if i > 0 {
			w.To = append(w.To, ',')
		}
		if err := w.value(item); err != nil {
			return err
		}
	}
	w.To = append(w.To, ']')
	return nil
}

func (w *JSONWriter) Fields(fields map[string]any, but ...string) error {
	if fields == nil {
		w.To = append(w.To, "null"...)
		return nil
	}
	from := len(w.entries)
	for name, value := range fields {
		if len(but) == 0 || !slices.Contains(but, name) {
			w.entries = append(w.entries, jsonEntry{name, value})
		}
	}
	to := len(w.entries)
	sortEntries(w.entries[from:])
	w.To = append(w.To, '{')
	for i := from; i < to; i++ {
		if i > from {
			w.To = append(w.To, ',')
		}
		if err := w.text(w.entries[i].name); err != nil {
			return err
		}
		w.To = append(w.To, ':')
		if err := w.value(w.entries[i].value); err != nil {
			return err
		}
	}
	w.entries = w.entries[:from]
	w.To = append(w.To, '}')
	return nil
}

// FewFields is enough for most objects, so the names of their fields fit on the stack.
const FewFields = 16

// sortEntries sorts by name; fast for few entries, as most maps have.
func sortEntries(entries []jsonEntry) {
	if len(entries) > FewFields {
		slices.SortFunc(entries, func(a, b jsonEntry) int { return strings.Compare(a.name, b.name) })
		return
	}
	for i := 1; i < len(entries); i++ {
		for j := i; j > 0 && entries[j].name < entries[j-1].name; j-- {
			entries[j], entries[j-1] = entries[j-1], entries[j]
		}
	}
}

// special are the bytes that a string in JSON escapes.
var special = func() (table [256]bool) {
	for c := range table {
		table[c] = c < ' ' || c > '~' || strings.IndexByte(`"\<>&`, byte(c)) >= 0
	}
	return table
}()

// text appends a string; fast for plain ones.
func (w *JSONWriter) text(text string) error {
	for i := range len(text) {
		if special[text[i]] {
			quoted, err := json.Marshal(text)
			w.To = append(w.To, quoted...)
			return err
		}
	}
	w.To = append(w.To, '"')
	w.To = append(w.To, text...)
	w.To = append(w.To, '"')
	return nil
}
