// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/internal/shards"
)

// scene is what a process has seen, and what it knows about itself.
type scene struct {
	*Options
	w   world
	me  self
	now time.Time
	n   int // versions of Leases
}

// newScene returns a process that has joined, beside a plan that is ready and free shards of which each
// was held before.
func newScene(count int) *scene {
	c := &scene{now: time.Now()}
	c.Options = &Options{
		ID: "op", Namespace: "default", Program: "test", By: shards.UID, Count: count, Weight: 1,
		LeaseDuration: 15 * time.Second, RetryPeriod: 2 * time.Second,
	}
	c.w = newWorld()
	c.w.synced = true
	c.w.plan = c.lease("op", planHolder, planAnnotation, c.plan().String(), programAnnotation, "test", readyAnnotation, "true")
	for s := range count {
		c.w.shards[s] = c.shard(s, "")
	}
	c.me = self{
		identity: "op-me-1", trust: c.now.Add(13 * time.Second), renewAt: c.now.Add(10 * time.Second), shards: make([]stage, count), worked: make([]bool, count),
		arrives: make([]time.Time, count), busy: map[string]bool{}, former: map[string]bool{}, idle: true,
	}
	c.me.lease = c.member("op-me-1", 15)
	return c
}

// lease returns a Lease that the watch has shown now.
func (c *scene) lease(name, holder string, annotations ...string) *seen {
	l := &coordinationv1.Lease{}
	c.n++
	l.Namespace, l.Name, l.UID, l.ResourceVersion = "default", name, types.UID(name), strconv.Itoa(c.n)
	l.Labels, l.Annotations = map[string]string{Label: labelValue(c.ID)}, map[string]string{}
	for i := 0; i < len(annotations); i += 2 {
		l.Annotations[annotations[i]] = annotations[i+1]
	}
	l.Spec.HolderIdentity, l.Spec.LeaseTransitions = &holder, new(int32(0))
	s := see(l, c.now)
	s.shown = true
	return s
}

func (c *scene) shard(s int, holder string) *seen {
	return c.lease(shardName(c.ID, s), holder, planAnnotation, c.plan().String())
}

// member returns the Lease of a member that lives, and lets the process see it.
func (c *scene) member(name string, seconds int32) *seen {
	m := c.lease(name, name, planAnnotation, c.plan().String(), stateAnnotation, stateActive)
	m.lease.Spec.LeaseDurationSeconds = &seconds
	c.w.members[name] = m
	return m
}

// does returns whether the process does something to a Lease so long from now.
func (c *scene) does(after time.Duration, do verb, name string) bool {
	c.me.trust, c.me.renewAt = c.now.Add(after+13*time.Second), c.now.Add(after+10*time.Second)
	for _, a := range c.decide(&c.w, &c.me, c.now.Add(after)).actions {
		if a.do == do && (a.name == name || name == "") {
			return true
		}
	}
	return false
}

// first returns the second, from now on, at which the process does something to a Lease.
func (c *scene) first(t *testing.T, do verb, name string) string {
	t.Helper()
	for s := range 10 * 60 {
		if c.does(time.Duration(s)*time.Second, do, name) {
			return fmt.Sprint(s, " s")
		}
	}
	return "never"
}

// A process ends its own former identity once nothing of it can arrive any more, and gives a shard away
// once no write of that can.
func TestDecide_WaitsForWritesThatWereCutOff_M31(t *testing.T) {
	c := newScene(2)
	c.member("op-me-0", 60)
	c.me.former["op-me-0"] = true
	c.me.quiet = c.now.Add(7 * time.Second)
	if got := c.first(t, fence, "op-me-0"); got != "7 s" {
		t.Errorf("a former identity is ended after %s, want 7 s, when its writes have arrived or never will", got)
	}
	c.me.idle = false
	if got := c.first(t, fence, "op-me-0"); got != "60 s" {
		t.Errorf("a former identity that reconciles is ended after %s, want its lease duration", got)
	}
	c = newScene(2)
	c.me.leaving = true
	for s := range 2 {
		c.w.shards[s], c.me.shards[s] = c.shard(s, "op-me-1"), emptied
	}
	c.me.arrives[1] = c.now.Add(9 * time.Second)
	for s, want := range []string{"0 s", "9 s"} {
		if got := c.first(t, release, shardName("op", s)); got != want {
			t.Errorf("shard %d is given away after %s, want %s", s, got, want)
		}
	}
}

