// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package zoo_test

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// plant is one bug: what is wrong, in which part or field, and with which other object it is.
type plant struct{ how, of, with string }

// What can be wrong.
const (
	unguarded    = "deletes by a stale read"
	madeOnlyWith = "is made only in the pass that makes another"
	neverRemoved = "stays when it is turned off"
	kept         = "is taken only when the object is created"
	merged       = "is never removed from the object"
	panics       = "panics"

	claimsByLabel = "the finalizer deletes volumes by label"
	claimsByName  = "the finalizer deletes volumes by name"
	claimsByList  = "the finalizer deletes volumes of an old list"

	volumesByName       = "volumes above an old number, by name"
	volumesByList       = "volumes above an old number, of an old list"
	volumesOfEndingPods = "volumes of Pods that are seen to end"
	volumesOfShrinking  = "volumes of a StatefulSet that is seen to shrink"
	volumesBySeen       = "volumes above the number of this pass, up to that of the last"
	volumesAfterStatus  = "volumes after the status says so"

	replicasPatched   = "replicas are patched in each pass"
	neverSmaller      = "replicas are never reduced"
	resizedWithTheSet = "volumes are resized when the StatefulSet is replaced"
	neverShrunk       = "storage never gets smaller"
	immutable         = "an immutable field is updated"
	restartWithConfig = "Pods restart in the pass that changes the ConfigMap"
	restartByMemory   = "Pods restart after a step in memory"
	namedInStatus     = "a generated name is recorded after the object"
	defaultNotBack    = "the default does not come back"
	errorKept         = "an old error stays in the status"
	overwritten       = "two steps write one field"
)

// Fields of the spec, and of what they become.
const (
	budgetField    = "maxUnavailable"
	storageField   = "storage"
	portField      = "uiPort"
	configField    = "config"
	serviceLabels  = "labels of the Service"
	imageField     = "image"
	cpuField       = "cpu"
	labelsField    = "labels"
	notesField     = "annotations"
	selectorField  = "nodeSelector"
	tolerateField  = "tolerations"
	envField       = "env"
	backupField    = "backup"
	backupHours    = "backup.hours"
	generatedField = "generated"
)

func (b plant) leavesUnguarded(part string) bool { return b == plant{how: unguarded, of: part} }

func (b plant) keeps(field string) bool { return b == plant{how: kept, of: field} }

// spoilMap returns want, with what only is has if the bug is that it is never removed.
func (b plant) spoilMap(field string, is, want map[string]string) map[string]string {
	if (b != plant{how: merged, of: field}) {
		return want
	}
	all := maps.Clone(is)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, want)
	return all
}

// planted is the step of bugs that are a step of their own.
func (p *pass) planted(ctx context.Context) error {
	spec, _ := p.c.Object["spec"].(map[string]any)
	switch p.bug {
	case plant{how: panics, of: backupField}:
		_ = spec["backup"].(map[string]any)["hours"] // it may be absent
	case plant{how: panics, of: backupHours}:
		_ = 24 / p.c.number("spec", "backup", "hours") // it may be zero
	case plant{how: panics, of: tolerateField}:
		_ = p.c.each("tolerations", "key")[0] // there may be none
	case plant{how: replicasPatched}:
		set := p.c.statefulSet(mainPart)
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, *set.Spec.Replicas)
		return client.IgnoreNotFound(p.Patch(ctx, set, client.RawPatch("application/merge-patch+json", patch)))
	case plant{how: namedInStatus, of: "Secret"}:
		return p.generate(ctx, &corev1.Secret{ObjectMeta: p.c.meta("", "")})
	case plant{how: namedInStatus, of: "ConfigMap"}:
		return p.generate(ctx, &corev1.ConfigMap{ObjectMeta: p.c.meta("", "")})
	case plant{how: overwritten}:
		return p.overwrite(ctx)
	}
	return nil
}

func (p *pass) generate(ctx context.Context, obj client.Object) error {
	if p.c.text("status", generatedField) != "" {
		return nil
	}
	obj.SetName("")
	obj.SetGenerateName(p.c.GetName() + "-pass-")
	if err := p.Create(ctx, obj); err != nil {
		return err
	}
	p.c.set(obj.GetName(), "status", generatedField)
	return p.Status().Update(ctx, p.c.Unstructured)
}

