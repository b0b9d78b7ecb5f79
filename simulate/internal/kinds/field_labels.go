// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flyball-dev/flyball/internal/jsontree"
)

// fieldLabel is one field that a field selector of a kind supports.
type fieldLabel struct {
	path []string
	// otherwise is the path of the value if path has none.
	otherwise []string
	// zero is the value of an object that has neither.
	zero string
}

// labelsOfEvents are the labels that both groups of events share.
var labelsOfEvents = []string{"kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"}

// builtinLabels are the field labels of built-in kinds besides those of metadata. Kinds
// that are not listed have none.
var builtinLabels = map[string]map[string]fieldLabel{
	"pods": {
		"spec.nodeName":            at("spec.nodeName"),
		"spec.host":                at("spec.nodeName"),
		"spec.restartPolicy":       at("spec.restartPolicy"),
		"spec.schedulerName":       at("spec.schedulerName"),
		"spec.serviceAccountName":  at("spec.serviceAccountName"),
		"spec.hostNetwork":         {path: []string{"spec", "hostNetwork"}, zero: "false"},
		"status.phase":             at("status.phase"),
		"status.podIP":             {path: []string{"status", "podIPs", "0", "ip"}, otherwise: []string{"status", "podIP"}},
		"status.podIPs":            {}, // supported, and empty
		"status.nominatedNodeName": at("status.nominatedNodeName"),
	},
	"nodes":                  {"spec.unschedulable": {path: []string{"spec", "unschedulable"}, zero: "false"}},
	"replicationcontrollers": {"status.replicas": {path: []string{"status", "replicas"}, zero: "0"}},
	"namespaces":             {"status.phase": at("status.phase")},
	"secrets":                {"type": at("type")},
	"services":               {"spec.clusterIP": at("spec.clusterIP"), "spec.type": at("spec.type")},
	"jobs.batch":             {"status.successful": {path: []string{"status", "succeeded"}, zero: "0"}},
	"certificatesigningrequests.certificates.k8s.io": {"spec.signerName": at("spec.signerName")},
	"clustertrustbundles.certificates.k8s.io":        {"spec.signerName": at("spec.signerName")},
	"podcertificaterequests.certificates.k8s.io": {
		"spec.signerName": at("spec.signerName"), "spec.podName": at("spec.podName"), "spec.nodeName": at("spec.nodeName"),
	},
	"resourceslices.resource.k8s.io": {
		"spec.nodeName": at("spec.nodeName"), "spec.driver": at("spec.driver"), "spec.pool.name": at("spec.pool.name"),
	},
	"events": eventLabels("involvedObject", map[string]fieldLabel{
		"reportingComponent": at("reportingComponent"),
		"source":             {path: []string{"source", "component"}, otherwise: []string{"reportingComponent"}},
	}),
	"events.events.k8s.io": eventLabels("regarding", map[string]fieldLabel{"reportingController": at("reportingComponent")}),
}

func at(path string) fieldLabel { return fieldLabel{path: strings.Split(path, ".")} }

// eventLabels returns the labels of Events, which are stored in the form of the older
// group.
func eventLabels(object string, own map[string]fieldLabel) map[string]fieldLabel {
	own["reason"], own["type"] = at("reason"), at("type")
	for _, name := range labelsOfEvents {
		own[object+"."+name] = at("involvedObject." + name)
	}
	return own
}

// LabelOf returns the field of a label, and whether the kind supports it.
func (k *Kind) LabelOf(label string) (fieldLabel, bool) {
	own := builtinLabels[k.GroupResource().String()]
	switch {
	case label == "metadata.name":
		return at(label), true
	case label == "metadata.namespace" && k.Custom():
		return at(label), k.Namespaced
	case label == "metadata.namespace":
		return at(label), own == nil || k.Namespaced && k.Kind != "PodCertificateRequest"
	case k.Custom():
		return fieldLabel{path: jsontree.SplitPath(label)}, slices.Contains(k.Selectable, "."+label)
	}
	known, ok := own[label]
	return known, ok
}

// Custom reports whether k is defined by a CRD.
func (k *Kind) Custom() bool {
	return !k.Builtin && k.Group != "apiextensions.k8s.io" && k.Group != "apiregistration.k8s.io"
}

// FieldLabel returns a requirement of a selector unchanged, or the error that k does not
// support it.
func (k *Kind) FieldLabel(label, value string) (string, string, error) {
	if _, ok := k.LabelOf(label); ok {
		return label, value, nil
	}
	switch resource := k.GroupResource().String(); {
	case !k.Custom() && builtinLabels[resource] == nil:
		return "", "", fmt.Errorf("%q is not a known field selector: only %q, %q", label, "metadata.name", "metadata.namespace")
	case resource == "jobs.batch":
		return "", "", fmt.Errorf("field label %q not supported for Job", label)
	case resource == "resourceslices.resource.k8s.io":
		return "", "", fmt.Errorf("field label not supported for %s: %s", k.GroupVersionKind, label)
	}
	return "", "", fmt.Errorf("field label not supported: %s", label)
}

// Value returns the value of an object that a selector compares.
func (l fieldLabel) Value(fields map[string]any) string {
	for _, path := range [][]string{l.path, l.otherwise} {
		if value := jsontree.Lookup(fields, path); value != nil && value != "" {
			return fmt.Sprint(value)
		}
	}
	return l.zero
}
