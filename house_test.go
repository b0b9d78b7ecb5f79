// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package flyball_test

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode"
)

// The tables of this file and of its neighbours house_*_test.go are the
// architecture. Whoever changes a table changes the architecture, and says why
// in the same commit.

const module = "github.com/flyball-dev/flyball"

// arrows says which packages of ours a package may import. Each may also
// import internal ones. A package that is not in the table fails the test.
// Under examples and hack everything is allowed.
var arrows = map[string][]string{
	".":                                    {},
	"workqueue":                            {},
	"workqueue/clientgo":                   {"workqueue"},
	"informer":                             {"informer/listwatch"},
	"informer/listwatch":                   {},
	"informer/compact":                     {"informer", "informer/internal/compact"},
	"informer/clientgo":                    {"informer", "informer/listwatch"},
	"informer/clientgo/internal/lifecycle": {"informer"},
	"informer/clientgo/factory":            {"informer", "informer/clientgo"},
	"informer/clientgo/byresource":         {"informer", "informer/clientgo"},
	"informer/informertest":                {"informer", "informer/listwatch"},
	"source":                               {"informer"},
	"source/clientgo":                      {"informer", "source"},
	"source/sourcetest":                    {"informer", "source"},
	"reconcile":                            {"informer", "source", "workqueue"},
	"client":                               {"informer"},
	"webhook":                              {"informer", "resource/builtin"},
	"manager": {"client", "informer", "informer/clientgo", "reconcile", "resource/builtin", "source",
		"webhook", "workqueue", "workqueue/clientgo"},
	"manager/internal/crdupdate": {"internal/costly"},
	"manager/internal/crdinstall": {"client", "informer", "internal/linger", "internal/manifest", "internal/textlog",
		"manager/internal/crdupdate"},
	"manager/internal/election": {"informer", "internal/codec", "internal/simhook", "internal/textlog", "internal/writegate"},
	"manager/internal/handover": {"informer", "internal/effects", "internal/textlog", "manager/internal/election"},
	"manager/internal/guard":    {"internal/codec", "internal/confidential"},
	"manager/internal/recorder": {"internal/codec", "internal/linger", "internal/simhook", "internal/textlog"},
	"manager/internal/serving": {"internal/authority", "internal/keypair", "internal/linger", "internal/simhook",
		"internal/textlog"},

	"bridge/controllerruntime":       {"informer", "informer/clientgo", "workqueue", "workqueue/clientgo"}, // a module of its own
	"bridge/controllerruntime/adopt": {"bridge/controllerruntime", "informer", "manager", "reconcile", "source"},

	"cmd/flyball":                     {},
	"cmd/flyball/internal/apiversion": {"cmd/flyball/internal/gotree"},
	"cmd/flyball/internal/gotree":     {},
	"cmd/flyball/internal/scaffold":   {"cmd/flyball/internal/apiversion", "cmd/flyball/internal/gotree"},
	"cmd/pack":                        {"cmd/pack/internal/base", "cmd/pack/internal/bundle", "cmd/pack/internal/chart", "cmd/pack/internal/image", "cmd/pack/internal/outdir", "cmd/pack/internal/program", "cmd/pack/internal/spdx"}, // a module of its own
	"cmd/pack/internal/bundle":        {"cmd/pack/internal/base"},
	"cmd/pack/internal/chart":         {"cmd/pack/internal/base"},

	"resource":              {},
	"resource/resourcetest": {"resource"},
	"resource/builtin":      {},
	"resource/crdgen":       {}, // a module of its own
	"rights":                {},
	"envtest":               {},
	"simulate":              {}, // a module of its own; a server, so it knows no client
	"integration":           {}, // tests alone

	// The rooms of the informer, from the bottom up.
	"informer/internal/base":      {},
	"informer/internal/encoding":  {"internal/jsonspan", "internal/ration"},
	"informer/internal/compact":   {"informer/internal/base", "informer/internal/encoding", "internal/deque"},
	"informer/internal/fixture":   {"informer/internal/base", "informer/internal/compact", "informer/listwatch", "internal/linger"}, // tests alone
	"informer/internal/fields":    {"internal/editdistance"},
	"informer/internal/share":     {},
	"informer/internal/protoplan": {"informer/internal/fields", "informer/internal/share", "internal/costly"},
	"informer/internal/gate":      {"internal/simhook"},
	"informer/internal/jsonplan":  {"informer/internal/fields", "informer/internal/share", "internal/costly", "internal/jsonspan"},
	"informer/internal/headroom":  {},
	"informer/internal/restclient": {"informer/internal/base", "informer/internal/encoding", "informer/internal/fields", "informer/internal/gate", "informer/internal/headroom",
		"informer/internal/jsonplan", "informer/internal/protoplan", "informer/internal/share", "informer/listwatch", "internal/answers", "internal/confidential", "internal/costly", "internal/jsonspan", "internal/ration", "internal/textlog"},
	"informer/internal/schemas":   {"informer/internal/gate", "informer/internal/restclient", "internal/simhook", "internal/textlog"},
	"informer/internal/store":     {"informer/internal/base", "informer/internal/compact", "internal/deque", "internal/vector"},
	"informer/internal/steps":     {"informer/internal/base", "informer/internal/encoding", "informer/internal/gate", "informer/internal/headroom"},
	"informer/internal/unsettled": {"informer/internal/base", "informer/internal/restclient", "informer/listwatch", "internal/linger", "internal/simhook"},
	"informer/internal/reflector": {"informer/internal/base", "informer/internal/compact", "informer/internal/encoding", "informer/internal/gate", "informer/internal/headroom",
		"informer/internal/restclient", "informer/internal/schemas", "informer/internal/steps", "informer/internal/store", "informer/listwatch",
		"internal/simhook", "internal/textlog"},

	"internal/canary": {"client", "informer", "internal/spantest", "internal/textlog",
		"manager", "reconcile", "source"}, // tests alone: a program to listen to
	"internal/habits": {"client", "informer", "manager", "reconcile", "source"}, // tests alone

	"internal/commandline": {"internal/editdistance"},
	"internal/applied":     {"informer", "internal/jsonspan"},
	"internal/origin":      {},
	"internal/costly":      {"internal/jsonspan"},
	"internal/effects":     {"informer", "internal/answers", "internal/confidential", "internal/costly", "internal/jsonspan", "internal/ration"},
	"internal/health":      {"informer", "internal/simhook", "internal/stacks", "internal/textlog", "reconcile", "source"},
	"internal/metrics":     {"informer", "internal/histogram", "internal/lifesign", "reconcile", "webhook", "workqueue"},
	"internal/observer":    {"informer", "internal/effects"},
	"internal/ownnews":     {"informer"},
	"internal/protoweight": {"internal/jsonweight"},
	"internal/ration":      {"internal/jsonweight", "internal/protoweight"},
	"internal/writegate":   {"reconcile"},

	// The rooms of the simulated server. Those without a row see no other.
	"simulate/internal/allot":     {"simulate/internal/keyed", "simulate/internal/validation"},
	"simulate/internal/defaults":  {"simulate/internal/jsonvalue"},
	"simulate/internal/crdrules":  {"simulate/internal/jsonvalue"},
	"simulate/internal/object":    {"simulate/internal/jsonvalue"},
	"simulate/internal/revisions": {"simulate/internal/btree", "simulate/internal/object"},
	"simulate/internal/refusal":   {},
	"simulate/internal/journal":   {"internal/filelock", "simulate/internal/object", "simulate/internal/revisions"},
	"simulate/internal/store": {"simulate/internal/journal", "simulate/internal/keyed", "simulate/internal/object",
		"simulate/internal/refusal", "simulate/internal/revisions"},
	"simulate/internal/wire":      {"simulate/internal/gotypes", "simulate/internal/revisions"},
	"simulate/internal/ownership": {"simulate/internal/object"},
	"simulate/internal/kinds": {"simulate/internal/autoscaling", "simulate/internal/crdrules", "simulate/internal/defaults",
		"simulate/internal/gotypes", "simulate/internal/jsonvalue", "simulate/internal/models", "simulate/internal/object",
		"simulate/internal/ownership", "simulate/internal/revisions", "simulate/internal/validation"},
	"simulate/internal/fieldmanager": {"simulate/internal/jsonvalue", "simulate/internal/kinds", "simulate/internal/object",
		"simulate/internal/ownership", "simulate/internal/refusal", "simulate/internal/wire"},
	"simulate/internal/tables": {"simulate/internal/jsonvalue", "simulate/internal/kinds", "simulate/internal/object"},
	"simulate/internal/encode": {"internal/deque", "simulate/internal/gotypes", "simulate/internal/kinds", "simulate/internal/object",
		"simulate/internal/revisions", "simulate/internal/tables", "simulate/internal/wire"},
	"simulate/internal/access": {"simulate/internal/jsonvalue", "simulate/internal/kinds",
		"simulate/internal/object", "simulate/internal/revisions"},
	"simulate/internal/webhooks": {"simulate/internal/access", "simulate/internal/crdrules", "simulate/internal/decode", "simulate/internal/encode",
		"simulate/internal/keyed", "simulate/internal/kinds", "simulate/internal/object", "simulate/internal/refusal"},
	"simulate/internal/podsecurity": {"simulate/internal/kinds", "simulate/internal/object", "simulate/internal/strategy"},
	"simulate/internal/advice":      {"simulate/internal/crdrules", "simulate/internal/jsonvalue", "simulate/internal/kinds", "simulate/internal/object"},
	"simulate/internal/queries": {"simulate/internal/kinds", "simulate/internal/object",
		"simulate/internal/refusal", "simulate/internal/revisions"},
	"simulate/internal/faults": {"simulate/internal/access", "simulate/internal/encode", "simulate/internal/kinds", "simulate/internal/object",
		"simulate/internal/refusal", "simulate/internal/revisions", "simulate/internal/webhooks"},
	"simulate/internal/pipe": {},
	"simulate/internal/discovery": {"simulate/internal/encode", "simulate/internal/gotypes", "simulate/internal/kinds",
		"simulate/internal/models", "simulate/internal/refusal", "simulate/internal/wire"},
	"simulate/internal/deletion": {"simulate/internal/defaults", "simulate/internal/jsonvalue", "simulate/internal/kinds",
		"simulate/internal/models", "simulate/internal/object"},
	"simulate/internal/definitions": {"simulate/internal/deletion", "simulate/internal/fieldmanager", "simulate/internal/kinds",
		"simulate/internal/object", "simulate/internal/revisions", "simulate/internal/webhooks"},
	"simulate/internal/serve": {"simulate/internal/access", "simulate/internal/decode", "simulate/internal/encode",
		"simulate/internal/faults", "simulate/internal/fieldmanager", "simulate/internal/kinds", "simulate/internal/object",
		"simulate/internal/ownership", "simulate/internal/queries", "simulate/internal/read", "simulate/internal/refusal",
		"simulate/internal/revisions", "simulate/internal/routing", "simulate/internal/write"},
	"simulate/internal/routing": {"simulate/internal/kinds", "simulate/internal/refusal"},
	"simulate/internal/read": {"simulate/internal/kinds", "simulate/internal/object", "simulate/internal/queries",
		"simulate/internal/refusal", "simulate/internal/revisions", "simulate/internal/store"},
	"simulate/internal/write": {"simulate/internal/access", "simulate/internal/advice", "simulate/internal/allot", "simulate/internal/decode",
		"simulate/internal/defaults", "simulate/internal/deletion", "simulate/internal/fieldmanager", "simulate/internal/jsonvalue",
		"simulate/internal/kinds", "simulate/internal/object", "simulate/internal/podsecurity", "simulate/internal/refusal",
		"simulate/internal/revisions", "simulate/internal/strategy", "simulate/internal/validation", "simulate/internal/webhooks"},
	"simulate/internal/strategy": {"simulate/internal/jsonvalue", "simulate/internal/kinds", "simulate/internal/object",
		"simulate/internal/validation"},
	"simulate/internal/decode": {"simulate/internal/defaults", "simulate/internal/gotypes", "simulate/internal/jsonvalue",
		"simulate/internal/kinds", "simulate/internal/object", "simulate/internal/ownership", "simulate/internal/refusal"},
	"simulate/internal/actors": {"simulate/internal/defaults", "simulate/internal/jsonvalue", "simulate/internal/keyed",
		"simulate/internal/object", "simulate/internal/revisions", "internal/simhook"},
	"simulate/internal/validation": {"simulate/internal/autoscaling", "simulate/internal/crdrules", "simulate/internal/jsonvalue"},

	"simulate/embedded":            {"simulate"},
	"simulate/cmd/apiserver":       {"simulate", "simulate/embedded"},
	"simulate/simtest":             {"client", "simulate"},
	"simulate/transcript":          {}, // knows servers by HTTP alone
	"simulate/transcript/recorded": {}, // tests alone
	"simulate/kit":                 {"client", "informer", "informer/compact", "manager", "rights", "simulate"},
	"simulate/judges":              {"envtest", "simulate"}, // tests alone
	"simulate/kit/zoo":             {},                      // tests alone
}

