// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/jsonvalue"
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
	jsonvalue.SetIn(obj.Fields, binding.Target.Name, "spec", "nodeName")
	for name, value := range binding.Annotations {
		jsonvalue.SetIn(obj.Fields, value, "metadata", "annotations", name)
	}
	for name, value := range binding.Labels {
		jsonvalue.SetIn(obj.Fields, value, "metadata", "labels", name)
	}
	jsonvalue.SetIn(obj.Fields, scheduled(obj), "status", "conditions")
	return obj, nil
}

// scheduled returns the conditions of a Pod that gets its node.
func scheduled(pod *object.Object) []any {
	status, _ := pod.Fields["status"].(map[string]any)
	all, _ := status["conditions"].([]any)
	is := map[string]any{"type": "PodScheduled", "status": "True", "lastProbeTime": nil, "lastTransitionTime": jsonvalue.Now().UTC().Format(time.RFC3339)}
	i := slices.IndexFunc(all, func(c any) bool { was, _ := c.(map[string]any); return was["type"] == is["type"] })
	if i < 0 {
		return append(slices.Clone(all), is)
	}
	all = slices.Clone(all)
	all[i] = is
	return all
}

// Evict deletes a Pod, unless a disruption budget forbids it.
func (p *Path) Evict(ctx context.Context, q *Request, eviction *policyv1.Eviction) error {
	if err := p.CheckNamespace(q, q.Name); err != nil {
		return err
	}
	if eviction.Name != q.Name {
		return apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	opts := eviction.DeleteOptions
	if opts == nil {
		opts = &metav1.DeleteOptions{}
	}
	if q.DryRun && len(opts.DryRun) == 0 {
		opts.DryRun = []string{metav1.DryRunAll}
	}
	if err := p.checkDisruption(ctx, q, len(opts.DryRun) > 0); err != nil {
		return err
	}
	deleted := q.as("")
	deleted.DryRun = len(opts.DryRun) > 0
	_, _, err := p.Delete(ctx, deleted, opts)
	return err
}

var disruptionBudgets = schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}

// checkDisruption refuses the eviction of a Pod that a disruption budget forbids, or counts it.
func (p *Path) checkDisruption(ctx context.Context, q *Request, dryRun bool) error {
	pod := p.Store.Get(q.Kind.GroupResource(), q.key())
	if pod == nil {
		return apierrors.NewNotFound(q.Kind.GroupResource(), q.Name)
	}
	phase, _, _ := unstructured.NestedString(pod.Fields, "status", "phase")
	switch corev1.PodPhase(phase) {
	case corev1.PodPending, corev1.PodSucceeded, corev1.PodFailed:
		return nil // it serves no one
	}
	if pod.Meta().GetDeletionTimestamp() != nil {
		return nil
	}
	guards := p.budgetsOf(q, pod)
	switch {
	case len(guards) == 0:
		return nil
	case len(guards) > 1:
		return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
			Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."}}
	}
	budget := guards[0]
	if !isReady(pod) && mayGoUnready(budget) {
		return nil
	}
	if dryRun {
		return disrupted(budget)
	}
	spent := &Request{Verb: q.Verb, User: q.User, Kind: p.Kinds.Stored(disruptionBudgets), Namespace: q.Namespace, Name: budget.Name, Subresource: "status", Manager: "kube-apiserver"}
	_, _, err := p.Change(ctx, spent, false, func(old *object.Object) (*object.Object, error) {
		budget, err := object.TypedOf[policyv1.PodDisruptionBudget](old)
		if err == nil {
			err = disrupted(budget)
		}
		if err != nil {
			return nil, err
		}
		status := &budget.Status
		if status.DisruptionsAllowed--; status.DisruptionsAllowed == 0 {
			meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: policyv1.DisruptionAllowedCondition,
				Status: metav1.ConditionFalse, Reason: policyv1.InsufficientPodsReason, ObservedGeneration: status.ObservedGeneration})
		}
		if status.DisruptedPods == nil {
			status.DisruptedPods = map[string]metav1.Time{}
		}
		status.DisruptedPods[q.Name] = jsonvalue.Now()
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
		if err != nil {
			return nil, err
		}
		obj := old.Copy()
		obj.Fields["status"] = fields
		return obj, spent.Own(old, obj)
	})
	return err
}

// disrupted refuses one disruption more than a budget allows.
func disrupted(budget *policyv1.PodDisruptionBudget) error {
	if budget.Status.ObservedGeneration < budget.Generation {
		refusal := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 10)
		refusal.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause,
			Message: fmt.Sprintf("The disruption budget %s is still being processed by the server.", budget.Name)}}
		return refusal
	}
	if budget.Status.DisruptionsAllowed > 0 {
		return nil
	}
	refusal := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	refusal.ErrStatus.Details.Causes = append(refusal.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: policyv1.DisruptionBudgetCause, Message: "The disruption budget " + budget.Name + why(budget.Status),
	})
	return refusal
}

// why says why a budget allows no disruption.
func why(status policyv1.PodDisruptionBudgetStatus) string {
	const no = " does not allow evicting pods currently"
	c := meta.FindStatusCondition(status.Conditions, policyv1.DisruptionAllowedCondition)
	told := c != nil && c.Status == metav1.ConditionFalse && c.Message != ""
	switch {
	case told && c.Reason == policyv1.SyncFailedReason:
		return no + " because it failed sync: " + c.Message
	case status.CurrentHealthy <= status.DesiredHealthy:
		return fmt.Sprintf(" needs %d healthy pods and has %d currently", status.DesiredHealthy, status.CurrentHealthy)
	case told:
		return fmt.Sprintf("%s (%s): %s", no, c.Reason, c.Message)
	}
	return no
}

func isReady(pod *object.Object) bool {
	conditions, _, _ := unstructured.NestedSlice(pod.Fields, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		is, _ := c.(map[string]any)
		return is["type"] == "Ready" && is["status"] == "True"
	})
}

// mayGoUnready reports whether a Pod that is not ready may be evicted without regard to how many
// disruptions the budget allows.
func mayGoUnready(budget *policyv1.PodDisruptionBudget) bool {
	if p := budget.Spec.UnhealthyPodEvictionPolicy; p != nil && *p == policyv1.AlwaysAllow {
		return true
	}
	return budget.Status.DesiredHealthy > 0 && budget.Status.CurrentHealthy >= budget.Status.DesiredHealthy
}

// budgetsOf returns the disruption budgets that select a Pod.
func (p *Path) budgetsOf(q *Request, pod *object.Object) (guards []*policyv1.PodDisruptionBudget) {
	for _, held := range p.Store.Lists(disruptionBudgets)[0] {
		budget, err := object.TypedOf[policyv1.PodDisruptionBudget](held)
		if err != nil || budget.Namespace != q.Namespace {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err == nil && selector.Matches(object.LabelSet(pod)) {
			guards = append(guards, budget)
		}
	}
	return guards
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
		jsonvalue.KeepField(old.Fields, obj.Fields, "status")
		return obj, q.Own(old, obj)
	})
	return obj, err
}
