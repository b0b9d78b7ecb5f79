// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/jsontree"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
)

// Bind says on which node a Pod runs. A binding that is created without a Pod in its path
// names the Pod itself.
func (p *Path) Bind(ctx context.Context, q *Request, binding *corev1.Binding) error {
	if err := p.CheckNamespace(q, q.Name); err != nil {
		return err
	}
	bound := q.as("binding")
	bound.Kind, bound.Manager, bound.DryRun = p.Kinds.Stored(pods), q.Manager, q.DryRun
	switch {
	case q.Name == "":
		// What is created is the binding, whose UID is not for the client to choose.
		bound.Name, binding.UID = binding.Name, ""
	case q.Name != binding.Name:
		return apierrors.NewBadRequest("name in URL does not match name in Binding object")
	}
	if binding.Target.Name == "" {
		return refusal.Plain(errors.New("target.name: Required value"))
	}
	if bound.Name == "" {
		return apierrors.NewBadRequest("Name parameter required.")
	}
	return p.Assign(ctx, bound, binding)
}

// Assign assigns the Pod that q addresses to the target of a binding.
func (p *Path) Assign(ctx context.Context, q *Request, binding *corev1.Binding) error {
	_, _, err := p.Change(ctx, q, false, func(old *object.Object) (*object.Object, error) { return assigned(q, old, binding) })
	return err
}

var pods = schema.GroupResource{Resource: "pods"}

// assigned returns a Pod on its node.
func assigned(q *Request, old *object.Object, binding *corev1.Binding) (*object.Object, error) {
	obj, name := old.Copy(), old.Meta().GetName()
	spec, _ := obj.Fields["spec"].(map[string]any)
	has, _ := spec["nodeName"].(string)
	gates, _ := spec["schedulingGates"].([]any)
	refused := func(format string, args ...any) (*object.Object, error) {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "pods/binding"}, name, fmt.Errorf(format, args...))
	}
	switch uid := old.Meta().GetUID(); {
	case binding.UID != "" && binding.UID != uid:
		return nil, errUID(q, binding.UID, uid)
	case binding.ResourceVersion != "" && binding.ResourceVersion != old.Meta().GetResourceVersion():
		return nil, errPrecondition(q, "ResourceVersion", binding.ResourceVersion, old.Meta().GetResourceVersion())
	case old.Meta().GetDeletionTimestamp() != nil:
		return refused("pod %s is being deleted, cannot be assigned to a host", name)
	case has != "":
		return refused("pod %s is already assigned to node %q", name, has)
	case len(gates) > 0:
		return refused("pod %s has non-empty .spec.schedulingGates", name)
	}
	jsontree.SetIn(obj.Fields, binding.Target.Name, "spec", "nodeName")
	for name, value := range binding.Annotations {
		jsontree.SetIn(obj.Fields, value, "metadata", "annotations", name)
	}
	for name, value := range binding.Labels {
		jsontree.SetIn(obj.Fields, value, "metadata", "labels", name)
	}
	setCondition(obj, map[string]any{"type": "PodScheduled", "status": "True"})
	return obj, nil
}

// setCondition adds a condition to a Pod, or replaces the one of its type, whose time stays
// unless its status changes.
func setCondition(pod *object.Object, is map[string]any) {
	is["lastProbeTime"] = nil
	is["lastTransitionTime"] = object.Now().UTC().Format(time.RFC3339)
	status, _ := pod.Fields["status"].(map[string]any)
	all, _ := status["conditions"].([]any)
	i := slices.IndexFunc(all, func(c any) bool { was, _ := c.(map[string]any); return was["type"] == is["type"] })
	if all = slices.Clone(all); i < 0 {
		all = append(all, is)
	} else {
		if was, _ := all[i].(map[string]any); was["status"] == is["status"] {
			is["lastTransitionTime"] = was["lastTransitionTime"]
		}
		all[i] = is
	}
	jsontree.SetIn(pod.Fields, all, "status", "conditions")
}

// Finalize updates the finalizers in the spec of a namespace: one that is being deleted goes
// with the last of them.
func (p *Path) Finalize(ctx context.Context, q *Request) (*object.Object, error) {
	given, err := q.decode()
	if err != nil {
		return nil, err
	}
	obj, _, err := p.Change(ctx, q, false, func(old *object.Object) (*object.Object, error) {
		obj := given.Copy()
		jsontree.KeepField(old.Fields, obj.Fields, "status")
		return obj, q.Own(old, obj)
	})
	return obj, err
}