// alone are packages that must not know of Kubernetes at all.
var alone = []string{"workqueue"}

// barredNames say what a name is not: a twin, a leftover, a drawer.
var (
	barredWords = []string{"Typed", "Impl", "Base", "Util", "Utils", "2"}
	barredFiles = []string{"types.go", "helpers.go", "util.go", "utils.go", "common.go", "misc.go"}
	barredDirs  = []string{"pkg", "util", "utils", "common", "helpers", "misc"}
)

// demanded are names that an interface of someone else asks for.
var demanded = map[string][]string{
	"informer/clientgo":        {"AddEventHandlerWithOptions"}, // cache.SharedInformer
	"bridge/controllerruntime": {"AddEventHandlerWithOptions"}, // cache.Informer
}

func TestHouse_ImportsFollowTheArrows(t *testing.T) {
	for _, f := range sources(t) {
		if f.isTest() {
			for _, imp := range f.imports() {
				if f.isLibrary() && !within(f.dir, "bridge") && (under(imp, "simulate") || under(imp, "examples")) {
					t.Errorf("%s: imports %s, a module that the root must not need, not even in tests", f.path, imp)
				}
			}
			continue
		}
		if !f.isLibrary() && !within(f.dir, "simulate") {
			continue
		}
		allowed, ruled := arrows[f.dir]
		if !ruled && !isInternal(f.dir) {
			t.Errorf("%s: package %s has no arrows; decide what it may import and write it into house_test.go", f.path, f.dir)
		}
		for _, imp := range f.imports() {
			ours, isOurs := strings.CutPrefix(imp, module+"/")
			if isOurs && !slices.Contains(allowed, ours) && (!isInternal(ours) || isInternal(f.dir)) {
				t.Errorf("%s: imports %s, against the arrows", f.path, ours)
			}
			if slices.Contains(alone, f.dir) && strings.Contains(imp, "k8s.io/") {
				t.Errorf("%s: imports %s; package %s stands alone", f.path, imp, f.dir)
			}
		}
	}
}

