// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

// Kind is one that the server serves, in one version.
type Kind struct {
	schema.GroupVersionKind
	// Resource is its plural in paths. Empty: the kind in lower case with an s.
	Resource string
	// Namespaced: its objects live in namespaces.
	Namespaced bool
	// Defaults are filled in where an object that is read lacks them at its top
	// level, as the defaults of a CRD's schema are: without a new
	// resourceVersion. nil: none.
	Defaults map[string]any

	builtin bool // has a Go type, so protobuf too
}

func (k *Kind) resource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

// path is where the server serves the kind's group and version.
func (k *Kind) path() string { return groupPath(k.GroupVersion()) }

func groupPath(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "/api/" + gv.Version
	}
	return "/apis/" + gv.Group + "/" + gv.Version
}

// builtins are the kinds that are always there.
func builtins() []Kind {
	namespaced := func(gv schema.GroupVersion, kinds ...string) (out []Kind) {
		for _, kind := range kinds {
			out = append(out, Kind{GroupVersionKind: gv.WithKind(kind), Namespaced: true})
		}
		return out
	}
	return slices.Concat(
		[]Kind{{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Namespace")}, {GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Node")}},
		namespaced(corev1.SchemeGroupVersion, "ConfigMap", "Secret", "Pod", "Service", "ServiceAccount", "Event"),
		namespaced(appsv1.SchemeGroupVersion, "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"),
		namespaced(batchv1.SchemeGroupVersion, "Job", "CronJob"),
		namespaced(coordinationv1.SchemeGroupVersion, "Lease"),
	)
}

// completed is the kind with what it leaves out filled in.
func (k Kind) completed() *Kind {
	if k.Resource == "" {
		k.Resource = strings.ToLower(k.Kind) + "s"
	}
	k.builtin = clientscheme.Scheme.Recognizes(k.GroupVersionKind)
	return &k
}

// shown is obj as a reader sees it: with its kind and the defaults.
func (k *Kind) shown(obj *object) *object {
	missing := false
	for name := range k.Defaults {
		if _, ok := obj.fields[name]; !ok {
			missing = true
		}
	}
	if !missing {
		return obj
	}
	obj = obj.copy()
	for name, value := range k.Defaults {
		if _, ok := obj.fields[name]; !ok {
			obj.fields[name] = value
		}
	}
	return obj
}
