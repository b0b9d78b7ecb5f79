// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// verbs in the order in which rules name them.
const verbs = "get list watch create update patch delete deletecollection"

// withRules returns the document of r with the rules that the used rights need.
func withRules(document string, r role, used []Right, roles []role) string {
	before, _, after := cutRules(document)
	var out strings.Builder
	out.WriteString(before)
	var lines []string
	for _, p := range r.rules {
		if p.kept {
			lines = append(lines, strings.TrimRight(p.text, "\n")+"\n")
		}
	}
	lines = append(lines, rulesFor(needs(r, used, roles))...)
	if len(lines) == 0 {
		out.WriteString("rules: []\n")
	} else {
		out.WriteString("rules:\n" + strings.Join(lines, ""))
	}
	out.WriteString(after)
	text := out.String()
	if !strings.HasSuffix(document, "\n") {
		text = strings.TrimSuffix(text, "\n") // the separator begins with it
	}
	return text
}

// needs returns the used rights that belong to r and that no kept rule grants.
func needs(r role, used []Right, roles []role) (out []Right) {
	spaces := map[key]map[string]bool{}
	for _, right := range used {
		if spaces[right.key()] == nil {
			spaces[right.key()] = map[string]bool{}
		}
		spaces[right.key()][right.Namespace] = true
	}
	for _, right := range used {
		owner := "" // the namespace of the role that grants it
		if among := spaces[right.key()]; len(among) == 1 && slices.ContainsFunc(roles, func(r role) bool { return r.namespace != "" && among[r.namespace] }) {
			owner = right.Namespace
		}
		kept := slices.ContainsFunc(r.rules, func(p rule) bool { return p.kept && grants(p.PolicyRule, right) })
		if owner == r.namespace && !kept {
			out = append(out, right)
		}
	}
	return out
}

// rulesFor returns the text of rules that grant rights: one for all verbs of a
// resource with the same names.
func rulesFor(rights []Right) []string {
	type subject struct{ group, resource, names string }
	names := map[key]map[string]bool{}
	for _, right := range rights {
		if names[right.key()] == nil {
			names[right.key()] = map[string]bool{}
		}
		if right.Group == "coordination.k8s.io" && right.Namespace != "" && right.Verb != "create" {
			names[right.key()][right.Name] = true
		}
	}
	granted := map[subject][]string{}
	for _, right := range rights {
		s := subject{group: right.Group, resource: right.Resource}
		if n := names[right.key()]; !n[""] {
			s.names = strings.Join(slices.Sorted(maps.Keys(n)), ", ")
		}
		if !slices.Contains(granted[s], right.Verb) {
			granted[s] = append(granted[s], right.Verb)
		}
	}
	subjects := slices.SortedFunc(maps.Keys(granted), func(a, b subject) int {
		return strings.Compare(a.group+" "+a.resource+" "+a.names, b.group+" "+b.resource+" "+b.names)
	})
	out := make([]string, 0, len(subjects))
	for _, s := range subjects {
		slices.SortFunc(granted[s], func(a, b string) int { return strings.Index(verbs, a) - strings.Index(verbs, b) })
		group := cmp.Or(s.group, `""`)
		text := "  - apiGroups: [" + group + "]\n    resources: [" + s.resource + "]\n"
		if s.names != "" {
			text += "    resourceNames: [" + s.names + "]\n"
		}
		out = append(out, text+"    verbs: ["+strings.Join(granted[s], ", ")+"]\n")
	}
	return out
}
