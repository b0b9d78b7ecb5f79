// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import "github.com/flyball-dev/flyball/cmd/flyball/internal/gotree"

// builtin is a kind of Kubernetes, of version v1 of its group.
type builtin struct {
	kind, group string
	alias       string // of its Go package
}

func (b builtin) noun() noun { return nounOf(b.kind) }

// children are the kinds that an operator can be written with, by the alphabet.
var children = []builtin{
	{"ConfigMap", "", "corev1"},
	{"CronJob", "batch", "batchv1"},
	{"DaemonSet", "apps", "appsv1"},
	{"Deployment", "apps", "appsv1"},
	{"Job", "batch", "batchv1"},
	{"Secret", "", "corev1"},
	{"Service", "", "corev1"},
	{"ServiceAccount", "", "corev1"},
	{"StatefulSet", "apps", "appsv1"},
}

// parents are the built-in kinds that an operator without a CRD can be written for.
var parents = []builtin{
	{"ConfigMap", "", "corev1"},
	{"Namespace", "", "corev1"},
	{"Secret", "", "corev1"},
	{"ServiceAccount", "", "corev1"},
}

// renaming returns the names of another kind in place of those of b.
func (b builtin) renaming(to builtin) gotree.Names {
	names := b.noun().renaming(to.noun())
	names.Idents[b.alias] = to.alias
	return names
}

func kindsOf(list []builtin) []string {
	var kinds []string
	for _, b := range list {
		kinds = append(kinds, b.kind)
	}
	return kinds
}

func find(list []builtin, kind string) (builtin, bool) {
	for _, b := range list {
		if b.kind == kind {
			return b, true
		}
	}
	return builtin{}, false
}

// isWorkload reports whether the kind has replicas, and a status about them like that of a
// Deployment.
func (b builtin) isWorkload() bool { return b.kind == "Deployment" || b.kind == "StatefulSet" }

// once reports whether an object of the kind is created and then kept, with the content that
// the function completion makes.
func (b builtin) once() bool { return b.kind == "Secret" }

// completion is the name of that function.
const completion = "setPassword"

// wanted returns the argument of ChildSet.Apply for an object of the kind.
func (b builtin) wanted(object string) string {
	if b.once() {
		return "reconcile.Once(" + object + ", " + completion + ")"
	}
	return object
}

// builder is the name of the function that makes an object of the kind.
func (b builtin) builder() string { return b.noun().variable + "For" }
