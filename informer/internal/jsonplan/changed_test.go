// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package jsonplan

import (
	"math/rand/v2"
	"testing"
)

// changer makes texts of others that are almost JSON.
type changer struct {
	*rand.Rand
	seeds, pieces []string
}

func newChanger(t *testing.T) changer {
	c := changer{Rand: rand.New(rand.NewPCG(1, 2)), seeds: []string{examplePod(t), exampleFleet}}
	for _, v := range values {
		for _, name := range []string{"Any", "Map", "Inners", "PInner", "metadata", "Time", "Port", "Resources", "Words", "Tree", "behind", "spec"} {
			c.seeds = append(c.seeds, `{"`+name+`":`+v+`,"Self":{"`+name+`":`+v+`}}`)
		}
	}
	c.pieces = append([]string{`{`, `}`, `[`, `]`, `,`, `:`, `"`, `\`, `\u`, `"a":`, `{"a":1},`, `"\ud800`, " ", "\n", "\x00", "\xff", "1", "-", "e", "."}, values...)
	return c
}

func (c changer) of(texts []string) string { return texts[c.IntN(len(texts))] }

func (c changer) next() string {
	text := c.of(c.seeds)
	for range 1 + c.IntN(4) {
		if text == "" {
			break
		}
		at := c.IntN(len(text))
		end := min(len(text), at+c.IntN(12))
		switch c.IntN(5) {
		case 0:
			text = text[:at] + string([]byte{byte(c.IntN(256))}) + text[at+1:]
		case 1:
			text = text[:at] + text[end:]
		case 2:
			text = text[:at] + c.of(c.pieces) + text[at:]
		case 3:
			text = text[:at] + c.of(c.pieces) + text[end:]
		default:
			other := c.of(c.seeds)
			text = text[:at] + other[c.IntN(len(other)+1):]
		}
	}
	return text
}

func TestPlan_ChangedTextsAsTheReference_D1(t *testing.T) {
	texts := newChanger(t)
	all := subjects(t)
	all = append(all, subjectOf(t, all[0].plan.typ, "Text", "Self.Map", "Inners.c", "behind"), subjectOf(t, treeType, "spec.containers.env", "Self.Map", "Any"))
	for n := range 3000 {
		if n%50 == 0 {
			for _, s := range all {
				s.table.Reset()
			}
		}
		text := texts.next()
		for _, s := range all {
			s.agrees(t, text)
		}
	}
}
