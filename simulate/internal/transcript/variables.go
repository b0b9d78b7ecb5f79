// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// variables of a case: saved values, and the short names of common paths.
type variables map[string]string

func newVariables(namespace string, target Target) variables {
	group := namespace + ".example.com"
	return variables{
		"ns":          namespace,
		"group":       group,
		"cms":         "/api/v1/namespaces/" + namespace + "/configmaps",
		"secrets":     "/api/v1/namespaces/" + namespace + "/secrets",
		"pods":        "/api/v1/namespaces/" + namespace + "/pods",
		"services":    "/api/v1/namespaces/" + namespace + "/services",
		"events":      "/api/v1/namespaces/" + namespace + "/events",
		"deployments": "/apis/apps/v1/namespaces/" + namespace + "/deployments",
		"leases":      "/apis/coordination.k8s.io/v1/namespaces/" + namespace + "/leases",
		"widgets":     "/apis/" + group + "/v1/namespaces/" + namespace + "/widgets",
		"crds":        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
		"rbac":        "/apis/rbac.authorization.k8s.io/v1",
		"admission":   "/apis/admissionregistration.k8s.io/v1",
		"hooks":       target.Hooks,
		"trust":       base64.StdEncoding.EncodeToString(target.Trust),
	}
}

var (
	variable = regexp.MustCompile(`\$([a-z][a-zA-Z0-9]*)|\$\$`)
	function = regexp.MustCompile(`\$\((repeat|nest|add):([^:()]+):([^()]+)\)`)
)

// expand replaces $name by its value, $$ by one dollar, and
//
//	$(repeat:n:text)  text, n times
//	$(nest:n:text)    text in n JSON objects, {"a":{"a":text}}
//	$(add:name:n)     the number under the name, plus n
func (v variables) expand(text string) (string, error) {
	var bad error
	text = function.ReplaceAllStringFunc(text, func(call string) string {
		out, err := v.call(function.FindStringSubmatch(call))
		if err != nil {
			bad = err
		}
		return out
	})
	text = variable.ReplaceAllStringFunc(text, func(name string) string {
		if name == "$$" {
			return "$"
		}
		value, ok := v[name[1:]]
		if !ok {
			bad = fmt.Errorf("nothing is saved as %s; write $$ for a dollar", name)
		}
		return value
	})
	return text, bad
}

func (v variables) call(parts []string) (string, error) {
	switch parts[1] {
	case "add":
		old, err := strconv.ParseInt(v[parts[2]], 10, 64)
		if err != nil {
			return "", fmt.Errorf("add to %s: %w", parts[2], err)
		}
		more, err := strconv.ParseInt(parts[3], 10, 64)
		return strconv.FormatInt(old+more, 10), err
	}
	n, err := strconv.Atoi(parts[2])
	if err != nil || n < 0 || n > 8<<20 {
		return "", fmt.Errorf("%s %s times: not a number from 0 to 8388608", parts[1], parts[2])
	}
	if parts[1] == "nest" {
		return strings.Repeat(`{"a":`, n) + parts[3] + strings.Repeat("}", n), nil
	}
	return strings.Repeat(parts[3], n), nil
}

// field returns the value at a path such as .metadata.annotations["a.b/c"] or .items[0] in
// a decoded body; nil: nothing.
func field(body any, path string) any {
	for _, part := range pathParts(path) {
		switch at := body.(type) {
		case map[string]any:
			body = at[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(at) {
				return nil
			}
			body = at[i]
		default:
			return nil
		}
	}
	return body
}

var pathPart = regexp.MustCompile(`\["([^"]*)"\]|\[(\d+)\]|\.([^.\[]+)`)

func pathParts(path string) (parts []string) {
	for _, m := range pathPart.FindAllStringSubmatch(path, -1) {
		parts = append(parts, m[1]+m[2]+m[3])
	}
	return parts
}
