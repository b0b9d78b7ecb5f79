// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flyball-dev/flyball/cmd/flyball/internal/gotree"
)

// addKind adds a kind to the files of an operator: its types, reconciler and test in files,
// and insertions into what calls them.
func (p plan) addKind(all files) error {
	if slices.Contains(p.present, p.kind) {
		return fmt.Errorf("api/v1 has the kind %s already", p.kind)
	}
	for _, name := range []string{"api/v1/" + p.resource + ".go", p.resource + ".go", p.resource + "_test.go"} {
		if all[name] != nil {
			return fmt.Errorf("%s is there already; move it, or choose another kind", name)
		}
	}
	base := template()
	for _, made := range []struct {
		name, from string
		keep       []string // nil: all
		rename     map[string]string
	}{
		{"api/v1/" + p.resource + ".go", templateAPI, []string{p.kind, p.kind + "Spec", p.kind + "Status", p.kind + "List", p.several, "AddToScheme", p.kind + ".DeepCopyObject"},
			map[string]string{"AddToScheme": "Add" + p.kind + "ToScheme"}},
		{p.resource + ".go", "reconciler.go", nil, p.ownNames()},
		{p.resource + "_test.go", "operator_test.go", []string{"TestSimulation", "scenario", "isReady", "new" + p.kind}, p.ownNames()},
	} {
		text, err := p.goFile(made.from, base[made.from])
		if err != nil {
			return err
		}
		for _, step := range []func(*gotree.File) error{
			func(f *gotree.File) error { keepOnly(f, made.keep); return nil },
			func(f *gotree.File) error { f.RenameObjects(made.rename); return nil },
			p.imports,
		} {
			if text, err = gotree.Edit(made.name, text, step); err != nil {
				return err
			}
		}
		all[made.name] = text
	}
	return p.callKind(all, base)
}

func keepOnly(f *gotree.File, keep []string) {
	for _, name := range f.Declared() {
		if keep != nil && !slices.Contains(keep, name) {
			f.Cut(f.DeclarationOf(name))
		}
	}
}

// ownNames are the names of the template's declarations where another kind has them too.
func (p plan) ownNames() map[string]string {
	names := map[string]string{
		"setup": "setup" + p.kinds, "reconciler": p.variable + "Reconciler", "labelsFor": "labelsFor" + p.kind, "setStatus": "set" + p.kind + "Status",
		"TestSimulation": "TestSimulation_" + p.kinds, "scenario": p.variable + "Scenario", "isReady": "is" + p.kind + "Ready",
	}
	for _, child := range p.children {
		names[child.builder()] = child.builder() + p.kind
	}
	return names
}

// callKind inserts what calls the new declarations, and adds to the manifests.
func (p plan) callKind(all, base files) error {
	for name, change := range map[string]func(*gotree.File) error{
		"main.go": func(f *gotree.File) error {
			return alsoCall(f, "apiv1.AddToScheme(scheme)", "apiv1.Add"+p.kind+"ToScheme(scheme)")
		},
		"reconciler.go": func(f *gotree.File) error {
			return insert(f, []insertion{{"setup", "mgr.Add(c)", "if err := setup" + p.kinds + "(mgr); err != nil {\nreturn err\n}\n", ""}})
		},
		"operator_test.go": func(f *gotree.File) error {
			return insert(f, []insertion{{"TestRights", "kit.Test(t, cfg, scenario)", "", "\nkit.Test(t, cfg, " + p.variable + "Scenario)"}})
		},
	} {
		var err error
		if all[name], err = gotree.Edit(name, all[name], change); err != nil {
			return err
		}
	}
	for _, name := range []string{"config/crd.yaml", "config/sample.yaml"} {
		if all[name] == nil {
			return fmt.Errorf("there is no %s", name)
		}
		all[name] = []byte(strings.TrimRight(string(all[name]), "\n") + "\n---\n" + p.manifest(name, string(base[name])))
	}
	text, err := p.addRules(string(all["config/operator.yaml"]))
	all["config/operator.yaml"] = []byte(text)
	return err
}

// alsoCall inserts an argument before the one that is a call of AddToScheme.
func alsoCall(f *gotree.File, call, text string) error {
	for _, c := range f.Calls(f.Tree, "AddToScheme") {
		if f.Text(c) == call {
			f.Insert(c.Pos(), text+",\n")
			return nil
		}
	}
	return fmt.Errorf("there is no %s, before which to write %s", call, text)
}

// addRules inserts the rules that a kind and its children need into the ClusterRole, where
// it does not have them already.
func (p plan) addRules(text string) (string, error) {
	_, below, found := strings.Cut(text, "\nkind: ClusterRole\n")
	_, rules, ok := strings.Cut(below, "rules:\n")
	if !found || !ok {
		return "", fmt.Errorf("config/operator.yaml has no rules of a ClusterRole; write there:\n%s", p.clusterRules())
	}
	own, _, _ := strings.Cut(rules, "\n---\n")
	var missing strings.Builder
	for _, r := range strings.SplitAfter(strings.ReplaceAll(p.clusterRules(), "\n  - ", "\n\x00  - "), "\x00") {
		r = strings.TrimSuffix(r, "\x00")
		if !strings.Contains(own, r) {
			missing.WriteString(r)
		}
	}
	head := strings.TrimSuffix(text, rules)
	return head + missing.String() + rules, nil
}
