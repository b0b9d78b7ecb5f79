// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package podsecurity implements Pod Security admission. The labels of a namespace name
// the Pod Security Standard that its Pods must meet, and the one that clients are warned
// about. Check applies them to one write; it holds no state and takes no lock.
package podsecurity

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/strategy"
)

const (
	labelPrefix  = "pod-security.kubernetes.io/"
	unrestricted = "privileged"
)

// levels are the standards, the weakest first.
var levels = []string{unrestricted, "baseline", "restricted"}

var versions = regexp.MustCompile(`^(latest|v1\.(0|[1-9][0-9]*))$`)

// Objects reads what the server stores.
type Objects interface {
	// Get returns one object, or nil if there is none.
	Get(r schema.GroupResource, key types.NamespacedName) *object.Object
	// Lists returns the objects of some resources, all at one revision.
	Lists(of ...schema.GroupResource) [][]*object.Object
}

// Write is one create or update.
type Write struct {
	Kind        *kinds.Kind
	Subresource string
	Old         *object.Object // nil for a create
	Object      *object.Object
	// Warn adds a warning to the answer.
	Warn func(text string)
}

// Check refuses a Pod that violates the standard which its namespace enforces. It warns
// of Pods and Pod templates that violate the standard to warn about. Of a namespace it
// checks the labels.
func Check(objects Objects, w Write) error {
	if w.Kind.GroupResource() == object.Namespaces {
		return checkNamespace(objects, w)
	}
	path := specPath(w.Kind.GroupResource().String())
	pod := len(path) == 1
	if path == nil || w.Subresource != "" && !(pod && w.Subresource == "ephemeralcontainers") {
		return nil
	}
	namespace := objects.Get(object.Namespaces, types.NamespacedName{Name: w.Object.Meta().GetNamespace()})
	if namespace == nil {
		return nil
	}
	enforce, warn, _ := policyOf(namespace.Meta().GetLabels())
	if enforce.rank() == 0 && warn.rank() == 0 {
		return nil
	}
	spec, err := specOf(w.Object, path)
	if spec == nil || err != nil {
		return err
	}
	if pod {
		if w.Old != nil {
			if before, err := specOf(w.Old, path); err != nil || sameImages(before, spec) {
				return err
			}
		}
		if _, details := enforce.violations(spec); len(details) > 0 {
			return apierrors.NewForbidden(w.Kind.GroupResource(), w.Object.Meta().GetName(), fmt.Errorf("violates PodSecurity %q: %s", enforce, strings.Join(details, ", ")))
		}
	}
	if _, details := warn.violations(spec); len(details) > 0 {
		w.Warn(fmt.Sprintf("would violate PodSecurity %q: %s", warn, strings.Join(details, ", ")))
	}
	return nil
}

// level is a standard with its version. Every version has the rules of the newest one;
// only messages show it.
type level struct{ name, version string }

func (l level) String() string { return l.name + ":" + l.version }

func (l level) rank() int { return slices.Index(levels, l.name) }

// violations returns how a Pod violates the standard, briefly and in detail.
func (l level) violations(spec *corev1.PodSpec) (reasons, details []string) {
	for _, violated := range map[string][]rule{"baseline": baseline, "restricted": restricted}[l.name] {
		if reason, detail := violated(spec); reason != "" {
			reasons, details = append(reasons, reason), append(details, fmt.Sprintf("%s (%s)", reason, detail))
		}
	}
	return reasons, details
}

// policyOf returns the standards that a namespace with these labels enforces and warns
// about. An invalid label enforces the strictest standard, and warns about none.
func policyOf(labels map[string]string) (enforce, warn level, errs field.ErrorList) {
	of := map[string]level{}
	for _, mode := range []string{"enforce", "audit", "warn"} {
		l := level{unrestricted, "latest"}
		key := labelPrefix + mode
		if given, ok := labels[key]; ok {
			if l.name = given; l.rank() < 0 {
				errs = append(errs, field.Invalid(field.NewPath("metadata", "labels").Key(key), given, "must be one of "+strings.Join(levels, ", ")))
				if l.name = unrestricted; mode == "enforce" {
					l.name = "restricted"
				}
			}
		}
		if given, ok := labels[key+"-version"]; ok {
			if l.version = given; !versions.MatchString(given) {
				errs = append(errs, field.Invalid(field.NewPath("metadata", "labels").Key(key+"-version"), given, `must be "latest" or "v1.x"`))
				l.version = "latest"
			}
		}
		of[mode] = l
	}
	enforce, warn = of["enforce"], of["warn"]
	if given := labels[labelPrefix+"enforce"]; labels[labelPrefix+"warn"] == "" && given == enforce.name {
		warn.name = enforce.name
		if labels[labelPrefix+"warn-version"] == "" {
			warn.version = enforce.version
		}
	}
	return enforce, warn, errs
}

