// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The bridge is for the minor versions of controller-runtime from oldest to newest.
const oldest, newest = 24, 25

// rule says what a field of options means for the bridge.
type rule struct {
	types []string // of literals that have the field
	note  bool
	text  string
}

var options = []string{
	controllerRuntime + ".Options", managerPath + ".Options", clusterPath + ".Options",
}

const (
	transports = "the bridge reads requests and answers; " +
		"see that this transport passes both on as they are"
	transforms = "objects do not share what a transform modifies"
)

var rules = map[string]rule{
	"NewInformer": {[]string{cachePath + ".Options"}, false,
		"with it the bridge keeps controller-runtime's informers; remove it"},
	"NewCache": {options, false,
		"bridge.Options keeps it, so the informers stay controller-runtime's; " +
			"remove it, and set what it changes in the field Cache"},
	"NewClient": {options, false,
		"bridge.Options keeps it, so reads may lack own writes; " +
			"remove it, or let it call bridge.NewClient"},
	"Transport":        {[]string{restPath + ".Config"}, false, transports},
	"WrapTransport":    {[]string{restPath + ".Config"}, false, transports},
	"DefaultTransform": {[]string{cachePath + ".Options"}, true, transforms},
	"Transform":        {[]string{cachePath + ".ByObject"}, true, transforms},
}

// configuration are names of variables that may be a rest.Config.
var configuration = regexp.MustCompile(`(?i)(cfg|config|conf)$`)

// Check returns what stands in the way of the bridge in a module with this go.mod, and notes, by
// file and line. It reads main code and test suites, and goes by names alone.
func Check(mod []byte, files []File) []Finding {
	c := checker{constants: map[string]string{}, indexes: map[string]bool{}}
	if f := checkVersion(mod); f != nil {
		c.found = append(c.found, *f)
	}
	var sources []*source
	for _, file := range files {
		s, err := parse(file)
		if err != nil {
			c.found = append(c.found, unreadable(file, err))
			continue
		}
		if !ast.IsGenerated(s.Tree) {
			c.addConstants(s)
			sources = append(sources, s)
		}
	}
	for _, s := range sources {
		c.addIndexes(s)
	}
	for _, s := range sources {
		if !s.isTest() || s.isSuite() {
			c.check(s)
		}
	}
	slices.SortStableFunc(c.found, func(a, b Finding) int {
		if n := strings.Compare(a.File, b.File); n != 0 {
			return n
		}
		return a.Line - b.Line
	})
	return c.found
}

var requirement = regexp.MustCompile(`^\s*(?:require\s+)?(\S+)\s+(v\S+)\s*$`)

// required returns the version of a module that go.mod requires, and the line. Zero: it does not.
func required(mod []byte, path string) (version string, line int) {
	block := ""
	for text := range strings.Lines(string(mod)) {
		line++
		text, _, _ = strings.Cut(text, "//")
		if words := strings.Fields(text); len(words) == 2 && words[1] == "(" {
			block = words[0]
		}
		m := requirement.FindStringSubmatch(text)
		if m != nil && strings.Trim(m[1], `"`) == path && block != "exclude" {
			return m[2], line
		}
	}
	return "", 0
}

// checkVersion returns a finding unless go.mod requires a version of the bridge.
func checkVersion(mod []byte) *Finding {
	version, line := required(mod, controllerRuntime)
	if line == 0 {
		return nil
	}
	text, is0 := strings.CutPrefix(version, "v0.")
	text, _, _ = strings.Cut(text, ".")
	minor, err := strconv.Atoi(text)
	todo := "take a newer release of Flyball"
	switch {
	case is0 && err == nil && oldest <= minor && minor <= newest:
		return nil
	case is0 && (err != nil || minor < oldest):
		todo = fmt.Sprintf("run go get %s@v0.%d and build with it first", controllerRuntime, newest)
	}
	return &Finding{File: "go.mod", Line: line, Text: fmt.Sprintf("controller-runtime is %s, and the bridge is for v0.%d to v0.%d: %s",
		version, oldest, newest, todo)}
}

// checker collects findings, and what is known of the whole module.
type checker struct {
	found     []Finding
	constants map[string]string // the text of constants by name
	indexes   map[string]bool   // fields that have an index
}

func (c *checker) add(f Finding) { c.found = append(c.found, f) }

func (c *checker) addConstants(s *source) {
	ast.Inspect(s.Tree, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Names) == len(spec.Values) {
			for i, id := range spec.Names {
				if text, ok := quoted(spec.Values[i]); ok {
					c.constants[id.Name] = text
				}
			}
		}
		return true
	})
}