func TestHouse_EachPackageHasItsComment(t *testing.T) {
	comments := map[string]string{}
	for _, f := range sources(t) {
		if !f.isTest() {
			comments[f.dir] = cmp.Or(comments[f.dir], f.ast.Doc.Text())
			if f.ast.Doc != nil && f.isLibrary() && !isInternal(f.dir) && f.base() != "doc.go" {
				t.Errorf("%s: the package comment stands in doc.go, so that a reader finds it", f.path)
			}
		}
	}
	for dir, comment := range comments {
		if comment == "" {
			t.Errorf("%s: no package comment; it is the package's contract", dir)
		}
	}
}

// maxTemplate is how many lines of Go the template has without its tests: what a
// reader would delete first belongs into examples/website.
const maxTemplate = 350

func TestHouse_TheTemplateIsSmall(t *testing.T) {
	lines := 0
	for _, f := range sources(t) {
		if within(f.dir, "examples/operator") && !f.isTest() {
			lines += bytes.Count(f.text, []byte("\n"))
		}
	}
	if lines == 0 || lines > maxTemplate {
		t.Errorf("examples/operator has %d lines of Go without tests, want some and at most %d", lines, maxTemplate)
	}
}

func TestHouse_FilesCarryTheLicence(t *testing.T) {
	header := []byte("// SPDX-FileCopyrightText: The Flyball Authors\n// SPDX-License-Identifier: Apache-2.0\n\n")
	for _, f := range sources(t) {
		if !bytes.HasPrefix(f.text, header) {
			t.Errorf("%s: does not begin with these two lines and an empty one:\n%s", f.path, header)
		}
	}
}

