// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// Evict deletes a Pod, unless a disruption budget forbids it. Before that the Pod gets the
// condition DisruptionTarget.
func (p *Path) Evict(ctx context.Context, q *Request, asked *policyv1.Eviction) error {
	if err := p.CheckNamespace(q, q.Name); err != nil {
		return err
	}
	if asked.Name != q.Name {
		return apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	opts := asked.DeleteOptions
	if opts == nil {
		opts = &metav1.DeleteOptions{}
	}
	if q.DryRun && len(opts.DryRun) == 0 {
		opts.DryRun = []string{metav1.DryRunAll}
	}
	e := eviction{p, q, opts}
	for tried := ""; ctx.Err() == nil; {
		unguarded, err := e.checkDisruption(ctx)
		if err != nil {
			return err
		}
		err = e.delete(ctx, unguarded.version)
		switch ours := unguarded.version != "" && (opts.Preconditions == nil || opts.Preconditions.ResourceVersion == nil); {
		case !ours || !apierrors.IsConflict(err) || unguarded.version == tried: // as for another UID
			return err
		case unguarded.budget != "":
			return busy(unguarded.budget)
		}
		tried = unguarded.version
	}
	return apierrors.NewTimeoutError("the request was given up", 0)
}

// eviction is a request to delete a Pod as the options say.
type eviction struct {
	*Path
	q    *Request
	opts *metav1.DeleteOptions
}

// unguarded is a Pod that may be evicted as long as it has this version, because it serves no
// one. It spends none of the budget, if there is one.
type unguarded struct{ version, budget string }

var disruptionBudgets = schema.GroupResource{Group: "policy", Resource: "poddisruptionbudgets"}

// checkDisruption refuses the eviction of a Pod that a disruption budget forbids, or counts it.
func (e eviction) checkDisruption(ctx context.Context) (unguarded, error) {
	q := e.q
	pod := e.Store.Get(q.Kind.GroupResource(), q.key())
	if pod == nil {
		return unguarded{}, apierrors.NewNotFound(q.Kind.GroupResource(), q.Name)
	}
	phase, _, _ := unstructured.NestedString(pod.Fields, "status", "phase")
	switch corev1.PodPhase(phase) {
	case corev1.PodSucceeded, corev1.PodFailed:
		return unguarded{}, nil
	}
	if pod.Meta().GetDeletionTimestamp() != nil {
		return unguarded{}, nil
	}
	version := pod.Meta().GetResourceVersion()
	if corev1.PodPhase(phase) == corev1.PodPending {
		return unguarded{version: version}, nil
	}
	guards := e.budgetsOf(pod)
	switch {
	case len(guards) == 0:
		return unguarded{}, nil
	case len(guards) > 1:
		return unguarded{}, &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
			Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."}}
	}
	budget := guards[0]
	if !isReady(pod) && mayGoUnready(budget) {
		return unguarded{version, budget.Name}, nil
	}
	if len(e.opts.DryRun) > 0 {
		return unguarded{}, disrupted(budget)
	}
	return unguarded{}, e.spend(ctx, budget.Name)
}

// spend counts one eviction in a disruption budget.
func (e eviction) spend(ctx context.Context, budget string) error {
	q := e.q
	spent := &Request{Verb: q.Verb, User: q.User, Kind: e.Kinds.Stored(disruptionBudgets), Namespace: q.Namespace, Name: budget, Subresource: "status", Manager: "kube-apiserver"}
	_, _, err := e.Change(ctx, spent, false, func(old *object.Object) (*object.Object, error) {
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
		status.DisruptedPods[q.Name] = object.Now()
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
	switch status := budget.Status; {
	case status.ObservedGeneration < budget.Generation:
		return busy(budget.Name)
	case status.DisruptionsAllowed <= 0:
		return withCause(apierrors.NewTooManyRequests(violates, 0), budget.Name, why(status))
	}
	return nil
}

const violates = "Cannot evict pod as it would violate the pod's disruption budget."

// busy refuses an eviction until the budget's controller, or a change of the Pod, has been seen.
func busy(budget string) error {
	return withCause(apierrors.NewTooManyRequests(violates, 10), budget, " is still being processed by the server.")
}

func withCause(refusal *apierrors.StatusError, budget, cause string) error {
	refusal.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "The disruption budget " + budget + cause}}
	return refusal
}

// why says why a budget allows no disruption.
func why(status policyv1.PodDisruptionBudgetStatus) string {
	const notNow = " does not allow evicting pods currently"
	c := meta.FindStatusCondition(status.Conditions, policyv1.DisruptionAllowedCondition)
	told := c != nil && c.Status == metav1.ConditionFalse && c.Message != ""
	switch {
	case told && c.Reason == policyv1.SyncFailedReason:
		return notNow + " because it failed sync: " + c.Message
	case status.CurrentHealthy <= status.DesiredHealthy:
		return fmt.Sprintf(" needs %d healthy pods and has %d currently", status.DesiredHealthy, status.CurrentHealthy)
	case told:
		return fmt.Sprintf("%s (%s): %s", notNow, c.Reason, c.Message)
	}
	return notNow
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
func (e eviction) budgetsOf(pod *object.Object) (guards []*policyv1.PodDisruptionBudget) {
	for _, held := range e.Store.Lists(disruptionBudgets)[0] {
		budget, err := object.TypedOf[policyv1.PodDisruptionBudget](held)
		if err != nil || budget.Namespace != e.q.Namespace {
			continue
		}
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err == nil && selector.Matches(object.LabelSet(pod)) {
			guards = append(guards, budget)
		}
	}
	return guards
}

// delete deletes the Pod, if it has this version. Empty: any. Before that it gets a condition
// that says why; no webhook is asked about that.
func (e eviction) delete(ctx context.Context, version string) error {
	q, opts := e.q, e.opts.DeepCopy()
	deleted := q.as("")
	deleted.DryRun = len(opts.DryRun) > 0
	if opts.Preconditions == nil {
		opts.Preconditions = &metav1.Preconditions{}
	}
	only := opts.Preconditions
	if only.ResourceVersion == nil && version != "" {
		only.ResourceVersion = &version
	}
	for done := deleted.DryRun; !done; {
		held, old, err := e.current(deleted)
		switch {
		case err != nil:
			return err
		case held == nil:
			return apierrors.NewNotFound(q.Kind.GroupResource(), q.Name)
		case ctx.Err() != nil:
			return apierrors.NewTimeoutError("the request was given up", 0)
		}
		if err := CheckPreconditions(q.Kind, old, only); err != nil {
			return err
		}
		obj := old.Copy()
		setCondition(obj, map[string]any{"type": string(corev1.DisruptionTarget), "status": "True",
			"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"})
		if object.Same(old, obj) {
			obj = old // it has been evicted before
		}
		if obj, done, err = e.commitChange(deleted, held, old, obj); err != nil {
			return err
		}
		if done && only.ResourceVersion != nil {
			only.ResourceVersion = new(obj.Meta().GetResourceVersion())
		}
	}
	_, _, err := e.Delete(ctx, deleted, opts)
	return err
}
