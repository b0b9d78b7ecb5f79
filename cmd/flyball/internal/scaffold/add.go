// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/flyball-dev/flyball/cmd/flyball/internal/gotree"
)

// Addition adds to the module of an operator that New has written, and that people have
// changed since. It inserts lines and makes files; lines that are there stay.
type Addition struct {
	// Dir has the module.
	Dir string
	// Kind to add, or to add a webhook or a version for. For these empty: the only kind.
	Kind string
	// Children of the kind to add. Empty: Deployment.
	Children []string
	// Shard is the name of the shard to add.
	Shard string
	// Replicas that are to share objects.
	Replicas int
	// Version to add, such as v1beta1.
	Version string
}

// AddKind adds a kind of the module's group, with its reconciler and test, and returns the
// files that it has changed or made.
func (a Addition) AddKind() ([]string, error) { return a.add(plan.addKind) }

// AddWebhook adds a validating webhook for a kind.
func (a Addition) AddWebhook() ([]string, error) {
	return a.add(func(p plan, all files) error {
		if _, found := all["webhook.go"]; found {
			return errors.New("webhook.go is there already: add a function like those there, and its webhook to config/operator.yaml")
		}
		return p.addWebhook(all, "webhook_test.go")
	})
}

// add makes the change of a plan to the module's files, unless it would change a line.
func (a Addition) add(change func(plan, files) error) ([]string, error) {
	before, err := readModule(a.Dir)
	if err != nil {
		return nil, err
	}
	p, err := a.plan(before)
	if err != nil {
		return nil, err
	}
	after := maps.Clone(before)
	p.replaced = before
	if err := change(p, after); err != nil {
		return nil, fmt.Errorf("nothing is changed: %w", err)
	}
	changed, made := files{}, files{}
	for name, text := range after {
		if old, found := before[name]; !found {
			made[name] = text
		} else if !bytes.Equal(old, text) {
			if line := lost(old, text); line != "" {
				return nil, fmt.Errorf("nothing is changed: %s would lose the line %q; if it is not formatted, run gofmt -w %s first", name, line, name)
			}
			changed[name] = text
		}
	}
	if err := made.wrap(); err != nil {
		return nil, err
	}
	maps.Copy(changed, made)
	for name := range changed {
		if _, err := os.Stat(filepath.Join(a.Dir, filepath.FromSlash(name))); err == nil && before[name] == nil {
			return nil, fmt.Errorf("nothing is changed: %s is there already", name)
		}
	}
	return slices.Sorted(maps.Keys(changed)), changed.write(a.Dir)
}

// lost returns a line of old that is not in text, in the same order. Empty: there is none.
func lost(old, text []byte) string {
	lines := strings.Split(string(text), "\n")
	for line := range strings.SplitSeq(string(old), "\n") {
		at := slices.Index(lines, line)
		if at < 0 {
			return line
		}
		lines = lines[at+1:]
	}
	return ""
}

// readModule returns the Go files and manifests of a module.
func readModule(dir string) (files, error) {
	all := files{}
	for _, pattern := range []string{"go.mod", "*.go", "api/*/*.go", "config/*.yaml"} {
		names, err := fs.Glob(os.DirFS(dir), pattern)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
			if err != nil {
				return nil, err
			}
			all[name] = text
		}
	}
	for _, name := range []string{"go.mod", "main.go", "reconciler.go", "operator_test.go", "config/operator.yaml"} {
		if all[name] == nil {
			return nil, fmt.Errorf("%s has no %s: run the command in a module that flyball new has written, or name one with --dir", dir, name)
		}
	}
	return all, nil
}

var (
	moduleLine = regexp.MustCompile(`(?m)^module\s+(\S+)`)
	nameLine   = regexp.MustCompile(`(?m)^kind: Deployment\nmetadata:\n  name: (\S+)-operator$`)
)

// plan describes the module, with the addition's kind.
func (a Addition) plan(all files) (plan, error) {
	module := moduleLine.FindSubmatch(all["go.mod"])
	if module == nil {
		return plan{}, errors.New("go.mod names no module")
	}
	operator := nameLine.FindSubmatch(all["config/operator.yaml"])
	if operator == nil {
		return plan{}, errors.New("config/operator.yaml has no Deployment with a name that ends in -operator, first in its metadata: the command cannot see the operator's name")
	}
	p := Project{Module: string(module[1]), Kind: a.Kind, Children: a.Children, Replicas: a.Replicas}
	var kinds []string
	for name, text := range all {
		if !strings.HasPrefix(name, "api/") {
			continue
		}
		f, err := gotree.Parse(name, text)
		if err != nil {
			return plan{}, err
		}
		kinds = append(kinds, kindsIn(f)...)
		p.Group = groupIn(f, p.Group)
	}
	slices.Sort(kinds)
	kinds = slices.Compact(kinds) // each once, in whatever versions
	if p.Group == "" || len(kinds) == 0 {
		return plan{}, errors.New("api/v1 has no kind and GroupVersion: the command adds only to operators with a CRD")
	}
	if p.Kind == "" && (len(kinds) == 1 || a.Shard != "" || a.Replicas != 0) {
		p.Kind = first(kinds, string(operator[1]))
	}
	out, err := p.check()
	out.operator, out.present = string(operator[1]), kinds
	return out, err
}

// first returns the kind that an operator is named after, or else any.
func first(kinds []string, operator string) string {
	if i := slices.IndexFunc(kinds, func(kind string) bool { return nounOf(kind).resource == operator }); i > 0 {
		return kinds[i]
	}
	return kinds[0]
}

// kindsIn returns the structs of a file that have the metadata of a kind.
func kindsIn(f *gotree.File) []string {
	var kinds []string
	for _, name := range f.Declared() {
		decl, ok := f.DeclarationOf(name).(*ast.GenDecl)
		if ok && strings.Contains(f.Text(decl), "metav1.ObjectMeta") && strings.Contains(f.Text(decl), "metav1.TypeMeta") {
			kinds = append(kinds, name)
		}
	}
	return kinds
}

// groupIn returns the group of a file's GroupVersion, or the one known.
func groupIn(f *gotree.File, known string) string {
	decl := f.DeclarationOf("GroupVersion")
	if decl == nil {
		return known
	}
	ast.Inspect(decl, func(n ast.Node) bool {
		if pair, ok := n.(*ast.KeyValueExpr); ok && f.Text(pair.Key) == "Group" {
			if group, err := strconv.Unquote(f.Text(pair.Value)); err == nil {
				known = group
			}
		}
		return true
	})
	return known
}
