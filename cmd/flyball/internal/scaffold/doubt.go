// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// builtinKinds are kinds of Kubernetes that people know by their resource.
const builtinKinds = `Binding ConfigMap ControllerRevision CronJob CustomResourceDefinition
	DaemonSet Deployment Endpoints EndpointSlice Event HorizontalPodAutoscaler Ingress IngressClass Job
	Lease LimitRange Namespace NetworkPolicy Node PersistentVolume PersistentVolumeClaim Pod
	PodDisruptionBudget PodTemplate PriorityClass ReplicaSet ReplicationController ResourceQuota Role
	RoleBinding Secret Service ServiceAccount StatefulSet StorageClass VolumeAttachment`

// Doubt is what speaks against a kind that can be written, a convention of Kubernetes, with what to
// type instead. Empty: nothing does.
func Doubt(kind string) string {
	singular := singularOf(kind)
	switch {
	case slices.Contains(strings.Fields(builtinKinds), kind):
		return fmt.Sprintf("Kubernetes has a kind %s too, and kubectl get %s shows those; "+
			"another name is clearer, such as --kind My%s", kind, nounOf(kind).plural, kind)
	case len(kind) > 4 && strings.ToUpper(kind) == kind:
		return fmt.Sprintf("the kind %s is all capitals; kinds are in upper camel case, "+
			"such as --kind %s", kind, kind[:1]+strings.ToLower(kind[1:]))
	case singular != kind:
		return fmt.Sprintf("the kind %s looks like a plural; a kind is singular, such as --kind %s, "+
			"and its resource is then %s", kind, singular, nounOf(singular).plural)
	}
	return ""
}

// sameInBoth are words in lower case that look like a plural and are none, or are both.
const sameInBoth = `kubernetes series species sales news means`

// withIE are words in lower case whose singular ends in ie, not in y.
const withIE = `movie cookie pie tie zombie rookie selfie calorie`

// singularOf returns the singular of a word that looks like a plural, or else the word.
func singularOf(word string) string {
	stem, isPlural := strings.CutSuffix(word, "s")
	if !isPlural || len(stem) < 2 || !unicode.IsLower(rune(stem[len(stem)-1])) ||
		strings.ContainsAny(stem[len(stem)-1:], "aious") {
		return word // such as Canvas, Analysis, Chaos, Address, Status
	}
	last := strings.ToLower(word[max(strings.LastIndexFunc(word, unicode.IsUpper), 0):])
	if slices.Contains(strings.Fields(sameInBoth), last) {
		return word
	}
	if y, ok := strings.CutSuffix(stem, "ie"); ok {
		if slices.Contains(strings.Fields(withIE), strings.TrimSuffix(last, "s")) {
			return stem
		}
		return y + "y"
	}
	for _, end := range []string{"sse", "xe", "nche", "rche", "tche", "she"} {
		if strings.HasSuffix(stem, end) {
			return strings.TrimSuffix(stem, "e")
		}
	}
	return stem
}
