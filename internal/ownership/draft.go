// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"cmp"
	"encoding/json"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/kube"
)

// next returns the Lease that an action writes.
func (b *book) next(do action, now time.Time) *coordinationv1.Lease {
	var l *coordinationv1.Lease
	if do.base != nil {
		l = do.base.lease.DeepCopy()
	} else {
		l = b.blank(do.name)
	}
	wall := simhook.Wall(b.sim).Add(time.Since(now))
	switch do.do {
	case createPlan, takePlan, changePlan, openPlan:
		b.set(l, b.planAnnotations(do.do))
		l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = new(planHolder), new(int32(planLasts/time.Second))
		if b.Sign != nil {
			b.Sign(l)
		}
	case createShard, convert:
		b.set(l, map[string]string{planAnnotation: b.plan().String(), writtenAnnotation: ""})
	case join, renew:
		hold(l, b.me.identity, b.LeaseDuration, wall)
		b.set(l, b.memberAnnotations())
	case fence, fenceAbsent:
		free(l, wall)
		b.set(l, nil)
	case claim:
		hold(l, b.me.identity, b.LeaseDuration, wall)
		b.set(l, map[string]string{planAnnotation: b.plan().String(), writtenAnnotation: ""})
	case release:
		b.set(l, map[string]string{writtenAnnotation: b.writtenOf(do.shard, l)})
		free(l, wall)
	}
	return l
}

// planAnnotations returns the annotations of the plan's Lease.
func (b *book) planAnnotations(do verb) map[string]string {
	is := map[string]string{planAnnotation: b.plan().String(), programAnnotation: b.Program, readyAnnotation: ""}
	switch do {
	case createPlan, takePlan:
		if s := b.world.shards[0]; s != nil { // the plan was deleted or edited by hand
			is[planAnnotation] = cmp.Or(s.annotation(planAnnotation), b.plan().String())
		}
	case openPlan:
		is[readyAnnotation] = "true"
	}
	return is
}

// memberAnnotations returns the annotations of this process's Lease.
func (b *book) memberAnnotations() map[string]string {
	state := stateActive
	switch {
	case b.me.leaving:
		state = stateLeaving
	case b.waits != "" || !b.me.trusted(time.Now()):
		state = stateWaiting
	}
	return map[string]string{
		planAnnotation: b.plan().String(), programAnnotation: b.Program, stateAnnotation: state, weightAnnotation: strconv.Itoa(b.Weight), addressAnnotation: b.Address, podAnnotation: b.Pod,
	}
}

// writtenOf returns the record of a shard that is given away; empty: nothing is known.
func (b *book) writtenOf(shard int, l *coordinationv1.Lease) string {
	const most = 16 << 10
	if b.Written == nil || !b.me.worked[shard] { // what those before have written was not waited for
		return ""
	}
	r := record{By: b.me.identity, Transitions: ptr.Deref(l.Spec.LeaseTransitions, 0), Written: map[string]kube.Version{}}
	for kind, version := range b.Written(shard) {
		r.Written[kind.String()] = version
	}
	text, err := json.Marshal(r)
	if err != nil || len(text) > most {
		return ""
	}
	return string(text)
}

// record is what a process says about its writes when it gives a shard away.
type record struct {
	By          string                  `json:"by"`
	Transitions int32                   `json:"transitions"`
	Written     map[string]kube.Version `json:"written"`
}

// recordOf returns the record in the Lease of a free shard, if it was written with this state of it.
func recordOf(s *seen) (r record, ok bool) {
	text := s.annotation(writtenAnnotation)
	if text == "" || s.holder() != "" || json.Unmarshal([]byte(text), &r) != nil {
		return record{}, false
	}
	return r, r.Transitions == ptr.Deref(s.lease.Spec.LeaseTransitions, 0)
}

func (r record) kinds() map[schema.GroupKind]kube.Version {
	kinds := make(map[schema.GroupKind]kube.Version, len(r.Written))
	for kind, version := range r.Written {
		kinds[schema.ParseGroupKind(kind)] = version
	}
	return kinds
}