func TestHouse_NamesSayWhatAThingIs(t *testing.T) {
	for _, f := range sources(t) {
		if slices.Contains(barredFiles, f.base()) {
			t.Errorf("%s: a file is named after its main type or verb", f.path)
		}
		for _, dir := range strings.Split(f.dir, "/") {
			if slices.Contains(barredDirs, dir) {
				t.Errorf("%s: %q is a drawer, not a package", f.path, dir)
			}
		}
		if f.isTest() || !f.isLibrary() {
			continue
		}
		for _, name := range exported(f.ast) {
			if slices.Contains(demanded[f.dir], name) {
				continue
			}
			if strings.Contains(name, "WithOptions") {
				t.Errorf("%s: %s: each constructor takes its Options; there is no second one", f.path, name)
			}
			for _, word := range words(name) {
				if slices.Contains(barredWords, word) {
					t.Errorf("%s: %s: %q does not belong in an exported name", f.path, name, word)
				}
			}
		}
	}
}

// What ARCHITECTURE.md and the README name as a file, is one.
func TestHouse_TheDrawingNamesFilesThatExist(t *testing.T) {
	named := regexp.MustCompile(`[a-z]+(?:/[a-z_]+)+\.go\b`)
	for _, doc := range []string{"ARCHITECTURE.md", "README.md"} {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range named.FindAllString(string(text), -1) {
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s names %s: %v; change the drawing with the code", doc, file, err)
			}
		}
	}
}

