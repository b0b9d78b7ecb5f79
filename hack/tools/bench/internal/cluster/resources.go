// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"fmt"
	"iter"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// ResourceOptions say which custom resources there are.
type ResourceOptions struct {
	// Seed chooses among clusters of the same shape.
	Seed uint64
	// Count of objects. 0: 1000.
	Count int
}

// Object is a custom resource: a Certificate, a Database or a Workflow.
type Object interface {
	metav1.Object
	runtime.Object
}

// Resources are the objects of a custom kind, in the order of a list.
type Resources[T Object] struct {
	opts ResourceOptions
	kind string
	make func(d draw, meta metav1.ObjectMeta) T
}

// NewCertificates returns small custom resources, of about 1.5 kB of JSON.
func NewCertificates(opts ResourceOptions) *Resources[*Certificate] {
	return newResources(opts, "Certificate", newCertificate)
}

// NewDatabases returns medium custom resources, of about 8 kB of JSON.
func NewDatabases(opts ResourceOptions) *Resources[*Database] {
	return newResources(opts, "Database", newDatabase)
}

// NewWorkflows returns large custom resources, of about 60 kB of JSON: scripts, messages
// and the states of many nodes.
func NewWorkflows(opts ResourceOptions) *Resources[*Workflow] {
	return newResources(opts, "Workflow", newWorkflow)
}

func newResources[T Object](opts ResourceOptions, kind string, construct func(draw, metav1.ObjectMeta) T) *Resources[T] {
	opts.Count = cmp.Or(opts.Count, 1000)
	return &Resources[T]{opts: opts, kind: kind, make: construct}
}

// Len returns the number of objects.
func (r *Resources[T]) Len() int { return r.opts.Count }

// Kind returns the kind of the objects, in FleetVersion.
func (r *Resources[T]) Kind() string { return r.kind }

// Version returns the resource version of a list: no object has a later one.
func (r *Resources[T]) Version() int64 { return firstVersion + 64*int64(r.opts.Count) }

// Typed returns the i-th object.
func (r *Resources[T]) Typed(i int) T {
	d := drawOf(r.opts.Seed, r.kind, i)
	namespaces := min(r.opts.Count/20+1, maxNamespaces)
	namespace := i * namespaces / r.opts.Count
	first := (namespace*r.opts.Count + namespaces - 1) / namespaces
	next := ((namespace+1)*r.opts.Count + namespaces - 1) / namespaces
	name := d.name(i-first, next-first)
	obj := r.make(d, metav1.ObjectMeta{
		Name: name, Namespace: drawOf(r.opts.Seed, "namespace", namespace).name(namespace, namespaces), UID: d.uid(), Generation: int64(d.between(1, 9)),
		ResourceVersion:   strconv.FormatInt(firstVersion+int64(i*stride%r.opts.Count)*64+int64(d.IntN(64)), 10),
		CreationTimestamp: after(began, int64(d.IntN(30*24*3600))),
		Labels:            map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/managed-by": "Helm", "team": d.word()},
		Annotations:       map[string]string{"meta.helm.sh/release-name": name, "checksum/values": d.digest()},
	})
	obj.GetObjectKind().SetGroupVersionKind(FleetVersion.WithKind(r.kind))
	return obj
}

// Unstructured returns the i-th object as the fields of its JSON.
func (r *Resources[T]) Unstructured(i int) *unstructured.Unstructured {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(r.Typed(i))
	if err != nil {
		panic(fmt.Sprintf("convert a %s: %v", r.kind, err)) // the types of the fleet convert
	}
	return &unstructured.Unstructured{Object: fields}
}

// All returns the objects one by one.
func (r *Resources[T]) All() iter.Seq[*unstructured.Unstructured] {
	return func(yield func(*unstructured.Unstructured) bool) {
		for i := range r.opts.Count {
			if !yield(r.Unstructured(i)) {
				return
			}
		}
	}
}

// Collection returns the objects as a server has them.
func (r *Resources[T]) Collection() Collection[*unstructured.Unstructured] {
	version := FleetVersion.String()
	return Collection[*unstructured.Unstructured]{
		Objects: r.All(), Len: r.Len(), Version: r.Version(),
		empty: func(meta metav1.ObjectMeta) *unstructured.Unstructured {
			obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": r.kind}}
			obj.SetResourceVersion(meta.ResourceVersion)
			obj.SetAnnotations(meta.Annotations)
			return obj
		},
		list: func(meta metav1.ListMeta, objs []*unstructured.Unstructured) runtime.Object {
			list := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": version, "kind": r.kind + "List"}}
			list.SetResourceVersion(meta.ResourceVersion)
			list.SetContinue(meta.Continue)
			list.SetRemainingItemCount(meta.RemainingItemCount)
			for _, obj := range objs {
				list.Items = append(list.Items, *obj)
			}
			return list
		},
	}
}

func customCondition(d draw, typ, reason, message string, meta *metav1.ObjectMeta) metav1.Condition {
	return metav1.Condition{
		Type: typ, Status: metav1.ConditionTrue, Reason: reason, Message: message, ObservedGeneration: meta.Generation,
		LastTransitionTime: after(meta.CreationTimestamp.Unix(), int64(d.IntN(1000))),
	}
}
