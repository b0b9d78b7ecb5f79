// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
)

// auditPolicy makes the server log each request of the operator and its authorization
// decision.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: ["` + operatorUser + `"]
- level: None
`

// auditLog is the file of that log.
type auditLog string

// audited is one request.
type audited struct {
	Verb, RequestURI, Stage string
	ObjectRef               struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus          struct {
		Code    int
		Message string
	}
	Annotations map[string]string
}

func (a audited) String() string {
	return fmt.Sprintf("%s %s: %d %s", a.Verb, a.RequestURI, a.ResponseStatus.Code, a.ResponseStatus.Message)
}

func (l auditLog) requests() (out []audited) {
	GinkgoHelper()
	text, err := os.ReadFile(string(l))
	Expect(err).NotTo(HaveOccurred())
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var a audited
		if json.Unmarshal(lines.Bytes(), &a) == nil { // the last line may be incomplete
			out = append(out, a)
		}
	}
	Expect(lines.Err()).NotTo(HaveOccurred())
	return out
}

// refused returns the requests that were not authorized.
func (l auditLog) refused() (out []string) {
	GinkgoHelper()
	for _, a := range l.requests() {
		if a.ResponseStatus.Code == 403 {
			out = append(out, a.String())
		}
	}
	return out
}

// right is the smallest part of a rule.
type right struct {
	role, namespace       string // namespace: empty for a ClusterRole
	verb, group, resource string
	name                  string // empty: all
}

func (r right) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s: %s %s.%s %s", r.role, r.verb, r.resource, cmp.Or(r.group, "core"), r.name))
}

// rightsOf returns the rights of a role.
func rightsOf(role, namespace string, rules []rbacv1.PolicyRule) (out []right) {
	for _, rule := range rules {
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						out = append(out, right{role, namespace, verb, group, resource, name})
					}
				}
			}
		}
	}
	return out
}

// usedBy reports whether r allowed a request.
func (r right) usedBy(a audited) bool {
	ref := a.ObjectRef
	if ref.Subresource != "" {
		ref.Resource += "/" + ref.Subresource
	}
	verb := a.Verb
	if r.verb == "create" && verb == "patch" && a.ResponseStatus.Code == 201 {
		verb = "create" // an apply of an object that does not exist needs both
	}
	return a.ResponseStatus.Code != 403 && r.verb == verb && r.group == ref.APIGroup && r.resource == ref.Resource &&
		(r.name == "" || r.name == ref.Name) && (r.namespace == "" || r.namespace == ref.Namespace) &&
		strings.Contains(a.Annotations["authorization.k8s.io/reason"], " of "+r.role+" ")
}

// unused returns the rights that no request has used.
func (l auditLog) unused(rights []right) (out []string) {
	GinkgoHelper()
	requests := l.requests()
	for _, r := range rights {
		if !slices.ContainsFunc(requests, r.usedBy) {
			out = append(out, r.String())
		}
	}
	return out
}
