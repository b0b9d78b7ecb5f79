// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package write

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// evaluator has the checks of every version of the standards.
var evaluator = sync.OnceValue(func() policy.Evaluator {
	e, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		panic(fmt.Sprintf("the checks of k8s.io/pod-security-admission: %v", err)) // a constant
	}
	return e
})

// podSecurityObjects reads what the server stores.
type podSecurityObjects interface {
	// Get returns one object, or nil if there is none.
	Get(r schema.GroupResource, key types.NamespacedName) *object.Object
	// Lists returns the objects of some resources, all at one revision.
	Lists(of ...schema.GroupResource) [][]*object.Object
}

// podSecurityWrite is one create or update.
type podSecurityWrite struct {
	Kind        *kinds.Kind
	Subresource string
	Old         *object.Object // nil for a create
	Object      *object.Object
	// Warn adds a warning to the answer.
	Warn func(text string)
}

// checkPodSecurity refuses a Pod that violates the standard which its namespace enforces. It warns
// of Pods and Pod templates that violate the standard to warn about. Of a namespace it
// checks the labels.
func checkPodSecurity(objects podSecurityObjects, w podSecurityWrite) error {
	if w.Kind.GroupResource() == object.Namespaces {
		return checkNamespace(objects, w)
	}
	path, has := templatePaths[w.Kind.GroupResource().String()]
	if !has || w.Subresource != "" && w.Subresource != "ephemeralcontainers" {
		return nil
	}
	namespace := objects.Get(object.Namespaces, types.NamespacedName{Name: w.Object.Meta().GetNamespace()})
	if namespace == nil {
		return nil
	}
	wanted, _ := policyOf(namespace)
	if wanted.Enforce.Level == api.LevelPrivileged && wanted.Warn.Level == api.LevelPrivileged {
		return nil
	}
	template, err := templateOf(w.Object, path)
	if template == nil || err != nil {
		return err
	}
	if len(path) == 0 { // a Pod
		if w.Old != nil {
			if before, err := templateOf(w.Old, path); err != nil || sameImages(before, template) {
				return err
			}
		}
		if r := evaluate(wanted.Enforce, template); !r.Allowed {
			return apierrors.NewForbidden(w.Kind.GroupResource(), w.Object.Meta().GetName(), fmt.Errorf("violates PodSecurity %q: %s", wanted.Enforce.String(), r.ForbiddenDetail()))
		}
	}
	if r := evaluate(wanted.Warn, template); !r.Allowed {
		w.Warn(fmt.Sprintf("would violate PodSecurity %q: %s", wanted.Warn.String(), r.ForbiddenDetail()))
	}
	return nil
}

func evaluate(level api.LevelVersion, template *corev1.PodTemplateSpec) policy.AggregateCheckResult {
	return policy.AggregateCheckResults(evaluator().EvaluatePod(level, &template.ObjectMeta, &template.Spec))
}

// policyOf returns the standards of a namespace, and the errors of its labels.
func policyOf(namespace *object.Object) (api.Policy, field.ErrorList) {
	none := api.LevelVersion{Level: api.LevelPrivileged, Version: api.LatestVersion()}
	return api.PolicyToEvaluate(namespace.Meta().GetLabels(), api.Policy{Enforce: none, Audit: none, Warn: none})
}

// templatePaths are where objects of a resource hold the template of their Pods. A Pod is one
// itself.
var templatePaths = map[string][]string{
	"pods":                   nil,
	"podtemplates":           {"template"},
	"replicationcontrollers": {"spec", "template"},
	"replicasets.apps":       {"spec", "template"},
	"deployments.apps":       {"spec", "template"},
	"statefulsets.apps":      {"spec", "template"},
	"daemonsets.apps":        {"spec", "template"},
	"jobs.batch":             {"spec", "template"},
	"cronjobs.batch":         {"spec", "jobTemplate", "spec", "template"},
}

func templateOf(obj *object.Object, path []string) (*corev1.PodTemplateSpec, error) {
	fields, found, _ := unstructured.NestedFieldNoCopy(obj.Fields, path...)
	given, ok := fields.(map[string]any)
	if !found || !ok || given["spec"] == nil {
		return nil, nil
	}
	template := &corev1.PodTemplateSpec{}
	return template, runtime.DefaultUnstructuredConverter.FromUnstructured(given, template)
}

// sameImages reports whether an update leaves the images of a Pod as they were.
func sameImages(before, after *corev1.PodTemplateSpec) bool {
	return before != nil && slices.EqualFunc(containersOf(before), containersOf(after), func(a, b corev1.Container) bool {
		return a.Name == b.Name && a.Image == b.Image
	})
}

func containersOf(template *corev1.PodTemplateSpec) []corev1.Container {
	all := slices.Concat(template.Spec.InitContainers, template.Spec.Containers)
	for _, c := range template.Spec.EphemeralContainers {
		all = append(all, corev1.Container(c.EphemeralContainerCommon))
	}
	return all
}

// checkNamespace refuses invalid labels. It warns of the Pods that violate a standard
// which is enforced from now on.
func checkNamespace(objects podSecurityObjects, w podSecurityWrite) error {
	if w.Subresource != "" {
		return nil
	}
	is, errs := policyOf(w.Object)
	if w.Old == nil {
		return podSecurityInvalid(w, errs)
	}
	was, known := policyOf(w.Old)
	if !reflect.DeepEqual(errs, known) {
		if err := podSecurityInvalid(w, errs); err != nil {
			return err
		}
	}
	weaker := is.Enforce.Version == was.Enforce.Version && api.CompareLevels(is.Enforce.Level, was.Enforce.Level) <= 0
	if weaker || is.Enforce.Level == api.LevelPrivileged {
		return nil
	}
	return warnOfPods(objects, w, is.Enforce)
}

func podSecurityInvalid(w podSecurityWrite, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(InvalidKind(w.Kind), w.Object.Meta().GetName(), errs)
}

// warnOfPods warns of the existing Pods that violate a standard. For each kind of
// violation it names one Pod and counts the others.
func warnOfPods(objects podSecurityObjects, w podSecurityWrite, level api.LevelVersion) error {
	namespace := w.Object.Meta().GetName()
	names := map[string][]string{}
	for _, obj := range objects.Lists(object.Pods)[0] {
		if obj.Meta().GetNamespace() != namespace {
			continue
		}
		template, err := templateOf(obj, nil)
		if err != nil {
			return err
		}
		if template == nil {
			continue
		}
		if r := evaluate(level, template); !r.Allowed {
			names[r.ForbiddenReason()] = append(names[r.ForbiddenReason()], obj.Meta().GetName())
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
		w.Warn(fmt.Sprintf("existing pods in namespace %q violate the new PodSecurity enforce level %q", namespace, level.String()))
	}
	for _, line := range slices.Sorted(slices.Values(lines)) {
		w.Warn(line)
	}
	return nil
}
