// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package gotree

import (
	"bytes"
	"go/ast"
	"go/token"
)

// Span returns the source between two positions, with the edits inside it made.
func (f *File) Span(from, to token.Pos) string {
	text, err := f.edited(f.at(from), f.at(to))
	if err != nil {
		return string(f.text[f.at(from):f.at(to)])
	}
	return string(text)
}

// Supersede replaces the source between two positions, in place of the edits inside it.
func (f *File) Supersede(from, to token.Pos, text string) {
	f.drop(f.at(from), f.at(to))
	f.change(f.at(from), f.at(to), text)
}

// InsertLine inserts a line before that of a node.
func (f *File) InsertLine(n ast.Node, line string) {
	at := bytes.LastIndexByte(f.text[:f.at(n.Pos())], '\n') + 1
	f.change(at, at, line+"\n")
}

// DropLine removes the line of a node, or reports false if something else than a comment is there.
func (f *File) DropLine(n ast.Node) bool {
	from, to := f.at(n.Pos()), f.at(n.End())
	from = bytes.LastIndexByte(f.text[:from], '\n') + 1
	rest, _, _ := bytes.Cut(f.text[to:], []byte("\n"))
	behind := bytes.TrimSpace(rest)
	if !f.startsLine(n) || len(behind) > 0 && !bytes.HasPrefix(behind, []byte("//")) {
		return false
	}
	f.change(from, min(to+len(rest)+1, len(f.text)), "")
	return true
}
