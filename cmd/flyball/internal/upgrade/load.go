// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A program is a module with its types, in each configuration of build tags that its files
// ask for.
type program struct {
	fset           *token.FileSet
	files          map[string]*typedFile // by path
	configurations []*configuration
	problems       []problem
	unchecked      []string // files that no configuration has
}

// A problem is why something does not compile.
type problem struct {
	at   token.Position // zero: somewhere
	text string
}

// A typedFile is a file with its types in the first configuration that has it.
type typedFile struct {
	path string
	text []byte
	tree *ast.File
	info *types.Info
	pkg  *types.Package
	in   *configuration
}

// A configuration is one choice of build tags, with the packages that its packages import.
type configuration struct {
	exports map[string]string // files of export data
	imports types.Importer
	checked map[string]*types.Package
	objects map[string]types.Object
	targets map[types.Object][]target
}

// A target is a line about an object.
type target struct {
	change int
	line   Line
}

// aim finds the objects that the lines of a section are about.
func (b *configuration) aim(section Section) {
	b.targets = map[types.Object][]target{}
	for i, change := range section.Changes {
		for _, l := range change.Lines {
			if l.Verb == Rewriting || l.Verb == None {
				continue
			}
			if o := b.object(l.Old); o != nil {
				b.targets[o] = append(b.targets[o], target{i, l})
			}
		}
	}
}

// listed is a package as go list describes it.
type listed struct {
	ImportPath, Dir, Export           string
	GoFiles, CgoFiles, IgnoredGoFiles []string
	TestGoFiles, XTestGoFiles         []string
	ImportMap                         map[string]string
	DepOnly                           bool
	Module                            *struct {
		Main      bool
		GoVersion string
	}
	Error *struct{ Pos, Err string }
}

func (l listed) isOurs() bool {
	return !l.DepOnly && l.Module != nil && l.Module.Main && !strings.HasSuffix(l.ImportPath, ".test")
}

// maxConfigurations bounds the configurations: each is another run of the go command.
const maxConfigurations = 8

// load resolves the types of a module's files.
func (m *module) load() (*program, error) {
	p := &program{fset: token.NewFileSet(), files: map[string]*typedFile{}}
	waiting := []setting{{}}
	tried := map[string]bool{}
	ignored := map[string]bool{}
	for len(waiting) > 0 && len(tried) < maxConfigurations {
		s := waiting[0]
		waiting = waiting[1:]
		if tried[s.String()] {
			continue
		}
		tried[s.String()] = true
		left, err := m.loadFor(p, s)
		if err != nil {
			return nil, err
		}
		for _, name := range left {
			ignored[name] = true
		}
		for _, name := range slices.Sorted(maps.Keys(ignored)) {
			if p.files[name] != nil {
				delete(ignored, name)
			} else if next, ok := m.settingFor(name); ok {
				waiting = append(waiting, next)
			}
		}
	}
	for name := range ignored {
		if text, err := m.read(name); p.files[name] == nil && (err != nil || bytes.Contains(text, []byte(rootModule))) {
			p.unchecked = append(p.unchecked, name)
		}
	}
	slices.Sort(p.unchecked)
	slices.SortStableFunc(p.problems, func(a, b problem) int {
		return cmp.Or(strings.Compare(a.at.Filename, b.at.Filename), cmp.Compare(a.at.Offset, b.at.Offset))
	})
	p.problems = slices.CompactFunc(p.problems, func(a, b problem) bool { return a == b })
	return p, nil
}

