// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strings"

	"github.com/flyball-dev/flyball/cmd/flyball/internal/gotree"
)

// frontend is the kind of the template.
func frontend() noun { return nounOf("Frontend") }

// deployment is the child of the template.
func deployment() builtin { return builtin{"Deployment", "apps", "appsv1"} }

// goFile changes a Go file of the template into one of the project.
func (p plan) goFile(name string, text []byte) ([]byte, error) {
	steps := []func(*gotree.File) error{
		func(f *gotree.File) error { return p.vary(name, f) },
		p.dropReplicas,
		p.exchange,
		p.lead,
		p.addChildren,
		func(f *gotree.File) error {
			if fn, ok := f.DeclarationOf("reconciler.reconcile").(*ast.FuncDecl); ok && p.hasReplicas() && slices.Contains(p.children, job()) {
				return reportEnd(f, fn)
			}
			return nil
		},
		p.useConstants,
		p.rename,
		p.place,
		p.imports,
	}
	for _, step := range steps {
		var err error
		if text, err = gotree.Edit(name, text, step); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// hasReplicas reports whether the kind has replicas: those of its first workload.
func (p plan) hasReplicas() bool { return p.workload != nil && !p.Builtin }

// vary replaces declarations by those of kinds without replicas, or of built-in kinds.
func (p plan) vary(name string, f *gotree.File) error {
	variant := "plain/"
	switch {
	case p.Builtin:
		variant = "builtin/"
	case p.hasReplicas():
		return nil
	}
	other, err := part(variant + strings.ReplaceAll(name, "/", "-"))
	if p.hasEnd() && name == "reconciler.go" {
		other, err = part("ending/" + name)
	}
	if other != nil {
		f.Overlay(other)
	}
	return err
}

// job is the child that comes to an end.
func job() builtin { return builtin{"Job", "batch", "batchv1"} }

// hasEnd reports whether the kind is ready when its Job is complete.
func (p plan) hasEnd() bool {
	return p.workload == nil && !p.Builtin && slices.Contains(p.children, job())
}

// dropReplicas removes what concerns replicas from kinds without.
func (p plan) dropReplicas(f *gotree.File) error {
	if p.hasReplicas() {
		return nil
	}
	for _, name := range []string{"isReady", "TestControlPlane", "TestWebhooks", "TestShards"} {
		if fn := f.Func(name); fn != nil {
			f.Remove(fn, []string{"deployment", "rolledOut", "SetScale"}, nil)
			for _, call := range f.Calls(fn, "newFrontend") {
				f.DropArgument(call, 2)
			}
		}
	}
	if fn := f.Func("TestControlPlane"); fn != nil && p.hasEnd() {
		last := fn.Body.List[len(fn.Body.List)-1] // waits until it is ready, and there is no Job controller
		f.Supersede(last.Pos(), last.End(), "")
	}
	for _, name := range []string{"setStatus", "crds"} {
		if decl := f.DeclarationOf(name); decl != nil && p.Builtin {
			f.Cut(decl)
		}
	}
	if fn := f.Func("newFrontend"); fn != nil && p.Builtin && p.kind == "Namespace" {
		f.Remove(fn, []string{"Namespace"}, []string{"ObjectMeta"})
	}
	return nil
}

// first is the child that the template's becomes: one with replicas or an end, if there is one.
func (p plan) first() builtin {
	switch {
	case p.workload != nil:
		return *p.workload
	case p.hasEnd():
		return job()
	}
	return p.children[0]
}

// exchange writes the function that makes the first child for that of the template, where
// they differ in more than names.
func (p plan) exchange(f *gotree.File) error {
	old := f.Func("deploymentFor")
	if old == nil || p.workload != nil {
		return nil
	}
	all, err := part("children.go")
	if err != nil {
		return err
	}
	text := all.Declaration(p.first().builder())
	if p.first().once() {
		text += "\n\n" + all.Declaration(completion)
	}
	f.Replace(old, text)
	return nil
}

// lead renames the template's child to the first.
func (p plan) lead(f *gotree.File) error {
	if p.first() != deployment() {
		f.Rename(deployment().renaming(p.first()))
	}
	return nil
}

// addChildren adds the other children.
func (p plan) addChildren(f *gotree.File) error {
	first := p.first()
	var others []gotree.Names
	var builders strings.Builder
	for _, child := range p.children {
		if child == first {
			continue
		}
		others = append(others, first.renaming(child))
		builders.WriteString(", " + child.wanted(child.builder()+"(frontend)"))
		if f.Func(first.builder()) != nil {
			if err := p.appendBuilder(f, child); err != nil {
				return err
			}
		}
	}
	if fn := f.Func("setup"); fn != nil {
		f.Repeat(fn, first.noun().several, []string{"ChildKind"}, others)
	}
	for _, objects := range f.Literals(f.Tree, "Object") {
		f.Repeat(objects, first.builder(), []string{"Object"}, others)
	}
	for _, call := range f.Calls(f.Tree, "Apply") {
		last := call.Args[len(call.Args)-1]
		f.Replace(last, first.wanted(f.Text(last))+builders.String())
	}
	return nil
}

// reportEnd makes fn set a condition about the Job beside a workload, whose replicas are what Ready
// is about.
func reportEnd(f *gotree.File, fn *ast.FuncDecl) error {
	for _, call := range f.Calls(fn, job().builder()) {
		f.InsertLine(f.Calling(fn, "r.children.Apply"), job().noun().variable+" := "+f.Text(call))
		f.Replace(call, job().noun().variable)
	}
	f.Insert(f.Calling(fn, "setStatus").End(), "\nif failure == nil {\nsetComplete(ctx, updated, job)\n}")
	all, err := part("ending/complete.go")
	if err == nil {
		f.Append(all, "setComplete")
	}
	return err
}

// appendBuilder appends the function that makes a child.
func (p plan) appendBuilder(f *gotree.File, child builtin) error {
	if child.isWorkload() {
		f.AppendText(f.Renamed(f.Func(p.first().builder()), p.first().renaming(child)))
		return nil
	}
	text, err := gotree.Edit("children.go", unpack(partsArchive)["children.go"], func(f *gotree.File) error {
		f.Rename(deployment().noun().renaming(p.first().noun())) // the packages stay
		return nil
	})
	if err != nil {
		return err
	}
	all, err := gotree.Parse("children.go", text)
	if err == nil && !f.Append(all, child.builder()) {
		err = fmt.Errorf("there is no part %s", child.builder())
	}
	if err == nil && child.once() {
		f.Append(all, completion)
	}
	return err
}

// useConstants replaces the fields of a spec that a built-in kind does not have.
func (p plan) useConstants(f *gotree.File) error {
	if !p.Builtin {
		return nil
	}
	replace := map[string]string{"frontend.Spec.Image": "image", "frontend.Spec.Replicas": "replicas"}
	if p.kind == "Namespace" {
		replace["frontend.Namespace"] = "frontend.Name"
	}
	found := f.Selectors(replace)
	if found["frontend.Spec.Image"] {
		f.AppendText("// image of the containers.\nconst image = \"nginxinc/nginx-unprivileged:stable-alpine\"")
	}
	if found["frontend.Spec.Replicas"] {
		f.AppendText("// replicas of each Frontend.\nconst replicas int32 = 2")
	}
	return nil
}

// rename writes the project's kind for the template's.
func (p plan) rename(f *gotree.File) error {
	names := frontend().renaming(p.noun)
	if p.Builtin {
		names.Idents["apiv1"] = p.parent.alias
	}
	f.Rename(names)
	return nil
}

// place writes the project's module and group for the template's, and completes comments.
func (p plan) place(f *gotree.File) error {
	f.Strings(func(quoted string) string {
		if path, ok := strings.CutPrefix(quoted, `"`+templateModule+"/"); ok {
			return `"` + p.Module + "/" + path
		}
		return p.named(quoted)
	})
	aKind := regexp.MustCompile(`\b([Aa]) ` + p.kind + `\b`)
	f.Comments(func(text string) string {
		if strings.HasPrefix(text, "// Operator keeps ") {
			text = "// Operator keeps " + listed(p.children) + " for each " + p.kind + "."
			if at := strings.LastIndex(text[:min(columns, len(text))], " "); len(text) > columns {
				text = text[:at] + "\n//" + text[at:]
			}
		}
		if article(p.kind) != "a "+p.kind {
			text = aKind.ReplaceAllString(text, "${1}n "+p.kind)
		}
		return text
	})
	return nil
}

func (p plan) imports(f *gotree.File) error {
	known, err := knownImports()
	if err != nil {
		return err
	}
	for alias, path := range known {
		if rest, ok := strings.CutPrefix(path, templateModule); ok {
			known[alias] = p.Module + rest
		}
	}
	f.WriteImports(known, flyballModule, p.Module)
	return nil
}
