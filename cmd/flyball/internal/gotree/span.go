// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package gotree

import (
	"bytes"
	"go/ast"
	"go/token"
)

// Of returns a File of source that has been parsed into fset with its comments.
func Of(name string, text []byte, fset *token.FileSet, tree *ast.File) *File {
	return &File{script: script{name: name, text: text}, Tree: tree, fset: fset}
}

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

// CutLine removes a node with the edits inside it, and its line if nothing else is in it.
// Comments beside it stay.
func (f *File) CutLine(n ast.Node) {
	from, to := f.at(n.Pos()), f.at(n.End())
	f.drop(from, to)
	start := bytes.LastIndexByte(f.text[:from], '\n') + 1
	rest, _, _ := bytes.Cut(f.text[to:], []byte("\n"))
	if f.startsLine(n) && len(bytes.TrimSpace(rest)) == 0 && to+len(rest) < len(f.text) {
		from, to = start, to+len(rest)+1
	}
	f.change(from, to, "")
}

// InsertLine inserts a line before that of a node.
func (f *File) InsertLine(n ast.Node, line string) {
	at := bytes.LastIndexByte(f.text[:f.at(n.Pos())], '\n') + 1
	f.change(at, at, line+"\n")
}
