// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package gotree

import (
	"cmp"
	"fmt"
	"go/format"
	"slices"
	"strings"
)

// A script is the text of a file and the edits to make.
type script struct {
	name  string
	text  []byte
	edits []edit
}

type edit struct {
	from, to int
	text     string
}

func (s *script) change(from, to int, text string) { s.edits = append(s.edits, edit{from, to, text}) }

// drop forgets the edits inside a part of the text.
func (s *script) drop(from, to int) {
	s.edits = slices.DeleteFunc(s.edits, func(e edit) bool { return from <= e.from && e.to <= to })
}

// Source returns the formatted source with all edits made. Edits that overlap are an error.
func (s *script) Source() ([]byte, error) {
	text, err := s.Edited()
	if err != nil {
		return nil, err
	}
	text, err = format.Source(text)
	if err != nil {
		return nil, fmt.Errorf("edit %s: %w", s.name, err)
	}
	return text, nil
}

// Edited returns the source with all edits made, not formatted. Edits that overlap are an error.
func (s *script) Edited() ([]byte, error) { return s.edited(0, len(s.text)) }

// edited returns a part of the text with the edits inside it made.
func (s *script) edited(from, to int) ([]byte, error) {
	slices.SortStableFunc(s.edits, func(a, b edit) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	var out strings.Builder
	done := from
	for _, e := range s.edits {
		if e.from < from || e.to > to {
			continue
		}
		if e.from < done {
			return nil, fmt.Errorf("edit %s: two edits change the same text before %q", s.name, e.text)
		}
		out.Write(s.text[done:e.from])
		out.WriteString(e.text)
		done = e.to
	}
	out.Write(s.text[done:to])
	return []byte(out.String()), nil
}