// exported returns the exported names that a file declares at its top level,
// methods among them.
func exported(f *ast.File) []string {
	var names []*ast.Ident
	for _, decl := range f.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			names = append(names, decl.Name)
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, spec.Name)
				case *ast.ValueSpec:
					names = append(names, spec.Names...)
				}
			}
		}
	}
	var out []string
	for _, name := range names {
		if name.IsExported() {
			out = append(out, name.Name)
		}
	}
	return out
}

// words splits a name at its capitals and digits: AddRateLimited2 is Add,
// Rate, Limited, 2.
func words(name string) []string {
	var out []string
	for i, r := range name {
		if i == 0 || unicode.IsUpper(r) || unicode.IsDigit(r) {
			out = append(out, "")
		}
		out[len(out)-1] += string(r)
	}
	return out
}

// sourceFile is one Go file of the repository.
type sourceFile struct {
	path string // from the root, with slashes
	dir  string // its directory, "." for the root
	text []byte
	ast  *ast.File
}

func (f sourceFile) base() string { return path.Base(f.path) }
func (f sourceFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// isLibrary reports whether the file is part of what an operator can import.
func (f sourceFile) isLibrary() bool {
	return !within(f.dir, "examples") && !within(f.dir, "hack") && !within(f.dir, "simulate")
}

func (f sourceFile) imports() []string {
	var out []string
	for _, spec := range f.ast.Imports {
		if imp, err := strconv.Unquote(spec.Path.Value); err == nil {
			out = append(out, imp)
		}
	}
	return out
}

func within(dir, top string) bool { return dir == top || strings.HasPrefix(dir, top+"/") }
func under(imp, dir string) bool  { return within(imp, module+"/"+dir) }
func isInternal(dir string) bool  { return slices.Contains(strings.Split(dir, "/"), "internal") }

var parseOnce = sync.OnceValues(parse)

// sources returns every Go file of the repository, those of the nested modules
// and the tests among them.
func sources(t *testing.T) []sourceFile {
	t.Helper()
	files, err := parseOnce()
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func parse() ([]sourceFile, error) {
	var files []sourceFile
	fset := token.NewFileSet()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if hidden := strings.HasPrefix(d.Name(), ".") && name != "."; hidden || d.Name() == "testdata" || ofTheSite[filepath.ToSlash(name)] {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(fset, name, text, parser.ParseComments)
		if err != nil {
			return err
		}
		slashed := filepath.ToSlash(name)
		files = append(files, sourceFile{slashed, path.Dir(slashed), text, parsed})
		return nil
	})
	return files, err
}
