// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flyball-dev/flyball/cmd/flyball/internal/gotree"
)

// AddShard adds a Deployment that acts on the objects with a label: its manifests, and with
// the first shard the label and a test.
func (a Addition) AddShard() ([]string, error) {
	return a.add(func(p plan, all files) error { return p.addShard(all, a.Shard) })
}

func (p plan) addShard(all files, name string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("shard %q: %s; give --name, such as --name a", name, strings.Join(problems, "; "))
	}
	text, err := p.shardManifests(all["config/operator.yaml"], name)
	if err != nil {
		return err
	}
	all["config/operator.yaml"] = []byte(text)
	if strings.Contains(string(all["main.go"]), "manager.Sharding{") {
		return nil // a further shard
	}
	if all["shard_test.go"] != nil {
		return errors.New("shard_test.go is there already, and main.go has no manager.Sharding: move it")
	}
	if all["main.go"], err = gotree.Edit("main.go", all["main.go"], p.divide); err != nil {
		return err
	}
	test, err := p.partFile("shard/shard_test.go", "")
	if err != nil {
		return err
	}
	all["shard_test.go"], err = gotree.Edit("shard_test.go", test, func(f *gotree.File) error { return nameShard(f, name) })
	return err
}

// divide inserts the label into the options of the manager.
func (p plan) divide(f *gotree.File) error {
	kinds := make([]string, 0, len(p.present))
	for _, kind := range p.present {
		kinds = append(kinds, "&apiv1."+kind+"{}")
	}
	text := fmt.Sprintf("// The flag -shard names this process's, by default that of objects without the label.\nSharding: &manager.Sharding{Label: %q, Kinds: []runtime.Object{%s}},\n",
		p.Group+"/shard", strings.Join(kinds, ", "))
	if fn := f.Func("options"); fn != nil {
		for _, n := range f.Literals(fn, "Options") {
			if lit := n.(*ast.CompositeLit); slices.ContainsFunc(lit.Elts, func(e ast.Expr) bool { return strings.HasPrefix(f.Text(e), "LeaderElection:") }) {
				f.Insert(lit.Rbrace, text)
				return nil
			}
		}
	}
	return fmt.Errorf("main.go has no function options with manager.Options that have a LeaderElection; write there yourself:\n%s", text)
}

// nameShard writes the shard for the template's.
func nameShard(f *gotree.File, name string) error {
	f.Strings(func(quoted string) string {
		if quoted == `"a"` {
			return fmt.Sprintf("%q", name)
		}
		return quoted
	})
	return nil
}

// shardManifests inserts what a shard needs: the right to its own Lease, and a Deployment like
// that of the operator, but without webhooks, which the operator's serves for all.
func (p plan) shardManifests(manifests []byte, name string) (string, error) {
	operator := p.operator + "-operator"
	shard := operator + "-" + name
	if regexp.MustCompile(`(?m)^\s+name: ` + regexp.QuoteMeta(shard) + `$`).Match(manifests) {
		return "", fmt.Errorf("config/operator.yaml has %s already; give another --name", shard)
	}
	rules := namedRule("coordination.k8s.io", "leases", shard, "get, list, watch, update", "keep: the Lease of a shard")
	manifests, err := inserted(manifests, []place{{"kind: Role ", "rules:\n", rules}})
	if err != nil {
		return "", err
	}
	document := deploymentIn(string(manifests), operator)
	if document == "" {
		return "", fmt.Errorf("config/operator.yaml has no Deployment %s", operator)
	}
	if line := "- -leader-elect"; countLines(document, line) == 0 {
		return "", fmt.Errorf("the Deployment %s in config/operator.yaml has no line %q, after which the argument -shard goes; write the argument so", operator, line)
	}
	if line := "app.kubernetes.io/name: " + operator; countLines(document, line) < 2 {
		return "", fmt.Errorf("the Deployment %s in config/operator.yaml does not have the line %q in its selector and its template, where the shard has a label of its own; write both so", operator, line)
	}
	return insertAfter(string(manifests), document, shardDeployment(document, operator, name)), nil
}

// countLines returns how many lines of text have this content.
func countLines(text, content string) (n int) {
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == content {
			n++
		}
	}
	return n
}

// insertAfter inserts a document behind another.
func insertAfter(text, document, other string) string {
	before, after, _ := strings.Cut(text, document)
	return before + strings.TrimRight(document, "\n") + "\n---\n" + strings.TrimRight(other, "\n") + "\n" + strings.TrimPrefix(after, "\n")
}

// shardDeployment is the operator's Deployment with another name, labels and arguments. Its
// Pods have a name of their own, since the selectors of two Deployments must not overlap.
func shardDeployment(document, operator, name string) string {
	shard := operator + "-" + name
	var out strings.Builder
	for line := range strings.Lines(document + "\n") {
		content := strings.TrimSpace(line)
		switch content {
		case "app.kubernetes.io/name: " + operator:
			line = strings.Replace(line, operator, shard, 1)
		case "name: " + operator:
			if strings.HasPrefix(line, "  name:") { // not the container's
				line = strings.Replace(line, operator, shard, 1)
			}
		case "- -leader-elect":
			line += strings.Replace(line, "-leader-elect", "-shard="+name, 1)
		case "- -webhooks":
			line = ""
		}
		out.WriteString(line)
	}
	return withoutBlocks(out.String(), "ports:")
}
