// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// appendJSON appends a value of an object's fields as JSON, maps in the order
// of their keys. It does what json.Marshal does, for what objects are made of.
func appendJSON(to []byte, value any) ([]byte, error) {
	w := jsonWriter{to: to}
	err := w.value(value)
	return w.to, err
}

// appendFields appends fields as JSON, but for some.
func appendFields(to []byte, fields map[string]any, but ...string) ([]byte, error) {
	w := jsonWriter{to: to}
	err := w.fields(fields, but...)
	return w.to, err
}

func appendList(to []byte, list []any) ([]byte, error) {
	w := jsonWriter{to: to}
	err := w.list(list)
	return w.to, err
}

// jsonWriter appends JSON to a text.
type jsonWriter struct {
	to    []byte
	known *openFragments
	// entries of the maps that are being written, the innermost last.
	entries []jsonEntry
}

type jsonEntry struct {
	name  string
	value any
}

// clear forgets all but the memory that w has.
func (w *jsonWriter) clear() {
	clear(w.entries[:cap(w.entries)])
	w.to, w.entries, w.known = w.to[:0], w.entries[:0], nil
}

func (w *jsonWriter) value(value any) error {
	switch v := value.(type) {
	case nil:
		w.to = append(w.to, "null"...)
	case string:
		return w.text(v)
	case bool:
		w.to = strconv.AppendBool(w.to, v)
	case int64:
		w.to = strconv.AppendInt(w.to, v, 10)
	case map[string]any, []any:
		return w.part(v)
	default:
		text, err := json.Marshal(value)
		w.to = append(w.to, text...)
		return err
	}
	return nil
}

// part writes a map or a list, or copies what was written of it before.
func (w *jsonWriter) part(value any) (err error) {
	text, p := w.known.find(value, nil)
	if text != nil {
		w.to = append(w.to, text...)
		return nil
	}
	from := len(w.to)
	switch v := value.(type) {
	case map[string]any:
		err = w.fields(v)
	case []any:
		err = w.list(v)
	}
	w.known.end(p, w.to[from:])
	return err
}

func (w *jsonWriter) list(list []any) error {
	if list == nil {
		w.to = append(w.to, "null"...)
		return nil
	}
	w.to = append(w.to, '[')
	for i, item := range list {
		if i > 0 {
			w.to = append(w.to, ',')
		}
		if err := w.value(item); err != nil {
			return err
		}
	}
	w.to = append(w.to, ']')
	return nil
}

func (w *jsonWriter) fields(fields map[string]any, but ...string) error {
	if fields == nil {
		w.to = append(w.to, "null"...)
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
	w.to = append(w.to, '{')
	for i := from; i < to; i++ {
		if i > from {
			w.to = append(w.to, ',')
		}
		if err := w.text(w.entries[i].name); err != nil {
			return err
		}
		w.to = append(w.to, ':')
		if err := w.value(w.entries[i].value); err != nil {
			return err
		}
	}
	w.entries = w.entries[:from]
	w.to = append(w.to, '}')
	return nil
}

// fewFields is how many fields most objects have, so that their names need no
// memory of their own.
const fewFields = 16

// sortEntries sorts by name; a few at once, as most maps have.
func sortEntries(entries []jsonEntry) {
	if len(entries) > fewFields {
		slices.SortFunc(entries, func(a, b jsonEntry) int { return strings.Compare(a.name, b.name) })
		return
	}
	for i := 1; i < len(entries); i++ {
		for j := i; j > 0 && entries[j].name < entries[j-1].name; j-- {
			entries[j], entries[j-1] = entries[j-1], entries[j]
		}
	}
}

// special is which bytes a string in JSON has in another form.
var special = func() (table [256]bool) {
	for c := range table {
		table[c] = c < ' ' || c > '~' || strings.IndexByte(`"\<>&`, byte(c)) >= 0
	}
	return table
}()

// text appends a string, plain ones without a detour.
func (w *jsonWriter) text(text string) error {
	for i := range len(text) {
		if special[text[i]] {
			quoted, err := json.Marshal(text)
			w.to = append(w.to, quoted...)
			return err
		}
	}
	w.to = append(w.to, '"')
	w.to = append(w.to, text...)
	w.to = append(w.to, '"')
	return nil
}
