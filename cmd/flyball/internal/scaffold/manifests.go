// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// words writes the project's names for the template's in text that is not Go.
func (p plan) words(text string) string {
	names := frontend().renaming(p.noun)
	return p.named(names.String(text))
}

// named writes the group for the template's, and the operator's name for that of the kind.
func (p plan) named(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, p.resource+"-operator", p.operator+"-operator"), templateGroup, p.Group)
}

// readme returns the README of the project.
func (p plan) readme() []byte {
	text := string(unpack(partsArchive)["readme/README.md"])
	if p.Builtin {
		text = regexp.MustCompile("(?m)^.*api/v1.*\n").ReplaceAllString(text, "")
	}
	return []byte(strings.Replace(p.words(text), "CHILDREN", listed(p.children), 1))
}

// listed names children as a sentence has them.
func listed(children []builtin) string {
	list := make([]string, len(children))
	for i, child := range children {
		list[i] = article(child.kind)
	}
	return inWords(list)
}

// manifest changes a manifest of the template into one of the project.
func (p plan) manifest(name, text string) string {
	switch name {
	case "config/crd.yaml":
		if !p.hasReplicas() {
			text = withoutBlocks(text, "replicas:", "readyReplicas:", "selector:", "scale:", "- jsonPath: .spec.replicas", "- jsonPath: .status.readyReplicas")
			text = strings.Replace(text, "Frontend runs replicas of an image.", "Frontend is made of an image.", 1)
		}
		text = deployment().renaming(p.first()).String(text)
	case "config/sample.yaml":
		if p.Builtin {
			return p.builtinSample()
		}
		if !p.hasReplicas() {
			text = withoutBlocks(text, "replicas:")
		}
	case "config/kustomization.yaml":
		if p.Builtin {
			text = strings.Replace(text, "[crd.yaml, operator.yaml]", "[operator.yaml]", 1)
		}
	case "config/operator.yaml":
		head, tail := aroundRules(text)
		return p.words(head) + p.clusterRules() + p.words(tail)
	}
	return p.words(text)
}

// withoutBlocks removes lines that begin with one of starts, and the lines below them that
// are indented more, or are the items of a list below its name.
func withoutBlocks(text string, starts ...string) string {
	var out strings.Builder
	inside, item := -1, false // the indentation of what is being removed, and whether it is an item
	for line := range strings.Lines(text) {
		content := strings.TrimLeft(line, " ")
		indent := len(line) - len(content)
		if inside >= 0 && (indent > inside || indent == inside && !item && strings.HasPrefix(content, "- ")) {
			continue
		}
		inside = -1
		if slices.ContainsFunc(starts, func(s string) bool { return strings.TrimSpace(content) == s || strings.HasPrefix(content, s+" ") }) {
			inside, item = indent, strings.HasPrefix(content, "- ")
			continue
		}
		out.WriteString(line)
	}
	return out.String()
}

func (p plan) builtinSample() string {
	namespace := "  namespace: default\n"
	if p.kind == "Namespace" {
		namespace = ""
	}
	return fmt.Sprintf("apiVersion: v1\nkind: %s\nmetadata:\n  name: sample\n%s  labels:\n    %s/%s-operator: \"true\"\n", p.kind, namespace, p.Group, p.resource)
}

// aroundRules cuts manifests around the rules of the ClusterRole.
func aroundRules(text string) (head, tail string) {
	start := strings.Index(text, "kind: ClusterRole\n")
	start += strings.Index(text[start:], "rules:\n") + len("rules:\n")
	return text[:start], text[start+strings.Index(text[start:], "---\n"):]
}

// clusterRules are the rules for the kind and its children, in the order of an update by
// package rights: those that are kept, then by group and resource.
func (p plan) clusterRules() string {
	group, status := p.Group, true
	if p.Builtin {
		group, status = p.parent.group, false
	}
	kept := rule(group, p.plural+"/finalizers", "update", "keep: for owner references that block deletion")
	used := map[string]string{group + " " + p.plural: rule(group, p.plural, "get, list, watch", "")}
	if status {
		used[group+" "+p.plural+"/status"] = rule(group, p.plural+"/status", "patch", "")
	}
	for _, child := range p.children {
		n := child.noun()
		kept += rule(child.group, n.plural, "delete", "keep: for "+n.kinds+" that are no longer wanted")
		verbs := "get, list, watch, create, patch"
		if child.once() {
			verbs = "get, list, watch, create"
		}
		used[child.group+" "+n.plural] = rule(child.group, n.plural, verbs, "")
	}
	kept += rule("events.k8s.io", "events", "create, patch", "keep: for Warnings about children that fail")
	for _, key := range slices.Sorted(maps.Keys(used)) {
		kept += used[key]
	}
	return kept
}