func quoted(x ast.Expr) (string, bool) {
	lit, ok := x.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

// field returns the field that x names, or its source.
func (c *checker) field(s *source, x ast.Expr) string {
	if text, ok := quoted(x); ok {
		return text
	}
	name := s.Text(x)
	name = name[strings.LastIndex(name, ".")+1:]
	if text, ok := c.constants[name]; ok {
		return text
	}
	return name
}

func (c *checker) addIndexes(s *source) {
	for _, call := range s.Calls(s.Tree, "IndexField") {
		if n := len(call.Args); n >= 3 {
			c.indexes[c.field(s, call.Args[n-2])] = true
		}
	}
}

func (c *checker) check(s *source) {
	if !s.hasImport(controllerRuntime) && !s.hasImport(restPath) {
		return
	}
	ast.Inspect(s.Tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			c.checkLiteral(s, n)
		case *ast.AssignStmt:
			c.checkAssignment(s, n)
		case *ast.ExprStmt:
			c.checkInformer(s, n.X)
		case *ast.CallExpr:
			c.checkCall(s, n)
		case *ast.FuncDecl:
			c.checkReconcile(s, n)
		}
		return true
	})
}

// isDefault reports whether a field's value is nil or the bridge's.
func (s *source) isDefault(x ast.Expr) bool {
	id, ok := x.(*ast.Ident)
	return ok && id.Name == "nil" || s.uses(x, bridgePath)
}

func (c *checker) checkLiteral(s *source, lit *ast.CompositeLit) {
	for _, element := range lit.Elts {
		pair, ok := element.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		key, ok := pair.Key.(*ast.Ident)
		if !ok || s.isDefault(pair.Value) {
			continue
		}
		r, ok := rules[key.Name]
		// The type of an element may be the map's.
		inMap := lit.Type == nil && key.Name == "Transform" && s.hasImport(cachePath)
		if ok && (inMap || s.is(lit.Type, r.types...)) {
			c.add(s.find(key, r.note, "%s is set: %s", key.Name, r.text))
		}
	}
}

func (c *checker) checkAssignment(s *source, set *ast.AssignStmt) {
	if id, ok := set.Lhs[0].(*ast.Ident); ok && id.Name == "_" && len(set.Rhs) == 1 {
		c.checkInformer(s, set.Rhs[0])
	}
	for i, x := range set.Lhs {
		to, ok := x.(*ast.SelectorExpr)
		if !ok || len(set.Lhs) != len(set.Rhs) || s.isDefault(set.Rhs[i]) {
			continue
		}
		r, ok := rules[to.Sel.Name]
		if !ok || to.Sel.Name == "Transport" && !configuration.MatchString(s.Text(to.X)) {
			continue
		}
		c.add(s.find(to, r.note, "%s may be the field of %s: %s", s.Text(to), short(r.types[0]), r.text))
	}
}

// short returns the name of a type as in code: rest.Config.
func short(name string) string {
	if rest, ok := strings.CutPrefix(name, controllerRuntime+"."); ok {
		return "ctrl." + rest
	}
	return name[strings.LastIndex(name, "/")+1:]
}

func (c *checker) checkInformer(s *source, x ast.Expr) {
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return
	}
	if f, ok := call.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "GetInformer" {
		c.add(s.find(call, true, "the informer is started and not used here; "+
			"if nothing else may read it, remove it, as its objects take memory"))
	}
}

func (c *checker) checkCall(s *source, call *ast.CallExpr) {
	f, ok := call.Fun.(*ast.SelectorExpr)
	switch {
	case !ok:
	case s.is(f, clusterPath+".New"):
		c.add(s.find(call, true, "cluster.New is not edited; "+
			"set NewCache: bridge.NewCache and NewClient: bridge.NewClient in its options"))
	case f.Sel.Name == "Wrap" && len(call.Args) == 1 && configuration.MatchString(s.Text(f.X)):
		c.add(s.find(call, false, "%s may be the method of rest.Config: %s", s.Text(f), transports))
	case f.Sel.Name == "List" && !strings.Contains(s.Text(f.X), "APIReader"):
		c.checkFields(s, call)
	}
}

// checkFields looks for the indexes of the fields that a List selects.
func (c *checker) checkFields(s *source, list *ast.CallExpr) {
	for _, arg := range list.Args {
		lit, ok := arg.(*ast.CompositeLit)
		if !ok || !s.is(lit.Type, clientPath+".MatchingFields") {
			continue
		}
		for _, element := range lit.Elts {
			pair, ok := element.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			if field := c.field(s, pair.Key); !c.indexes[field] {
				c.add(s.find(pair, false, "no IndexField for %q is found, so this List may fail in the cache; "+
					"add one by mgr.GetFieldIndexer()", field))
			}
		}
	}
}

// checkReconcile notes lists of a whole kind.
func (c *checker) checkReconcile(s *source, fn *ast.FuncDecl) {
	if fn.Recv == nil || fn.Name.Name != "Reconcile" || fn.Body == nil {
		return
	}
	for _, call := range s.Calls(fn.Body, "List") {
		if len(call.Args) != 2 {
			continue
		}
		if _, isOptions := call.Args[1].(*ast.CompositeLit); !isOptions {
			c.add(s.find(call, true, "a List without options may walk all objects of the kind; "+
				"give client.InNamespace, or select by an index"))
		}
	}
}
