// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// deploymentController creates the ReplicaSets of Deployments and rolls them out.
type deploymentController struct{ *controllers }

var (
	deploymentResource = schema.GroupResource{Group: appsv1.GroupName, Resource: "deployments"}
	replicaSetResource = schema.GroupResource{Group: appsv1.GroupName, Resource: "replicasets"}
)

func (deploymentController) name() string { return "deployments" }

func (a deploymentController) observe(c revisions.Change, look func(Reference)) {
	switch c.Resource {
	case deploymentResource:
		look(aboutOf(c))
	case replicaSetResource:
		a.lookAtControllers(c, deploymentResource, look)
	case object.Pods:
		// A Recreate waits for the last Pod of its old ReplicaSets.
		if c.After == nil {
			set := a.index.identities[controllerOf(c.Before)]
			if owner, known := a.index.identities[controllerOf(a.get(set))]; known && owner.GroupResource == deploymentResource {
				look(owner)
			}
		}
	}
}

func (a deploymentController) act(ctx context.Context, about Reference) (time.Duration, error) {
	d := readWhole[appsv1.Deployment](a.controllers, about)
	if d == nil || d.Spec.Selector == nil || d.Spec.Replicas == nil {
		return 0, nil
	}
	sets, err := claimed[appsv1.ReplicaSet](ctx, a.controllers, claim{about: about, uid: d.UID, kind: "Deployment", selector: d.Spec.Selector, ending: !object.Unset(d.DeletionTimestamp)}, replicaSetResource)
	if err != nil {
		return 0, err
	}
	r := rolloutOf(d, sets)
	was := d.DeepCopy()
	if object.Unset(d.DeletionTimestamp) {
		if err := a.advance(ctx, &r); err != nil {
			a.reportCreateError(ctx, about, was, r, err)
			return 0, err
		}
	} else {
		r.summarize()
	}
	if equality.Semantic.DeepEqual(was, r.of) {
		return r.deadline(), nil
	}
	return r.deadline(), a.report(ctx, about, r.of)
}

// advance takes the next step of a rollout.
func (a deploymentController) advance(ctx context.Context, r *rollout) error {
	r.setPausedCondition()
	if err := a.present(ctx, r, !r.of.Spec.Paused && r.rolls() && !r.scales()); err != nil {
		return err
	}
	switch {
	case r.of.Spec.Paused || r.scales():
		sizes := r.sizes()
		for _, set := range r.all() {
			if n, sized := sizes[set]; sized {
				if err := a.scale(ctx, *r, set, n); err != nil {
					return err
				}
			}
		}
		if r.of.Spec.Paused {
			if err := a.tidy(ctx, *r); err != nil {
				return err
			}
		}
		r.summarize()
		return nil
	case r.rolls():
		return a.roll(ctx, r)
	}
	return a.replace(ctx, r)
}

// roll takes one step of a rolling update.
func (a deploymentController) roll(ctx context.Context, r *rollout) error {
	grown, err := a.grow(ctx, *r)
	if err != nil {
		return err
	}
	if !grown {
		sizes := r.shrunk()
		for _, set := range r.old {
			if err := a.scale(ctx, *r, set, sizes[set]); err != nil {
				return err
			}
		}
	}
	return a.close(ctx, r)
}

// grow scales the present ReplicaSet up as far as maxSurge allows.
func (a deploymentController) grow(ctx context.Context, r rollout) (bool, error) {
	desired, has := *r.of.Spec.Replicas, *r.current.Spec.Replicas
	n := desired
	if has < desired {
		n = r.first(has)
	}
	return n != has, a.scale(ctx, r, r.current, n)
}

// replace takes one step of a rollout that deletes all old Pods first.
func (a deploymentController) replace(ctx context.Context, r *rollout) error {
	if old := active(r.old); len(old) > 0 {
		for _, set := range old {
			if err := a.scale(ctx, *r, set, 0); err != nil {
				return err
			}
		}
		r.summarizeProgress()
		return nil
	}
	if a.running(*r) {
		r.summarizeProgress()
		return nil
	}
	if err := a.present(ctx, r, true); err != nil {
		return err
	}
	if err := a.scale(ctx, *r, r.current, *r.of.Spec.Replicas); err != nil {
		return err
	}
	return a.close(ctx, r)
}

// running reports whether Pods of old ReplicaSets still run.
func (a deploymentController) running(r rollout) bool {
	for _, set := range r.old {
		if set.Status.Replicas > 0 {
			return true
		}
		for _, about := range a.index.of(set.UID) {
			if pod := read[corev1.Pod](a.controllers, about); about.GroupResource == object.Pods && pod != nil && !ended(pod) {
				return true
			}
		}
	}
	return false
}

// close writes the status, and deletes old ReplicaSets when the rollout is complete.
func (a deploymentController) close(ctx context.Context, r *rollout) error {
	complete := r.complete(r.of.Status)
	r.summarizeProgress()
	if complete {
		return a.tidy(ctx, *r)
	}
	return nil
}

