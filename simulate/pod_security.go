// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/strategy"
)

// Pod Security admission: the labels of a namespace name the standard that its
// Pods must meet, and the one that the client is warned about.

const (
	securityLabel = "pod-security.kubernetes.io/"
	unsecured     = "privileged"
)

// securityLevels are the standards, the weakest first.
var securityLevels = []string{unsecured, "baseline", "restricted"}

var securityVersion = regexp.MustCompile(`^(latest|v1\.(0|[1-9][0-9]*))$`)

// securityLevel is a standard, and its version, which is shown alone.
type securityLevel struct{ level, version string }

func (l securityLevel) String() string { return l.level + ":" + l.version }

func (l securityLevel) rank() int { return slices.Index(securityLevels, l.level) }

// short says in which ways a Pod does not meet the standard, in few words and in
// full.
func (l securityLevel) short(spec *corev1.PodSpec) (reasons, details []string) {
	for _, demand := range map[string][]standard{"baseline": baseline, "restricted": restricted}[l.level] {
		if reason, detail := demand(spec); reason != "" {
			reasons, details = append(reasons, reason), append(details, fmt.Sprintf("%s (%s)", reason, detail))
		}
	}
	return reasons, details
}

// securityOfLabels are the standards that a namespace enforces and warns about.
// What is written wrong is enforced as the strictest, and not warned about.
func securityOfLabels(labels map[string]string) (enforce, warn securityLevel, errs field.ErrorList) {
	levels := map[string]securityLevel{}
	for _, mode := range []string{"enforce", "audit", "warn"} {
		l := securityLevel{unsecured, "latest"}
		key := securityLabel + mode
		if given, ok := labels[key]; ok {
			if l.level = given; l.rank() < 0 {
				errs = append(errs, field.Invalid(field.NewPath("metadata", "labels").Key(key), given, "must be one of "+strings.Join(securityLevels, ", ")))
				if l.level = unsecured; mode == "enforce" {
					l.level = "restricted"
				}
			}
		}
		if given, ok := labels[key+"-version"]; ok {
			if l.version = given; !securityVersion.MatchString(given) {
				errs = append(errs, field.Invalid(field.NewPath("metadata", "labels").Key(key+"-version"), given, `must be "latest" or "v1.x"`))
				l.version = "latest"
			}
		}
		levels[mode] = l
	}
	enforce, warn = levels["enforce"], levels["warn"]
	if given := labels[securityLabel+"enforce"]; labels[securityLabel+"warn"] == "" && given == enforce.level {
		warn.level = enforce.level
		if labels[securityLabel+"warn-version"] == "" {
			warn.version = enforce.version
		}
	}
	return enforce, warn, errs
}

// secured refuses a Pod that does not meet the standard which its namespace
// enforces, in its newest version, and warns of Pods and templates that do not
// meet the one it warns about. old is nil for a new object.
func (s *Server) secured(q *writing, old, obj *object.Object) error {
	if q.kind.GroupResource() == object.Namespaces {
		return s.securedNamespace(q, old, obj)
	}
	path := podSpecPath(q.kind.GroupResource().String())
	pod := len(path) == 1
	if path == nil || q.subresource != "" && !(pod && q.subresource == "ephemeralcontainers") {
		return nil
	}
	home := s.stored(object.Namespaces, obj.Meta().GetNamespace())
	if home == nil {
		return nil
	}
	enforce, warn, _ := securityOfLabels(home.Meta().GetLabels())
	if enforce.rank() == 0 && warn.rank() == 0 {
		return nil
	}
	spec, err := podSpecOf(obj, path)
	if spec == nil || err != nil {
		return err
	}
	if pod {
		if old != nil {
			if before, err := podSpecOf(old, path); err != nil || sameImages(before, spec) {
				return err
			}
		}
		if _, details := enforce.short(spec); len(details) > 0 {
			return apierrors.NewForbidden(q.kind.GroupResource(), obj.Meta().GetName(), fmt.Errorf("violates PodSecurity %q: %s", enforce, strings.Join(details, ", ")))
		}
	}
	if _, details := warn.short(spec); len(details) > 0 {
		q.warn(fmt.Sprintf("would violate PodSecurity %q: %s", warn, strings.Join(details, ", ")))
	}
	return nil
}

// podSpecPath is where a kind has the spec of its Pods; nil: it has none.
func podSpecPath(resource string) []string {
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

func podSpecOf(obj *object.Object, path []string) (*corev1.PodSpec, error) {
	fields, found, _ := unstructured.NestedFieldNoCopy(obj.Fields, path...)
	given, ok := fields.(map[string]any)
	if !found || !ok {
		return nil, nil
	}
	spec := &corev1.PodSpec{}
	return spec, runtime.DefaultUnstructuredConverter.FromUnstructured(given, spec)
}

// sameImages reports whether a Pod runs what it ran.
func sameImages(before, after *corev1.PodSpec) bool {
	return before != nil && slices.EqualFunc(podContainers(before), podContainers(after), func(a, b corev1.Container) bool {
		return a.Name == b.Name && a.Image == b.Image
	})
}

// securedNamespace refuses labels that name no standard, and warns of the Pods
// that do not meet one which is enforced from now on.
func (s *Server) securedNamespace(q *writing, old, obj *object.Object) error {
	if q.subresource != "" {
		return nil
	}
	enforce, _, errs := securityOfLabels(obj.Meta().GetLabels())
	was := securityLevel{}
	if old != nil {
		before, _, known := securityOfLabels(old.Meta().GetLabels())
		if was = before; known.ToAggregate() != nil && errs.ToAggregate() != nil && known.ToAggregate().Error() == errs.ToAggregate().Error() {
			errs = nil
		}
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(strategy.InvalidKind(q.kind), obj.Meta().GetName(), errs)
	}
	if old == nil || enforce == was || enforce.version == was.version && enforce.rank() <= was.rank() {
		return nil
	}
	return s.warnOfPods(q, obj.Meta().GetName(), enforce)
}

// warnOfPods names one Pod, and how many more, for each way not to meet l.
func (s *Server) warnOfPods(q *writing, namespace string, l securityLevel) error {
	s.mu.Lock()
	pods, _ := s.mu.log.List(object.Pods, s.mu.log.Revision)
	s.mu.Unlock()
	names := map[string][]string{}
	for _, obj := range pods {
		if obj.Meta().GetNamespace() != namespace {
			continue
		}
		spec, err := podSpecOf(obj, podSpecPath("pods"))
		if err != nil {
			return err
		}
		if spec == nil {
			continue
		}
		if reasons, _ := l.short(spec); len(reasons) > 0 {
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
		q.warn(fmt.Sprintf("existing pods in namespace %q violate the new PodSecurity enforce level %q", namespace, l))
	}
	for _, line := range slices.Sorted(slices.Values(lines)) {
		q.warn(line)
	}
	return nil
}
