// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/rand"
)

// Annotations of a Deployment and its ReplicaSets.
const (
	revisionAnnotation = "deployment.kubernetes.io/revision"
	historyAnnotation  = "deployment.kubernetes.io/revision-history"
	desiredAnnotation  = "deployment.kubernetes.io/desired-replicas"
	mostAnnotation     = "deployment.kubernetes.io/max-replicas"
	appliedAnnotation  = "kubectl.kubernetes.io/last-applied-configuration"
	rollbackAnnotation = "deprecated.deployment.rollback.to"
)

// rollout is the state of a Deployment: the ReplicaSet of its present template, or nil, and
// the others, the oldest first. It is pure.
type rollout struct {
	of      *appsv1.Deployment
	current *appsv1.ReplicaSet
	old     []*appsv1.ReplicaSet
}

func rolloutOf(d *appsv1.Deployment, sets []*appsv1.ReplicaSet) rollout {
	slices.SortFunc(sets, olderSet)
	r := rollout{of: d}
	for _, set := range sets {
		if r.current == nil && equalTemplates(&set.Spec.Template, &d.Spec.Template) {
			r.current = set
			continue
		}
		r.old = append(r.old, set)
	}
	return r
}

func olderSet(a, b *appsv1.ReplicaSet) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// equalTemplates compares templates without the label that holds their hash.
func equalTemplates(a, b *corev1.PodTemplateSpec) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	delete(a.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	delete(b.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return equality.Semantic.DeepEqual(a, b)
}

// all returns the ReplicaSets, the present one last.
func (r rollout) all() []*appsv1.ReplicaSet {
	if r.current == nil {
		return r.old
	}
	return append(slices.Clone(r.old), r.current)
}

// active returns the ReplicaSets that should have Pods.
func active(sets []*appsv1.ReplicaSet) []*appsv1.ReplicaSet {
	return without(sets, func(set *appsv1.ReplicaSet) bool { return *set.Spec.Replicas <= 0 })
}

func sum(sets []*appsv1.ReplicaSet, of func(*appsv1.ReplicaSet) int32) (n int32) {
	for _, set := range sets {
		n += of(set)
	}
	return n
}

func wanted(set *appsv1.ReplicaSet) int32    { return *set.Spec.Replicas }
func existing(set *appsv1.ReplicaSet) int32  { return set.Status.Replicas }
func available(set *appsv1.ReplicaSet) int32 { return set.Status.AvailableReplicas }
func ready(set *appsv1.ReplicaSet) int32     { return set.Status.ReadyReplicas }

func (r rollout) rolls() bool {
	return r.of.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType
}

// bounds returns how many Pods more than wanted may exist, and how many fewer may be
// available.
func (r rollout) bounds() (surge, missing int32) {
	desired := *r.of.Spec.Replicas
	if !r.rolls() || r.of.Spec.Strategy.RollingUpdate == nil {
		return 0, 0
	}
	scaled := func(v *intstr.IntOrString, up bool) int32 {
		if v == nil {
			return 0
		}
		n, err := intstr.GetScaledValueFromIntOrPercent(v, int(desired), up)
		if err != nil {
			return 0
		}
		return int32(n)
	}
	surge, missing = scaled(r.of.Spec.Strategy.RollingUpdate.MaxSurge, true), scaled(r.of.Spec.Strategy.RollingUpdate.MaxUnavailable, false)
	if surge == 0 && missing == 0 {
		missing = 1
	}
	return surge, min(missing, desired)
}

// first returns the size to which the present ReplicaSet may grow at once.
func (r rollout) first(has int32) int32 {
	desired := *r.of.Spec.Replicas
	if !r.rolls() {
		return desired
	}
	surge, _ := r.bounds()
	room := desired + surge - sum(r.all(), wanted)
	if room <= 0 {
		return has
	}
	return has + min(room, desired-has)
}

// scales reports whether the Deployment was scaled since its ReplicaSets were.
func (r rollout) scales() bool {
	return slices.ContainsFunc(active(r.all()), func(set *appsv1.ReplicaSet) bool {
		n, err := strconv.ParseInt(set.Annotations[desiredAnnotation], 10, 32)
		return err == nil && n >= 0 && int32(n) != *r.of.Spec.Replicas
	})
}

// sizes returns the sizes of the ReplicaSets of a scaled Deployment, in proportion to their
// present sizes.
func (r rollout) sizes() map[*appsv1.ReplicaSet]int32 {
	desired, out := *r.of.Spec.Replicas, map[*appsv1.ReplicaSet]int32{}
	sets := active(r.all())
	switch {
	case len(sets) == 1:
		out[sets[0]] = desired
		return out
	case len(sets) == 0:
		if r.current != nil {
			out[r.current] = desired
		} else if len(r.old) > 0 {
			out[r.old[len(r.old)-1]] = desired
		}
		return out
	case r.saturated():
		for _, set := range active(r.old) {
			out[set] = 0
		}
		return out
	case !r.rolls():
		return out
	}
	surge, _ := r.bounds()
	allowed := desired + surge
	if desired == 0 {
		allowed = 0
	}
	room := allowed - sum(sets, wanted)
	slices.SortStableFunc(sets, func(a, b *appsv1.ReplicaSet) int {
		age := olderSet(a, b)
		if room > 0 {
			age = -age // the newer first
		}
		return cmp.Or(cmp.Compare(*b.Spec.Replicas, *a.Spec.Replicas), age)
	})
	added := int32(0)
	for _, set := range sets {
		share := r.share(set, room, added, surge)
		out[set], added = *set.Spec.Replicas+share, added+share
	}
	out[sets[0]] = max(0, out[sets[0]]+room-added)
	return out
}

// share returns by how much to scale a ReplicaSet, of all that remains to be scaled.
func (r rollout) share(set *appsv1.ReplicaSet, room, added, surge int32) int32 {
	if room == 0 || room == added || *set.Spec.Replicas == 0 {
		return 0
	}
	share := -*set.Spec.Replicas
	if desired := *r.of.Spec.Replicas; desired > 0 {
		most, err := strconv.ParseInt(set.Annotations[mostAnnotation], 10, 32)
		if err != nil || most <= 0 {
			most = int64(r.of.Status.Replicas)
		}
		if most == 0 {
			return 0
		}
		share = int32(math.Round(float64(*set.Spec.Replicas)*float64(desired+surge)/float64(most))) - *set.Spec.Replicas
	}
	if room > 0 {
		return min(share, room-added)
	}
	return max(share, room-added)
}

// saturated reports whether the present ReplicaSet has all its Pods.
func (r rollout) saturated() bool {
	desired := *r.of.Spec.Replicas
	return r.current != nil && *r.current.Spec.Replicas == desired && r.current.Status.AvailableReplicas == desired &&
		r.current.Annotations[desiredAnnotation] == strconv.Itoa(int(desired))
}

// shrunk returns the sizes of old ReplicaSets after the next step of a rolling update: it
// removes unavailable Pods first, then as many as may be unavailable.
func (r rollout) shrunk() map[*appsv1.ReplicaSet]int32 {
	out := map[*appsv1.ReplicaSet]int32{}
	for _, set := range r.old {
		out[set] = *set.Spec.Replicas
	}
	if sum(r.old, wanted) == 0 || r.current == nil {
		return out
	}
	_, missing := r.bounds()
	least := *r.of.Spec.Replicas - missing
	most := sum(r.all(), wanted) - least - (*r.current.Spec.Replicas - r.current.Status.AvailableReplicas)
	if most <= 0 {
		return out
	}
	for _, set := range r.old {
		n := min(most, max(0, out[set]-set.Status.AvailableReplicas))
		out[set], most = out[set]-n, most-n
	}
	spare := sum(r.all(), available) - least
	for _, set := range r.old {
		n := min(max(0, spare), out[set])
		out[set], spare = out[set]-n, spare-n
	}
	return out
}

// revision returns the revision of a ReplicaSet; 0 if it has none.
func revision(set *appsv1.ReplicaSet) int64 {
	n, _ := strconv.ParseInt(set.Annotations[revisionAnnotation], 10, 64)
	return n
}

// next returns the revision of the present ReplicaSet: one more than the highest of the
// others.
func (r rollout) next() int64 {
	var most int64
	for _, set := range r.old {
		most = max(most, revision(set))
	}
	return most + 1
}

// annotate copies annotations of the Deployment to the present ReplicaSet, and sets its
// revision. A lower revision that it had goes into its history.
func (r rollout) annotate(set *appsv1.ReplicaSet, fresh bool) {
	for name, value := range r.of.Annotations {
		switch name {
		case appliedAnnotation, revisionAnnotation, historyAnnotation, desiredAnnotation, mostAnnotation, rollbackAnnotation:
		default:
			metav1.SetMetaDataAnnotation(&set.ObjectMeta, name, value)
		}
	}
	if next, was := r.next(), revision(set); next > was {
		if was > 0 {
			history := set.Annotations[historyAnnotation] + "," + strconv.FormatInt(was, 10)
			set.Annotations[historyAnnotation] = strings.TrimPrefix(history, ",")
		}
		metav1.SetMetaDataAnnotation(&set.ObjectMeta, revisionAnnotation, strconv.FormatInt(next, 10))
	}
	if fresh {
		r.measure(set)
	}
}

// measure notes on a ReplicaSet the size of the Deployment when it was scaled.
func (r rollout) measure(set *appsv1.ReplicaSet) {
	surge, _ := r.bounds()
	metav1.SetMetaDataAnnotation(&set.ObjectMeta, desiredAnnotation, strconv.Itoa(int(*r.of.Spec.Replicas)))
	metav1.SetMetaDataAnnotation(&set.ObjectMeta, mostAnnotation, strconv.Itoa(int(*r.of.Spec.Replicas+surge)))
}

// hashOf returns a text that differs between templates.
func hashOf(template *corev1.PodTemplateSpec, collisions *int32) string {
	h := fnv.New32a()
	text, _ := json.Marshal(template) // cannot fail: it was decoded from JSON
	_, _ = h.Write(text)
	if collisions != nil {
		_, _ = fmt.Fprint(h, *collisions)
	}
	return rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
}

// fresh returns a new ReplicaSet of the present template.
func (r rollout) fresh() *appsv1.ReplicaSet {
	d, template := r.of, r.of.Spec.Template.DeepCopy()
	hash := hashOf(&d.Spec.Template, d.Status.CollisionCount)
	metav1.SetMetaDataLabel(&template.ObjectMeta, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	selector := metav1.CloneSelectorAndAddLabel(d.Spec.Selector, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	set := &appsv1.ReplicaSet{}
	set.Namespace, set.Name = d.Namespace, d.Name+"-"+hash
	set.Labels = maps.Clone(template.Labels)
	set.OwnerReferences = controlledBy(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))
	set.Spec = appsv1.ReplicaSetSpec{Replicas: new(r.first(0)), MinReadySeconds: d.Spec.MinReadySeconds, Selector: selector, Template: *template}
	r.annotate(set, true)
	return set
}