// present updates the present ReplicaSet, or creates it.
func (a deploymentController) present(ctx context.Context, r *rollout, create bool) error {
	if r.current == nil && !create {
		return nil
	}
	if r.current == nil {
		if err := a.begin(ctx, r); err != nil {
			return err
		}
		r.setRevision()
		r.progressed("NewReplicaSetCreated", fmt.Sprintf("Created new replica set %q", r.current.Name))
		return nil
	}
	edit := func(set *appsv1.ReplicaSet) {
		r.annotate(set, false)
		set.Spec.MinReadySeconds = r.of.Spec.MinReadySeconds
	}
	set := r.current.DeepCopy()
	if edit(set); !equality.Semantic.DeepEqual(set, r.current) {
		var err error
		if set, err = update(ctx, a.controllers, byControllers, Reference{replicaSetResource, object.NameOf(set)}, "", edit); err != nil {
			return err
		}
	}
	r.current = set
	r.setRevision()
	if condition(r.of, appsv1.DeploymentProgressing) == nil {
		r.progressed("FoundNewReplicaSet", fmt.Sprintf("Found new replica set %q", set.Name))
	}
	return nil
}

// begin creates the ReplicaSet of the present template. If another template has taken its
// name, the next attempt uses another name.
func (a deploymentController) begin(ctx context.Context, r *rollout) error {
	obj, err := a.create(ctx, byControllers, replicaSetResource, r.fresh())
	if apierrors.IsAlreadyExists(err) {
		count := int32(1)
		if was := r.of.Status.CollisionCount; was != nil {
			count += *was
		}
		about := Reference{deploymentResource, object.NameOf(r.of)}
		if _, err := update(ctx, a.controllers, byControllers, about, "status", func(d *appsv1.Deployment) { d.Status.CollisionCount = &count }); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	r.current, err = object.TypedOf[appsv1.ReplicaSet](obj)
	return err
}

// scale sets the size of a ReplicaSet.
func (a deploymentController) scale(ctx context.Context, r rollout, set *appsv1.ReplicaSet, n int32) error {
	if *set.Spec.Replicas == n && !r.scales() {
		return nil
	}
	is, err := update(ctx, a.controllers, byControllers, Reference{replicaSetResource, object.NameOf(set)}, "", func(set *appsv1.ReplicaSet) {
		set.Spec.Replicas = &n
		r.measure(set)
	})
	if err == nil {
		*set = *is
	}
	return err
}

// tidy deletes the oldest ReplicaSets beyond the history limit.
func (a deploymentController) tidy(ctx context.Context, r rollout) error {
	limit := r.of.Spec.RevisionHistoryLimit
	if limit == nil || *limit == math.MaxInt32 {
		return nil
	}
	old := without(r.old, func(set *appsv1.ReplicaSet) bool { return !object.Unset(set.DeletionTimestamp) })
	slices.SortStableFunc(old, func(a, b *appsv1.ReplicaSet) int { return int(revision(a) - revision(b)) })
	for _, set := range old[:max(0, len(old)-int(*limit))] {
		if set.Status.Replicas > 0 || *set.Spec.Replicas > 0 || set.Generation > set.Status.ObservedGeneration {
			continue
		}
		if err := a.discard(ctx, Reference{replicaSetResource, object.NameOf(set)}); err != nil {
			return err
		}
	}
	return nil
}

// report writes the status of a Deployment, with its revision.
func (a deploymentController) report(ctx context.Context, about Reference, is *appsv1.Deployment) error {
	_, err := update(ctx, a.controllers, byControllers, about, "status", func(d *appsv1.Deployment) {
		if d.UID != is.UID {
			return
		}
		collisions := d.Status.CollisionCount
		d.Status = is.Status
		d.Status.CollisionCount = collisions
		if text := is.Annotations[revisionAnnotation]; text != "" {
			metav1.SetMetaDataAnnotation(&d.ObjectMeta, revisionAnnotation, text)
		}
	})
	return err
}

// reportCreateError sets the condition that no ReplicaSet can be created.
func (a deploymentController) reportCreateError(ctx context.Context, about Reference, d *appsv1.Deployment, r rollout, cause error) {
	if r.current != nil || !hasDeadline(d) || apierrors.IsAlreadyExists(cause) || apierrors.HasStatusCause(cause, corev1.NamespaceTerminatingCause) {
		return
	}
	setCondition(d, appsv1.DeploymentProgressing, corev1.ConditionFalse, "ReplicaSetCreateError", fmt.Sprintf("Failed to create new replica set %q: %v", r.fresh().Name, cause))
	_ = a.report(ctx, about, d) // the caller returns the cause
}

// setRevision copies the revision of the present ReplicaSet.
func (r *rollout) setRevision() {
	metav1.SetMetaDataAnnotation(&r.of.ObjectMeta, revisionAnnotation, strconv.FormatInt(revision(r.current), 10))
}