// Replicas of two versions have two lease durations. What waits until others do not trust older states of
// Leases waits for the longest.
func TestDecide_WaitsForTheLongestLeaseDuration_M31(t *testing.T) {
	cases := []struct {
		name  string
		set   func(c *scene)
		do    verb
		lease string
	}{
		{"a plan is opened", func(c *scene) { delete(c.w.plan.lease.Annotations, readyAnnotation) }, openPlan, "op"},
		{"a plan whose holder was edited is taken", func(c *scene) { c.w.plan.lease.Spec.HolderIdentity = new("bob") }, takePlan, "op"},
		{"a plan whose holder and annotations were edited is taken", func(c *scene) {
			c.w.plan.lease.Annotations = nil
			c.w.plan.lease.Spec.HolderIdentity, c.w.plan.lease.Spec.LeaseDurationSeconds = new("bob"), new(int32(math.MaxInt32))
		}, takePlan, "op"},
		{"a shard that nobody has held is claimed", func(c *scene) { c.w.shards[0].lease.Spec.LeaseTransitions = nil }, claim, "op-shard-0"},
		{"a shard whose holder was edited is claimed", func(c *scene) { c.w.shards[0] = c.shard(0, "bob") }, claim, "op-shard-0"},
		{"a shard is claimed from a member that was not there", func(c *scene) {
			c.w.shards[0] = c.shard(0, "op-gone-1")
			c.w.members["op-gone-1"] = c.lease("op-gone-1", "")
			c.w.members["op-gone-1"].lease.Spec.LeaseTransitions = nil
		}, claim, "op-shard-0"},
	}
	for _, one := range cases {
		alone := newScene(1)
		one.set(alone)
		if got := alone.first(t, one.do, one.lease); got != "15 s" {
			t.Errorf("%s after %s by a process that is alone, want 15 s", one.name, got)
		}
		beside := newScene(1)
		beside.member("op-other-1", 60).lease.Annotations[stateAnnotation] = stateWaiting
		one.set(beside)
		if got := beside.first(t, one.do, one.lease); got != "60 s" {
			t.Errorf("%s after %s beside a member with a minute, want 60 s", one.name, got)
		}
		deleted := newScene(1)
		deleted.w.remove(deleted.member("op-other-1", 60), deleted.now.Add(-10*time.Second))
		one.set(deleted)
		if got := deleted.first(t, one.do, one.lease); got != "50 s" {
			t.Errorf("%s after %s, 10 s after such a member was deleted, want 50 s", one.name, got)
		}
	}
}

// A Lease that names this process and that the watch does not show, because its label was removed, is given
// away once the watch would have shown it. Otherwise nobody would work on the shard.
func TestDecide_GivesAwayAShardThatTheWatchDoesNotShow_M31(t *testing.T) {
	c := newScene(1)
	l := c.shard(0, "op-me-1")
	c.w.shards[0] = l
	if !c.does(0, adopt, "op-shard-0") {
		t.Error("a claim whose answer was lost is not adopted")
	}
	l.shown = false
	if got := c.first(t, empty, ""); got != "15 s" {
		t.Errorf("a Lease that the watch does not show is given away after %s, want 15 s", got)
	}
	if c.does(time.Hour, adopt, "op-shard-0") {
		t.Error("a Lease that the watch does not show is adopted")
	}
}

// A Lease of another program that is read again is not about to be this process's; one that was deleted is.
func TestDecide_ExpectsNoShardOfAnotherProgram_M31(t *testing.T) {
	c := newScene(2)
	c.w.foreign[1] = "theirs"
	clear(c.w.shards)
	if d := c.decide(&c.w, &c.me, c.now); len(d.coming) != 1 || d.coming[0] != 0 {
		t.Errorf("shards %v are expected, want 0 alone", d.coming)
	}
}

// A Lease with the label that is not a member's, such as a copy of the plan's, blocks nothing for ever.
func TestDecide_WaitsForNoCopyOfThePlan_M31(t *testing.T) {
	c := newScene(1)
	c.w.shards[0].lease.Spec.LeaseTransitions = nil
	c.member("op-copy", math.MaxInt32).lease.Spec.HolderIdentity = new(planHolder)
	if got := c.first(t, claim, "op-shard-0"); got != "15 s" {
		t.Errorf("beside a copy of the plan's Lease a new shard is claimed after %s, want 15 s", got)
	}
	c.member("op-copy", math.MaxInt32)
	if !c.does(time.Hour, claim, "op-shard-0") {
		t.Error("a Lease that lasts for ever blocks a new shard for more than an hour")
	}
}

// The Leases of shards that a plan with more shards has left are deleted once nobody holds them.
func TestDecide_CollectsLeasesOfALargerPlan_M31(t *testing.T) {
	c := newScene(4)
	c.member("op-other-1", 60)
	for s, holder := range map[int]string{4: "", 5: "op-other-1", 6: ""} {
		c.w.shards[s] = c.shard(s, holder)
	}
	c.w.shards[6].lease.Labels[Label] = "another"
	for s, want := range []bool{false, false, false, false, true, false, false} {
		if got := c.does(30*time.Second, collect, shardName("op", s)); got != want {
			t.Errorf("the Lease of shard %d is deleted: %v, want %v: of four, shard 5 is held, and 6 is another program's", s, got, want)
		}
	}
	delete(c.w.plan.lease.Annotations, readyAnnotation)
	if c.does(30*time.Second, collect, "op-shard-4") {
		t.Error("a Lease is deleted before the plan is ready")
	}
}

// A renewal that hangs leaves time for another before trust ends, whatever the number of members.
func TestOptions_TwoRenewalsFitIntoTheTrust_M33(t *testing.T) {
	for _, members := range []int{1, 4, 8, 50} {
		for _, lease := range []time.Duration{10 * time.Second, 15 * time.Second, time.Minute} {
			o := &Options{Count: 32, LeaseDuration: lease, RetryPeriod: 2 * time.Second}
			left := o.trusted() - o.renewEvery(members)
			first := o.renewalTime(left, 20*time.Millisecond)
			pause := o.renewAgain(left-first, o.RetryPeriod, false)
			second := left - first - pause
			t.Logf("%d members, %s: %s are left; a renewal has %s, then a pause of %s, and %s for another", members, lease, left, first, pause, second)
			if first < time.Second || second < time.Second {
				t.Errorf("%d members, %s: a renewal has %s and the next one %s, want a second at least", members, lease, first, second)
			}
			if slow := o.renewalTime(left, lease/10); slow < lease/5 {
				t.Errorf("%d members, %s: a renewal has %s where they take %s", members, lease, slow, lease/10)
			}
		}
	}
}
