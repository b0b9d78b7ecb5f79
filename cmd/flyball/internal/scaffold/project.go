// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package scaffold writes the modules of operators, and adds to them. Go is changed by its
// syntax tree, so comments and the lines around a change stay.
//
//	template.txtar, a copy of examples/operator ──┐
//	parts.txtar: children, variants, a webhook ───┴─▶ project.go ──▶ files ──▶ write.go
//
//	files of an operator ──▶ addkind.go, addversion.go, replicas.go and others ──▶ insertions
package scaffold

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/flyball-dev/flyball/cmd/flyball/internal/gotree"
)

// Project describes the module of an operator to write.
type Project struct {
	Module string
	Kind   string
	// Group of the kind. Empty: the host of the module's path.
	Group string
	// Children are kinds. Empty: Deployment, or without a CRD ConfigMap or Secret.
	Children []string
	// Webhook adds a validating webhook.
	Webhook bool
	// Replicas share the objects. 0: one does all the work.
	Replicas int
	// Builtin is an operator without a CRD: Kind is a kind of Kubernetes.
	Builtin bool
	// Dir is the directory to write into. Empty: the last element of the module's path.
	Dir string
	// Replace is a clone of Flyball to build with. Empty: Version.
	Replace string
	// Version of Flyball that the module requires, such as v0.9.0.
	Version string
}

// plan is a Project that has been checked.
type plan struct {
	Project
	noun
	parent   builtin // without a CRD
	children []builtin
	workload *builtin // the first child with replicas; nil: there is none
	operator string   // its name, without "-operator"
	present  []string // kinds that the module has
	replaced files    // by an addition, which writes here what must stay of them
}

// check returns everything that is wrong with a project.
func (p Project) check() (plan, error) {
	problems := []error{checkModule(p.Module), checkKind(p.Kind)}
	if problems[0] == nil {
		p.Group, p.Dir = cmp.Or(p.Group, groupFor(p.Module)), cmp.Or(p.Dir, directoryFor(p.Module))
		problems = append(problems, checkGroup(p.Group))
	}
	out := plan{Project: p}
	if problems[1] == nil {
		out.noun = nounOf(p.Kind)
		out.operator = out.resource
	}
	if p.Builtin && problems[1] == nil {
		parent, found := find(parents, p.Kind)
		if !found {
			problems = append(problems, fmt.Errorf("kind %q is not one that --no-crd knows: give --kind %s, or leave out --no-crd for a kind of your own",
				p.Kind, strings.Join(kindsOf(parents), ", ")))
		}
		out.parent = parent
	}
	problems = append(problems, out.setChildren())
	if p.Replicas != 0 {
		problems = append(problems, checkReplicas(p.Replicas))
	}
	if err := errors.Join(problems...); err != nil {
		return out, err
	}
	return out, out.checkNames()
}

func (p *plan) setChildren() error {
	if len(p.Children) == 0 {
		p.Children = []string{"Deployment"}
		if p.Builtin {
			p.Children = []string{"ConfigMap"}
			if p.Kind == "ConfigMap" {
				p.Children = []string{"Secret"}
			}
		}
	}
	var problems []error
	for i, kind := range p.Children {
		child, found := find(children, kind)
		switch {
		case !found:
			problems = append(problems, fmt.Errorf("child kind %q is not one that can be written; give --children %s", kind, strings.Join(kindsOf(children), ",")))
		case slices.Contains(p.Children[:i], kind):
			problems = append(problems, fmt.Errorf("child kind %q is given twice; leave one out", kind))
		case kind == p.Kind:
			problems = append(problems, fmt.Errorf("kind %q is also a child; choose another kind, or other children", kind))
		}
		p.children = append(p.children, child)
	}
	for _, child := range p.children {
		if child.isWorkload() && p.workload == nil {
			p.workload = &child
		}
	}
	return errors.Join(problems...)
}

// checkNames returns an error if a name of the kind is one that the files have already.
func (p plan) checkNames() error {
	if p.noun == frontend() {
		return nil // the names are the template's own
	}
	taken := map[string]bool{}
	for _, archive := range [][]byte{templateArchive, partsArchive} {
		for name, text := range unpack(archive) {
			if !isGo(name) || strings.HasPrefix(name, "version/") { // whose functions have no variables of kinds
				continue
			}
			f, err := gotree.Parse(name, text)
			if err != nil {
				return err
			}
			maps.Copy(taken, f.Outer())
		}
	}
	for _, child := range p.children {
		n := child.noun()
		taken[n.variable], taken[n.several], taken[child.builder()] = true, true, true
	}
	for _, name := range []string{p.kind, p.variable, p.several, p.kind + "Spec", p.kind + "Status", "new" + p.kind} {
		if taken[name] {
			return fmt.Errorf("kind %q needs the name %q, which the operator's code has for something else; choose another kind, such as My%s", p.Kind, name, p.Kind)
		}
	}
	return nil
}

// files makes the files of the project.
func (p plan) files() (files, error) {
	all := template()
	if p.Builtin {
		delete(all, templateAPI)
		delete(all, "config/crd.yaml")
	}
	for name, text := range all {
		var err error
		switch {
		case isGo(name):
			all[name], err = p.goFile(name, text)
		case name == "go.mod":
			all[name] = []byte(p.goMod(string(text)))
		case strings.HasPrefix(name, "config/"):
			all[name] = []byte(p.manifest(name, string(text)))
		case name != "go.sum":
			all[name] = []byte(p.words(string(text)))
		}
		if err != nil {
			return nil, err
		}
	}
	all["README.md"] = p.readme()
	if text, ok := all[templateAPI]; ok {
		delete(all, templateAPI)
		all["api/v1/"+p.resource+".go"] = text
	}
	if p.Webhook {
		if err := p.addWebhook(all, "operator_test.go"); err != nil {
			return nil, err
		}
	}
	if p.Replicas != 0 {
		p.replaced = files{}
		if err := all.addReplicas(p, "operator_test.go"); err != nil {
			return nil, err
		}
	}
	return all, all.wrap()
}

// columns is the longest line of Go that is written.
const columns = 100

// wrap breaks longer lines, which names of a project make.
func (all files) wrap() error {
	for name, text := range all {
		if isGo(name) {
			wrapped, err := gotree.Wrap(name, text, columns)
			if err != nil {
				return err
			}
			all[name] = wrapped
		}
	}
	return nil
}

// goMod writes the module's path, and the version or the clone of Flyball.
func (p plan) goMod(text string) string {
	text, _, _ = strings.Cut(text, "\nreplace ")
	text = strings.Replace(text, "module "+templateModule, "module "+p.Module, 1)
	version := p.Version
	if p.Replace != "" {
		version = "v0.0.0"
	}
	for _, module := range []string{flyballModule, flyballModule + "/simulate"} {
		text = regexp.MustCompile(`(?m)^(\t`+regexp.QuoteMeta(module)+`) \S+`).ReplaceAllString(text, "${1} "+version)
	}
	if p.Replace != "" {
		text += fmt.Sprintf("\nreplace (\n\t%[1]s => %[2]q\n\t%[1]s/simulate => %[3]q\n)\n", flyballModule, p.Replace, p.Replace+"/simulate")
	}
	return text
}
