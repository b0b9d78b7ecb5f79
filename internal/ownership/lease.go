// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"fmt"
	"hash/fnv"
	"math"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/kube"
)

// Label is on all Leases of an operator; its value is the name of the operator.
const Label = "flyball.dev/sharding"

// Annotations of the Leases.
const (
	planAnnotation    = "flyball.dev/shards"  // such as 32/uid
	programAnnotation = "flyball.dev/program" // of the plan and of a member
	readyAnnotation   = "flyball.dev/ready"   // of the plan: all Leases of shards have been created
	stateAnnotation   = "flyball.dev/state"   // of a member
	weightAnnotation  = "flyball.dev/weight"
	addressAnnotation = "flyball.dev/address" // of the member's console
	podAnnotation     = "flyball.dev/pod"     // of the member
	writtenAnnotation = "flyball.dev/written" // of a free shard: what its owner wrote last
)

// planHolder holds the plan's Lease for ever, which is that of the leader election of a version of the
// operator without shards: no process of that version becomes the leader.
const planHolder = "replicas-share-shards"

// planLasts is the duration of the plan's Lease.
const planLasts = math.MaxInt32 * time.Second

// plan is among how many shards objects are divided, and by what.
type plan struct {
	by    shards.By
	count int
}

func (p plan) String() string { return fmt.Sprintf("%d/%s", p.count, p.by) }

// seen is a Lease as the watch, or the answer to a request, shows it.
type seen struct {
	lease   *coordinationv1.Lease
	version kube.Version
	since   time.Time // when this process saw this version first
	shown   bool      // by the watch
	born    time.Time // when it saw this Lease first: one that is deleted and created again is another
}

func see(l *coordinationv1.Lease, now time.Time) *seen {
	return &seen{lease: l, version: kube.ParseVersion(l.ResourceVersion), since: now, born: now}
}

// after returns s, known to be the Lease that was before in another version.
func (s *seen) after(before *seen) *seen {
	if before != nil && before.lease.UID == s.lease.UID {
		s.born = before.born
	}
	return s
}

// everHeld reports whether the Lease has had a holder since it was created.
func (s *seen) everHeld() bool { return s.lease.Spec.LeaseTransitions != nil }

func (s *seen) name() string { return s.lease.Name }

// holder returns who holds the Lease; empty: nobody, or there is no Lease.
func (s *seen) holder() string {
	if s == nil {
		return ""
	}
	return ptr.Deref(s.lease.Spec.HolderIdentity, "")
}

// duration returns how long the Lease must stay unchanged before another process may end it.
func (s *seen) duration() time.Duration {
	return time.Duration(max(ptr.Deref(s.lease.Spec.LeaseDurationSeconds, 0), 1)) * time.Second
}

// mostTrust bounds the lease durations that others wait for.
const mostTrust = time.Hour

// trusts returns for how long the member of the Lease may trust itself, if it is one: people may have
// edited its holder, or copied the Lease of a plan, which lasts for ever.
func (s *seen) trusts() time.Duration {
	if s.holder() == planHolder {
		return 0
	}
	return min(s.duration(), mostTrust)
}

func (s *seen) annotation(name string) string {
	if s == nil {
		return ""
	}
	return s.lease.Annotations[name]
}

func (s *seen) weight() int {
	n, err := strconv.Atoi(s.annotation(weightAnnotation))
	if err != nil || n < 1 {
		return 1
	}
	return min(n, math.MaxInt16)
}

// labelValue returns the value of Label for the operator of that name.
func labelValue(id string) string {
	const most = 63
	if len(id) <= most {
		return id
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(id))
	return fmt.Sprintf("%s-%016x", strings.TrimRight(id[:most-17], "-."), h.Sum64())
}

func shardName(id string, shard int) string { return fmt.Sprintf("%s-shard-%d", id, shard) }

// shardOf returns the number in the name of a shard's Lease.
func shardOf(id, name string) (shard int, ok bool) {
	digits, ok := strings.CutPrefix(name, id+"-shard-")
	shard, err := strconv.Atoi(digits)
	return shard, ok && err == nil && shard >= 0 && shard < shards.Most && shardName(id, shard) == name
}

// foreign reports whether the Lease of a shard's name is another program's: it has the label of another
// one, or neither the label nor a plan. People may remove one of the two.
func (o *Options) foreign(l *seen) bool {
	if l == nil {
		return false
	}
	label, labelled := l.lease.Labels[Label]
	if labelled {
		return label != labelValue(o.ID)
	}
	return l.annotation(planAnnotation) == ""
}

// blank returns a Lease that nobody holds.
func (o *Options) blank(name string) *coordinationv1.Lease {
	l := &coordinationv1.Lease{}
	l.Namespace, l.Name = o.Namespace, name
	l.Spec.HolderIdentity = new("")
	return l
}

// hold makes holder the one who holds l from now on.
func hold(l *coordinationv1.Lease, holder string, duration time.Duration, now time.Time) {
	before, at := ptr.Deref(l.Spec.HolderIdentity, ""), metav1.NewMicroTime(now)
	l.Spec.LeaseDurationSeconds, l.Spec.RenewTime = new(int32((duration+time.Second-1)/time.Second)), &at
	if before == holder {
		return
	}
	l.Spec.HolderIdentity, l.Spec.AcquireTime = &holder, &at
	l.Spec.LeaseTransitions = new(ptr.Deref(l.Spec.LeaseTransitions, -1) + 1)
}

// set sets annotations of l, and its label, which people may have removed.
func (o *Options) set(l *coordinationv1.Lease, annotations map[string]string) {
	if l.Labels == nil {
		l.Labels = map[string]string{}
	}
	l.Labels[Label] = labelValue(o.ID)
	if l.Annotations == nil {
		l.Annotations = map[string]string{}
	}
	for name, value := range annotations {
		if l.Annotations[name] = value; value == "" {
			delete(l.Annotations, name)
		}
	}
}

// free makes nobody hold l.
func free(l *coordinationv1.Lease, now time.Time) {
	l.Spec.HolderIdentity, l.Spec.RenewTime = new(""), new(metav1.NewMicroTime(now))
}
