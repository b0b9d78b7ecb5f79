// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// role is a Role or ClusterRole in a file of manifests.
type role struct {
	document  int    // its index in the file
	name      string // for messages
	namespace string // empty: of a ClusterRole
	rules     []rule
}

type rule struct {
	rbacv1.PolicyRule
	text string // its lines, without the end of the last
	kept bool   // it has the comment
}

const (
	separator = "\n---\n"
	keep      = "# keep"
)

func (r *Recorder) check(file string, write bool) error {
	used := r.Used()
	if len(used) == 0 {
		return errNothing
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("check rights: %w", err)
	}
	documents := strings.Split(string(text), separator)
	roles, err := rolesOf(documents)
	if err != nil {
		return fmt.Errorf("check rights: read %s: %w", file, err)
	}
	if write {
		for _, role := range roles {
			documents[role.document] = withRules(documents[role.document], role, used, roles)
		}
		if out := []byte(strings.Join(documents, separator)); !bytes.Equal(out, text) {
			if err := os.WriteFile(file, out, 0o644); err != nil {
				return fmt.Errorf("update rights: %w", err)
			}
		}
		return nil
	}
	missing, unused := differences(used, roles)
	if len(missing)+len(unused) == 0 {
		return nil
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s does not grant what the tests use; run this test with -rights.update, or change the file", file)
	for _, right := range missing {
		fmt.Fprintf(&out, "\n\tmissing: %s", right)
	}
	for _, right := range unused {
		fmt.Fprintf(&out, "\n\tunused: %s", right)
	}
	return errors.New(out.String())
}

// rolesOf returns the roles among the documents of a file.
func rolesOf(documents []string) (roles []role, err error) {
	for i, text := range documents {
		var object struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
			Rules    []rbacv1.PolicyRule
		}
		if err := yaml.Unmarshal([]byte(text), &object); err != nil {
			return nil, fmt.Errorf("document %d: %w", i+1, err)
		}
		r := role{document: i, name: object.Kind + " " + object.Metadata.Name}
		switch object.Kind {
		case "ClusterRole":
		case "Role":
			if r.namespace = object.Metadata.Namespace; r.namespace == "" {
				return nil, fmt.Errorf("document %d: %s has no namespace; name the one that its RoleBinding is in", i+1, r.name)
			}
		default:
			continue
		}
		_, items, _ := cutRules(text)
		if len(items) != len(object.Rules) {
			return nil, fmt.Errorf("document %d: the rules of %s are not a YAML list with one \"- \" a rule", i+1, r.name)
		}
		for n, policy := range object.Rules {
			r.rules = append(r.rules, rule{policy, items[n], strings.Contains(items[n], keep)})
		}
		roles = append(roles, r)
	}
	if len(roles) == 0 {
		return nil, errors.New("there is no Role and no ClusterRole; add one with \"rules: []\"")
	}
	return roles, nil
}

// cutRules cuts a document into what stands before its rules, the text of each,
// and what follows.
func cutRules(document string) (before string, items []string, after string) {
	lines := strings.SplitAfter(document, "\n")
	at := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "rules:") })
	if at < 0 {
		return document, nil, ""
	}
	end := at + 1
	indent := ""
	for ; end < len(lines); end++ {
		line := lines[end]
		trimmed := strings.TrimLeft(line, " ")
		if trimmed == "" || trimmed == "\n" || strings.HasPrefix(trimmed, "#") {
			if len(items) > 0 {
				items[len(items)-1] += line
			}
			continue
		}
		own := line[:len(line)-len(trimmed)]
		starts := strings.HasPrefix(trimmed, "- ") && (len(items) == 0 || own == indent)
		switch {
		case starts:
			indent = own
			items = append(items, line)
		case own == "":
			return strings.Join(lines[:at], ""), items, strings.Join(lines[end:], "")
		case len(items) > 0:
			items[len(items)-1] += line
		}
	}
	return strings.Join(lines[:at], ""), items, ""
}

// differences returns the used rights that no role grants, and the granted ones
// that none used.
func differences(used []Right, roles []role) (missing, unused []string) {
	for _, right := range used {
		if !slices.ContainsFunc(roles, func(r role) bool {
			return (r.namespace == "" || r.namespace == right.Namespace) &&
				slices.ContainsFunc(r.rules, func(p rule) bool { return grants(p.PolicyRule, right) })
		}) {
			missing = append(missing, right.String())
		}
	}
	for _, r := range roles {
		for _, p := range r.rules {
			if p.kept {
				continue
			}
			for _, single := range singles(p.PolicyRule) {
				if !slices.ContainsFunc(used, func(right Right) bool {
					return (r.namespace == "" || r.namespace == right.Namespace) && grants(single, right) && !elsewhere(right, r, roles)
				}) {
					unused = append(unused, fmt.Sprintf("%s: %s", r.name, describe(single)))
				}
			}
		}
	}
	slices.Sort(missing)
	return slices.Compact(missing), unused
}

// elsewhere reports whether a Role grants right in its namespace, so that a
// ClusterRole need not.
func elsewhere(right Right, of role, roles []role) bool {
	return of.namespace == "" && right.Namespace != "" && slices.ContainsFunc(roles, func(r role) bool {
		return r.namespace == right.Namespace && slices.ContainsFunc(r.rules, func(p rule) bool { return grants(p.PolicyRule, right) })
	})
}

func grants(p rbacv1.PolicyRule, right Right) bool {
	has := func(list []string, s string) bool { return slices.Contains(list, s) || slices.Contains(list, "*") }
	_, sub, _ := strings.Cut(right.Resource, "/")
	return has(p.Verbs, right.Verb) && has(p.APIGroups, right.Group) &&
		(has(p.Resources, right.Resource) || sub != "" && slices.Contains(p.Resources, "*/"+sub)) &&
		(len(p.ResourceNames) == 0 || slices.Contains(p.ResourceNames, right.Name))
}

// singles returns p as rules of one verb, group, resource and name each.
func singles(p rbacv1.PolicyRule) (out []rbacv1.PolicyRule) {
	names := p.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, group := range p.APIGroups {
		for _, resource := range p.Resources {
			for _, verb := range p.Verbs {
				for _, name := range names {
					one := rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}}
					if name != "" {
						one.ResourceNames = []string{name}
					}
					out = append(out, one)
				}
			}
		}
	}
	return out
}

func describe(single rbacv1.PolicyRule) string {
	return Right{Verb: single.Verbs[0], Group: single.APIGroups[0], Resource: single.Resources[0], Name: strings.Join(single.ResourceNames, "")}.String()
}