// loadFor adds the packages of one configuration, and returns the files that it ignores.
func (m *module) loadFor(p *program, s setting) (ignored []string, err error) {
	args := []string{"list", "-e", "-export", "-deps", "-test", "-json=ImportPath,Dir,Export,GoFiles,CgoFiles,IgnoredGoFiles,TestGoFiles,XTestGoFiles,ImportMap,DepOnly,Module,Error"}
	out, err := m.goCommand(s.env(), append(args, append(m.flags(), s.flags("./...")...)...)...)
	if err != nil {
		return nil, err
	}
	b := &configuration{exports: map[string]string{}, checked: map[string]*types.Package{}, objects: map[string]types.Object{}}
	b.imports = importer.ForCompiler(p.fset, "gc", func(path string) (io.ReadCloser, error) {
		if b.exports[path] == "" {
			return nil, errors.New("it does not compile, or there is no such package")
		}
		return os.Open(b.exports[path])
	})
	p.configurations = append(p.configurations, b)
	var ours []listed
	decoder := json.NewDecoder(strings.NewReader(out))
	for {
		var l listed
		if err := decoder.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read what go list prints: %w", err)
		}
		b.exports[l.ImportPath] = l.Export
		if l.isOurs() {
			ours = append(ours, l)
		}
	}
	if len(ours) == 0 && len(p.files) == 0 {
		return nil, fmt.Errorf("%s has no package", m.dir)
	}
	for _, l := range ours { // each after those that it imports
		for _, name := range l.IgnoredGoFiles {
			ignored = append(ignored, filepath.Join(l.Dir, name))
		}
		m.check(p, b, l)
	}
	return ignored, nil
}

// check resolves the types of one package.
func (m *module) check(p *program, b *configuration, l listed) {
	before := len(p.problems)
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}, Implicits: map[ast.Node]types.Object{}}
	var trees []*ast.File
	var fresh []*typedFile
	for _, name := range append(slices.Clone(l.GoFiles), l.CgoFiles...) {
		path := name
		if !filepath.IsAbs(name) {
			path = filepath.Join(l.Dir, name)
		}
		f := p.files[path]
		if f == nil {
			f = &typedFile{path: path, info: info, in: b}
			var err error
			if f.text, err = m.read(path); err == nil {
				f.tree, err = parser.ParseFile(p.fset, path, f.text, parser.ParseComments|parser.SkipObjectResolution)
			}
			if err != nil {
				p.problems = append(p.problems, problem{token.Position{Filename: path}, strings.TrimPrefix(err.Error(), path+":")})
			}
			if f.tree == nil {
				continue
			}
			p.files[path] = f
			fresh = append(fresh, f)
		}
		trees = append(trees, f.tree)
	}
	config := types.Config{
		FakeImportC: true,
		GoVersion:   "go" + l.Module.GoVersion,
		Importer:    importing(func(path string) (*types.Package, error) { return b.importFor(l, path) }),
		Error: func(err error) {
			var typed types.Error
			if errors.As(err, &typed) && !typed.Soft {
				p.problems = append(p.problems, problem{p.fset.PositionFor(typed.Pos, false), typed.Msg})
			}
		},
	}
	plain, _, _ := strings.Cut(l.ImportPath, " ")
	pkg, _ := config.Check(plain, p.fset, trees, info)
	b.checked[l.ImportPath] = pkg
	for _, f := range fresh {
		f.pkg = pkg
	}
	if l.Error != nil && len(p.problems) == before {
		p.problems = append(p.problems, problem{token.Position{Filename: l.Dir}, strings.TrimSpace(l.Error.Err)})
	}
}

type importing func(path string) (*types.Package, error)

func (f importing) Import(path string) (*types.Package, error) { return f(path) }

func (b *configuration) importFor(l listed, path string) (*types.Package, error) {
	path = cmp.Or(l.ImportMap[path], path)
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if pkg := b.checked[path]; pkg != nil {
		return pkg, nil
	}
	return b.imports.Import(path)
}

// object returns what a name of Flyball is in this configuration. Nil: there is no such
// thing, or the module does not depend on its package.
func (b *configuration) object(n Name) types.Object {
	key := n.Package + "." + strings.Join(n.Path, ".")
	if known, ok := b.objects[key]; ok {
		return known
	}
	b.objects[key] = b.lookup(n)
	return b.objects[key]
}

func (b *configuration) lookup(n Name) types.Object {
	path := rootModule + "/" + n.Package
	if b.exports[path] == "" || len(n.Path) == 0 {
		return nil
	}
	pkg, err := b.imports.Import(path)
	if err != nil {
		return nil
	}
	found := pkg.Scope().Lookup(n.Path[0])
	for _, name := range n.Path[1:] {
		if found == nil {
			return nil
		}
		found, _, _ = types.LookupFieldOrMethod(found.Type(), true, pkg, name)
	}
	return origin(found)
}

// origin returns the field or method of the generic type for one of an instance.
func origin(o types.Object) types.Object {
	switch o := o.(type) {
	case *types.Func:
		return o.Origin()
	case *types.Var:
		return o.Origin()
	}
	return o
}