// specPath is where objects of a resource hold the spec of their Pods; nil if they have none.
func specPath(resource string) []string {
	switch resource {
	case "pods":
		return []string{"spec"}
	case "podtemplates":
		return []string{"template", "spec"}
	case "cronjobs.batch":
		return []string{"spec", "jobTemplate", "spec", "template", "spec"}
	case "replicationcontrollers", "replicasets.apps", "deployments.apps", "statefulsets.apps", "daemonsets.apps", "jobs.batch":
		return []string{"spec", "template", "spec"}
	}
	return nil
}

func specOf(obj *object.Object, path []string) (*corev1.PodSpec, error) {
	fields, found, _ := unstructured.NestedFieldNoCopy(obj.Fields, path...)
	given, ok := fields.(map[string]any)
	if !found || !ok {
		return nil, nil
	}
	spec := &corev1.PodSpec{}
	return spec, runtime.DefaultUnstructuredConverter.FromUnstructured(given, spec)
}

// sameImages reports whether an update leaves the images of a Pod as they were.
func sameImages(before, after *corev1.PodSpec) bool {
	return before != nil && slices.EqualFunc(containersOf(before), containersOf(after), func(a, b corev1.Container) bool {
		return a.Name == b.Name && a.Image == b.Image
	})
}

// checkNamespace refuses invalid labels. It warns of the Pods that violate a standard
// which is enforced from now on.
func checkNamespace(objects Objects, w Write) error {
	if w.Subresource != "" {
		return nil
	}
	enforce, _, errs := policyOf(w.Object.Meta().GetLabels())
	was := level{}
	if w.Old != nil {
		before, _, known := policyOf(w.Old.Meta().GetLabels())
		if was = before; known.ToAggregate() != nil && errs.ToAggregate() != nil && known.ToAggregate().Error() == errs.ToAggregate().Error() {
			errs = nil
		}
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(strategy.InvalidKind(w.Kind), w.Object.Meta().GetName(), errs)
	}
	if w.Old == nil || enforce == was || enforce.version == was.version && enforce.rank() <= was.rank() {
		return nil
	}
	return warnOfPods(objects, w, enforce)
}

// warnOfPods warns of the existing Pods that violate a standard. For each kind of
// violation it names one Pod and counts the others.
func warnOfPods(objects Objects, w Write, l level) error {
	namespace := w.Object.Meta().GetName()
	names := map[string][]string{}
	for _, obj := range objects.Lists(object.Pods)[0] {
		if obj.Meta().GetNamespace() != namespace {
			continue
		}
		spec, err := specOf(obj, specPath("pods"))
		if err != nil {
			return err
		}
		if spec == nil {
			continue
		}
		if reasons, _ := l.violations(spec); len(reasons) > 0 {
			reason := strings.Join(reasons, ", ")
			names[reason] = append(names[reason], obj.Meta().GetName())
		}
	}
	var lines []string
	for reason, of := range names {
		line := slices.Min(of)
		switch n := len(of) - 1; n {
		case 0:
		case 1:
			line += " (and 1 other pod)"
		default:
			line += fmt.Sprintf(" (and %d other pods)", n)
		}
		lines = append(lines, line+": "+reason)
	}
	if len(lines) > 0 {
		w.Warn(fmt.Sprintf("existing pods in namespace %q violate the new PodSecurity enforce level %q", namespace, l))
	}
	for _, line := range slices.Sorted(slices.Values(lines)) {
		w.Warn(line)
	}
	return nil
}