func rule(group, resource, verbs, comment string) string {
	group = cmp.Or(group, `""`)
	if comment != "" {
		comment = " # " + comment
	}
	return fmt.Sprintf("  - apiGroups: [%s]%s\n    resources: [%s]\n    verbs: [%s]\n", group, comment, resource, verbs)
}

// webhookManifests inserts into the manifests of an operator what its webhook needs: what
// serving needs, rights and the configuration.
func (p plan) webhookManifests(text []byte) ([]byte, error) {
	name := p.operator + "-operator"
	rules := namedRule("admissionregistration.k8s.io", "validatingwebhookconfigurations", name, "get, patch", "keep: the webhook's certificate")
	out, err := inserted(text, []place{{"kind: ClusterRole\n", "rules:\n", rules}})
	if err == nil {
		out, err = p.servingManifests(out)
	}
	return append(out, p.webhookConfiguration()...), err
}

// servingManifests inserts rights to the certificate, arguments and a Service.
func (p plan) servingManifests(text []byte) ([]byte, error) {
	name := p.operator + "-operator"
	rules := rule("", "secrets", "create", "keep: the webhook's certificate") + namedRule("", "secrets", name+"-webhook-cert", "get, update", "keep: the webhook's certificate")
	out, err := inserted(text, []place{
		{"kind: Role ", "rules:\n", rules},
		{"kind: Deployment\n", "            - -leader-elect\n", "            - -webhooks\n"},
		{"kind: Deployment\n", "            - -webhooks\n", "          ports:\n            - name: webhooks\n              containerPort: 9443\n"},
	})
	return append(out, fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata:
  name: %[1]s
  namespace: %[1]s
spec:
  selector:
    app.kubernetes.io/name: %[1]s
  ports:
    - port: 443
      targetPort: webhooks
`, name)...), err
}

// place is text to insert behind the first where below the first after.
type place struct{ after, where, insert string }

// inserted returns config/operator.yaml with insertions.
func inserted(text []byte, places []place) ([]byte, error) {
	out := string(text)
	for _, i := range places {
		_, below, found := strings.Cut(out, "\n"+i.after)
		_, rest, ok := strings.Cut(below, i.where)
		if !found || !ok {
			return nil, fmt.Errorf("config/operator.yaml has no %q below %q; write there yourself:\n%s", strings.TrimSpace(i.where), strings.TrimSpace(i.after), i.insert)
		}
		out = strings.TrimSuffix(out, rest) + i.insert + rest
	}
	return []byte(out), nil
}

func namedRule(group, resource, name, verbs, comment string) string {
	text := rule(group, resource, verbs, comment)
	return strings.Replace(text, "    verbs:", "    resourceNames: ["+name+"]\n    verbs:", 1)
}

func (p plan) webhookConfiguration() string {
	group, selector := p.Group, ""
	if p.Builtin {
		group = p.parent.group
		selector = fmt.Sprintf("    objectSelector: # others do not wait for the operator\n      matchExpressions:\n        - key: %s/%s-operator\n          operator: Exists\n", p.Group, p.resource)
	}
	path := "/validate-" + strings.ReplaceAll(group, ".", "-") + "-v1-" + p.resource
	group = cmp.Or(group, `""`)
	return fmt.Sprintf(`---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: %[1]s
webhooks:
  - name: validate.%[2]s.%[6]s
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Fail
    timeoutSeconds: 5
%[5]s    rules:
      - apiGroups: [%[3]s]
        apiVersions: [v1]
        resources: [%[2]s]
        operations: [CREATE, UPDATE]
    clientConfig: # the operator writes caBundle
      service:
        namespace: %[1]s
        name: %[1]s
        path: %[4]s
`, p.operator+"-operator", p.plural, group, path, selector, p.Group)
}
