// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package decodelimit

import (
	"encoding/json"
	"fmt"

	"github.com/flyball-dev/flyball/internal/jsonspan"
)

const (
	// deepest is how deep decoders go; they refuse deeper texts.
	deepest = 10_000
	// mostNested is how deep a value that decodes itself may be if its type may
	// contain itself: the innermost text may be read as many times. Schemas of
	// CustomResourceDefinitions are such values; a property takes two levels.
	mostNested = 200
)

// JSON returns an error that names the first costly value in the text. It does not
// validate the text.
func (p *CostlyPlan) JSON(text []byte) error {
	if p == nil {
		return nil
	}
	s := scan{text: text}
	s.value(p, jsonspan.SkipSpace(text, 0), 0, 0)
	return s.found
}

// scan reads one text, each byte once.
type scan struct {
	text  []byte
	found error
}

// value reads the value at i and returns the position after it; -1: something was
// found, or the text is not JSON.
func (s *scan) value(p *CostlyPlan, i, depth, nested int) int {
	for p != nil && p.elem != nil && p.inside == nil && !p.mapped && i < len(s.text) && s.text[i] != '[' {
		p = p.elem // of a pointer
	}
	if p == nil || i >= len(s.text) || depth > deepest {
		return jsonspan.SkipValue(s.text, i)
	}
	if p.nests {
		if nested++; nested > mostNested && (s.text[i] == '{' || s.text[i] == '[') {
			s.found = fmt.Errorf("an object or list is more than %d levels deep in one whose type decodes itself, and is not decoded", mostNested)
			return -1
		}
	}
	switch s.text[i] {
	case '{':
		return s.members(p, i, depth, nested, '}')
	case '[':
		return s.members(p, i, depth, nested, ']')
	}
	end := jsonspan.SkipValue(s.text, i)
	if end > 0 && p.number.text > 0 {
		if s.found = p.number.check(s.text[i:end]); s.found != nil {
			return -1
		}
	}
	return end
}

// members reads the object or list at i.
func (s *scan) members(p *CostlyPlan, i, depth, nested int, end byte) int {
	i = jsonspan.SkipSpace(s.text, i+1)
	for i < len(s.text) && s.text[i] != end {
		of := p.elem
		if end == '}' {
			after := jsonspan.SkipValue(s.text, i)
			if after < 0 || s.text[i] != '"' {
				return -1
			}
			if p.fields != nil && p.inside == nil {
				of = p.fields[unquote(s.text[i:after])]
			}
			if i = jsonspan.SkipSpace(s.text, after); i == len(s.text) || s.text[i] != ':' {
				return -1
			}
			i = jsonspan.SkipSpace(s.text, i+1)
		}
		if p.inside != nil {
			of = p.inside
		}
		if i = s.value(of, i, depth+1, nested); i < 0 {
			return -1
		}
		if i = jsonspan.SkipSpace(s.text, i); i < len(s.text) && s.text[i] == ',' {
			i = jsonspan.SkipSpace(s.text, i+1)
		} else if i < len(s.text) && s.text[i] != end {
			return -1
		}
	}
	return i + 1
}

// unquote returns the content of a string.
func unquote(key []byte) string {
	for _, c := range key {
		if c == '\\' {
			var name string
			if json.Unmarshal(key, &name) == nil {
				return name
			}
			break
		}
	}
	return string(key[1 : len(key)-1])
}
