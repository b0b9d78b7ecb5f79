// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"go/ast"
	"go/scanner"
	"go/token"
	"slices"
)

// word is a token of Go source, with its place in the text.
type word struct {
	text     string
	from, to int
}

// scan splits Go source into words. It omits what formatting decides: white space,
// comments, semicolons and the comma before a closing bracket.
func scan(text []byte) []word {
	var s scanner.Scanner
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(text))
	s.Init(file, text, func(token.Position, string) {}, 0) // a later parse reports the error
	var out []word
	for {
		pos, tok, literal := s.Scan()
		switch tok {
		case token.EOF:
			return out
		case token.SEMICOLON:
			continue
		case token.RPAREN, token.RBRACE, token.RBRACK:
			if len(out) > 0 && out[len(out)-1].text == "," {
				out = out[:len(out)-1]
			}
		}
		if literal == "" {
			literal = tok.String()
		}
		from := file.Offset(pos)
		out = append(out, word{literal, from, from + len(literal)})
	}
}

func words(text string) []string {
	var out []string
	for _, w := range scan([]byte(text)) {
		out = append(out, w.text)
	}
	if len(out) > 0 && out[len(out)-1] == "," {
		out = out[:len(out)-1]
	}
	return out
}

// occurrences returns the occurrences of the fragment in d, as offsets in the file: the
// same words, which must be a node of the syntax tree or consecutive nodes below one
// parent. So "a + b" does not occur in "a + b*c".
func occurrences(d decl, fragment string) [][2]int {
	file := d.file.fset.File(d.node.Pos())
	begin, end := file.Offset(d.node.Pos()), file.Offset(d.node.End())
	have, want := scan(d.file.text[begin:end]), words(fragment)
	var out [][2]int
	for i := 0; len(want) > 0 && i+len(want) <= len(have); i++ {
		part := have[i : i+len(want)]
		if !slices.EqualFunc(part, want, func(w word, text string) bool { return w.text == text }) {
			continue
		}
		from, to := begin+part[0].from, begin+part[len(part)-1].to
		if spans(d.node, file.Pos(from), file.Pos(to)) {
			out = append(out, [2]int{from, to})
		}
	}
	return out
}

// spans reports whether from and to are the ends of one node in root, or the beginning of
// one and the end of another in one list.
func spans(root ast.Node, from, to token.Pos) bool {
	type parent struct{ list, begun bool }
	found := false
	stack := []*parent{{}}
	ast.Inspect(root, func(n ast.Node) bool {
		if n == nil {
			stack = stack[:len(stack)-1]
			return true
		}
		around := stack[len(stack)-1]
		around.begun = around.begun && around.list || n.Pos() == from
		found = found || around.begun && n.End() == to
		_, assignment := n.(*ast.AssignStmt) // "b = c" does not occur in "a, b = c, d"
		stack = append(stack, &parent{list: !assignment})
		return !found
	})
	return found
}

// splice replaces text[from:to]. If the replacement is empty, it removes the comma after it
// too: an element of a list is removed with its comma.
func splice(text []byte, from, to int, with string) []byte {
	if rest := bytes.TrimLeft(text[to:], " \t"); with == "" && bytes.HasPrefix(rest, []byte(",")) {
		to = len(text) - len(rest) + 1
	}
	return slices.Concat(text[:from], []byte(with), text[to:])
}