// overwrite writes the labels of the ConfigMap twice.
func (p *pass) overwrite(ctx context.Context) error {
	m := &corev1.ConfigMap{}
	if err := p.Get(ctx, p.c.key("-config"), m); err != nil {
		return client.IgnoreNotFound(err)
	}
	for _, labels := range []map[string]string{p.c.labels(""), p.c.labels(mainPart)} {
		m.Labels = labels
		if err := p.Update(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// finalizeBadly deletes what it must not by a stale deletionTimestamp. done: there is nothing else to do.
func (p *pass) finalizeBadly(ctx context.Context) (done bool, err error) {
	volumes := &corev1.PersistentVolumeClaimList{}
	switch p.bug.how {
	case claimsByLabel:
		err = p.DeleteAllOf(ctx, &corev1.PersistentVolumeClaim{}, client.InNamespace(p.c.GetNamespace()),
			client.MatchingLabels(p.c.labels("")))
	case claimsByName:
		for n := range int(p.c.replicas(mainPart)) {
			volume := corev1.PersistentVolumeClaim{}
			volume.Namespace, volume.Name = p.c.GetNamespace(), p.c.volumeKey(mainPart, n).Name
			volumes.Items = append(volumes.Items, volume)
		}
	case claimsByList:
		err = p.List(ctx, volumes, p.of("")...)
	case unguarded:
		if p.bug.of == "StatefulSet" {
			err = client.IgnoreNotFound(p.Delete(ctx, p.c.statefulSet(mainPart)))
		}
		return false, err
	default:
		return false, nil
	}
	if err != nil {
		return true, err
	}
	for i := range volumes.Items {
		if err := client.IgnoreNotFound(p.Delete(ctx, &volumes.Items[i])); err != nil {
			return true, err
		}
	}
	return true, p.release(ctx)
}

// drop deletes the volumes of the main part with the ordinals from first on, below end.
func (p *pass) drop(ctx context.Context, first, end int) error {
	for n := first; n < end; n++ {
		volume := &corev1.PersistentVolumeClaim{}
		volume.Namespace, volume.Name = p.c.GetNamespace(), p.c.volumeKey(mainPart, n).Name
		if err := client.IgnoreNotFound(p.Delete(ctx, volume)); err != nil {
			return err
		}
	}
	return nil
}

// trimBadly deletes volumes that are not needed any more. done: trim is not to do it.
func (p *pass) trimBadly(ctx context.Context, is *appsv1.StatefulSet) (done bool, err error) {
	replicas, key := int(p.c.replicas(mainPart)), p.c.key("")
	switch p.bug.how {
	case volumesByName:
		return true, p.drop(ctx, replicas, replicas+2)
	case volumesByList:
		claims := &corev1.PersistentVolumeClaimList{}
		if err := p.List(ctx, claims, p.of(mainPart)...); err != nil {
			return true, err
		}
		for _, claim := range claims.Items {
			if n := ordinalOf(claim.Name); n >= replicas {
				err = p.drop(ctx, n, n+1)
			}
		}
		return true, err
	case volumesOfEndingPods:
		pods := &corev1.PodList{}
		if err := p.List(ctx, pods, p.of(mainPart)...); err != nil {
			return true, err
		}
		for _, pod := range pods.Items {
			if n := ordinalOf(pod.Name); n >= replicas && pod.DeletionTimestamp != nil {
				err = p.drop(ctx, n, n+1)
			}
		}
		return true, err
	case volumesOfShrinking:
		return true, p.drop(ctx, replicas, int(is.Status.Replicas))
	case volumesBySeen:
		p.mu.Lock()
		last := p.mu.seen[key]
		p.mu.seen[key] = int64(replicas)
		p.mu.Unlock()
		return true, p.drop(ctx, replicas, int(last))
	case volumesAfterStatus:
		last := int(p.c.number("status", "replicas"))
		if last <= replicas {
			return true, nil
		}
		p.c.set(int64(replicas), "status", "replicas")
		if err := p.Status().Update(ctx, p.c.Unstructured); err != nil {
			return true, err
		}
		return true, p.drop(ctx, replicas, last)
	}
	return false, nil
}

// spoilSet changes what a StatefulSet is to be.
func (p *pass) spoilSet(is, want *appsv1.StatefulSet) {
	from, to := &is.Spec.Template, &want.Spec.Template
	was, now := &from.Spec.Containers[0], &to.Spec.Containers[0]
	if p.bug.how == neverSmaller && *want.Spec.Replicas < *is.Spec.Replicas {
		want.Spec.Replicas = is.Spec.Replicas
	}
	if p.bug.keeps(imageField) || p.bug.how == defaultNotBack && p.c.text("spec", "image") == "" {
		now.Image = was.Image
	}
	if p.bug.keeps(cpuField) {
		now.Resources = was.Resources
	}
	if p.bug.keeps(selectorField) {
		to.Spec.NodeSelector = from.Spec.NodeSelector
	}
	to.Labels = p.bug.spoilMap(labelsField, from.Labels, to.Labels)
	to.Annotations = p.bug.spoilMap(notesField, from.Annotations, to.Annotations)
	to.Spec.NodeSelector = p.bug.spoilMap(selectorField, from.Spec.NodeSelector, to.Spec.NodeSelector)
	p.spoilLists(was, now, from, to)
	if is.Labels[ofPart] == mainPart {
		p.spoilRestart(from.Annotations, to.Annotations)
	}
}

// spoilLists adds the elements of lists that are not wanted any more.
func (p *pass) spoilLists(was, now *corev1.Container, from, to *corev1.PodTemplateSpec) {
	for _, old := range was.Env {
		named := func(e corev1.EnvVar) bool { return e.Name == old.Name }
		if p.bug == (plant{how: merged, of: envField}) && !slices.ContainsFunc(now.Env, named) {
			now.Env = append(now.Env, old)
		}
	}
	grows := p.bug == plant{how: merged, of: tolerateField}
	for _, old := range from.Spec.Tolerations {
		keyed := func(t corev1.Toleration) bool { return t.Key == old.Key }
		if grows && !slices.ContainsFunc(to.Spec.Tolerations, keyed) {
			to.Spec.Tolerations = append(to.Spec.Tolerations, old)
		}
	}
}

// spoilRestart lets a change of the config reach the Pods only at some times.
func (p *pass) spoilRestart(is, want map[string]string) {
	now := true
	switch p.bug.how {
	case restartWithConfig:
		now = p.made["-config"]
	case restartByMemory:
		p.mu.Lock()
		now = p.mu.pending[p.c.key("")] // from the last pass
		p.mu.pending[p.c.key("")] = p.made["-config"]
		p.mu.Unlock()
	}
	if !now {
		want[ofConfig] = is[ofConfig]
	}
}
