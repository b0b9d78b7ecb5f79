// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/scanner"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/flyball-dev/flyball/cmd/flyball/internal/gotree"
)

const (
	controllerRuntime = "sigs.k8s.io/controller-runtime"
	managerPath       = controllerRuntime + "/pkg/manager"
	cachePath         = controllerRuntime + "/pkg/cache"
	clientPath        = controllerRuntime + "/pkg/client"
	clusterPath       = controllerRuntime + "/pkg/cluster"
	restPath          = "k8s.io/client-go/rest"
	bridgePath        = "github.com/flyball-dev/flyball/bridge/controllerruntime"
)

// A File is a Go file of the module.
type File struct {
	// Name is its path in the module, with slashes.
	Name string
	Text []byte
}

// A Finding is what is to say about a line.
type Finding struct {
	File string
	// Line from 1. Zero: the whole file.
	Line int
	// Note is set if it does not stand in the way.
	Note bool
	Text string
}

// String returns the finding with its position.
func (f Finding) String() string {
	text := f.File + ": "
	if f.Line > 0 {
		text = f.File + ":" + strconv.Itoa(f.Line) + ": "
	}
	if f.Note {
		text += "note: "
	}
	return text + f.Text
}

// source is a parsed file, with LF line ends.
type source struct {
	*gotree.File
	name    string
	text    []byte
	crlf    bool              // each line ends with CRLF in the file
	imports map[string]string // paths by local names
	dots    []string          // paths that are imported by a dot
}

func parse(file File) (*source, error) {
	s := &source{name: file.Name, text: file.Text, imports: map[string]string{}}
	if n := bytes.Count(s.text, []byte("\r\n")); n > 0 && n == bytes.Count(s.text, []byte("\n")) {
		s.crlf, s.text = true, bytes.ReplaceAll(s.text, []byte("\r\n"), []byte("\n"))
	}
	var err error
	if s.File, err = gotree.Parse(file.Name, s.text); err != nil {
		return nil, err
	}
	for _, spec := range s.Tree.Imports {
		to, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
		switch {
		case spec.Name != nil && spec.Name.Name == ".":
			s.dots = append(s.dots, to)
		case spec.Name != nil:
			s.imports[spec.Name.Name] = to
		case to == bridgePath:
			s.imports["bridge"] = to
		case to == controllerRuntime:
			s.imports["controllerruntime"] = to
		default:
			s.imports[path.Base(to)] = to
		}
	}
	return s, nil
}

// unreadable returns the finding for a file that does not parse.
func unreadable(file File, err error) Finding {
	var list scanner.ErrorList
	if errors.As(err, &list) && len(list) > 0 {
		line, text := list[0].Pos.Line, "cannot be parsed, and is left as it is: "+list[0].Msg
		return Finding{File: file.Name, Line: line, Text: text}
	}
	return Finding{File: file.Name, Text: err.Error()}
}

// is reports whether x is one of these names of packages, each with the package's path. A local
// variable that is named as the package is not.
func (s *source) is(x ast.Expr, names ...string) bool {
	switch x := x.(type) {
	case *ast.SelectorExpr:
		id, ok := x.X.(*ast.Ident)
		return ok && id.Obj == nil && slices.Contains(names, s.imports[id.Name]+"."+x.Sel.Name)
	case *ast.Ident:
		return x.Obj == nil && slices.ContainsFunc(s.dots, func(to string) bool {
			return slices.Contains(names, to+"."+x.Name)
		})
	}
	return false
}

// uses reports whether x is a name of the package, or a call of one.
func (s *source) uses(x ast.Expr, to string) bool {
	if call, ok := x.(*ast.CallExpr); ok {
		x = call.Fun
	}
	sel, ok := x.(*ast.SelectorExpr)
	return ok && s.is(x, to+"."+sel.Sel.Name)
}

// hasImport reports whether the file imports a package whose path begins so.
func (s *source) hasImport(prefix string) bool {
	for _, to := range s.imports {
		if strings.HasPrefix(to, prefix) {
			return true
		}
	}
	return false
}

func (s *source) isTest() bool { return strings.HasSuffix(s.name, "_test.go") }

// isSuite reports whether the file is a test suite, as kubebuilder names them.
func (s *source) isSuite() bool {
	base := path.Base(s.name)
	return base == "suite_test.go" || strings.HasSuffix(base, "_suite_test.go")
}

func (s *source) find(n ast.Node, note bool, format string, args ...any) Finding {
	return Finding{s.name, s.Line(n.Pos()), note, fmt.Sprintf(format, args...)}
}

// result returns the text with the edits made. If the file was formatted, it stays so.
func (s *source) result() ([]byte, error) {
	out, err := s.Edited()
	if err != nil {
		return nil, err
	}
	formatted, err := format.Source(out)
	if err != nil {
		return nil, fmt.Errorf("its lines have another form than gofmt's; run gofmt -w %s first", s.name)
	}
	if before, err := format.Source(s.text); err == nil && bytes.Equal(before, s.text) {
		out = formatted
	}
	if s.crlf {
		out = bytes.ReplaceAll(out, []byte("\n"), []byte("\r\n"))
	}
	return out, nil
}
