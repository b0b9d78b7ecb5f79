// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/kube"
)

// world is what this process has seen of the Leases.
type world struct {
	synced  bool
	plan    *seen            // nil: it is not there
	members map[string]*seen // by name, which is the identity
	shards  map[int]*seen
	missing map[string]time.Time // since when the Lease of a member that holds a shard was not there
	deleted map[string]deletion  // of the last Lease of a name that the watch has shown to be gone
	gone    []gone               // members whose Leases were deleted
	// foreign are the Leases of other programs that have the names of shards', also while they are read again.
	foreign map[int]types.UID
}

// gone is a member whose Lease was deleted. It may not know, and trust itself.
type gone struct {
	until    time.Time // it does not any more
	duration time.Duration
}

// remove forgets the Lease of a member, but for how long that may trust itself.
func (w *world) remove(m *seen, now time.Time) {
	w.gone = slices.DeleteFunc(w.gone, func(g gone) bool { return !now.Before(g.until) })
	w.gone = append(w.gone, gone{now.Add(m.trusts()), m.trusts()})
	delete(w.members, m.name())
}

// longest returns for how long, from now on, a member may trust itself that has not seen what this process
// sees: the longest lease duration of all that may be there. Replicas of two versions may have two.
func (w *world) longest(own time.Duration, now time.Time) time.Duration {
	for _, m := range w.members {
		own = max(own, m.trusts())
	}
	for _, g := range w.gone {
		if now.Before(g.until) {
			own = max(own, g.duration)
		}
	}
	return own
}

func newWorld() world {
	return world{members: map[string]*seen{}, shards: map[int]*seen{}, missing: map[string]time.Time{}, deleted: map[string]deletion{}, foreign: map[int]types.UID{}}
}

// deletion is the end of a Lease. One whose label was removed ends for the watch, and is there.
type deletion struct {
	uid     types.UID
	version kube.Version // before it
}

// lookAgain is how often a Lease is read of which no watch tells, because it is another program's.
const lookAgain = time.Minute

// stage is how far this process is with a shard.
type stage uint8

const (
	elsewhere stage = iota
	claimed         // the Lease names this process, and its informers are catching up
	working
	emptying // reconciles in flight are to end
	emptied
	releasing // a request may have freed the Lease
)

// self is what this process knows about itself.
type self struct {
	identity string
	lease    *seen // its own; nil: none
	version  kube.Version
	renewAt  time.Time     // when it is due
	took     time.Duration // the last renewal that was answered
	trust    time.Time     // when its trust ends; zero: it has none
	leaving  bool
	shards   []stage
	worked   []bool          // of shards that are given away: their keys have been reconciled
	busy     map[string]bool // names of Leases that a request is under way for
	former   map[string]bool // identities before, whose Leases may name them
	barred   bool            // the server forbids to update Leases
	idle     bool            // no reconcile of a shard that was lost is in flight
	quiet    time.Time       // until when writes of shards that were lost may arrive
	arrives  []time.Time     // until when writes of each shard may arrive
}

func (me *self) trusted(now time.Time) bool { return now.Before(me.trust) }

// verb is what to do next.
type verb string

const (
	createPlan  verb = "create plan"
	takePlan    verb = "take plan" // from the leader of a version without shards
	changePlan  verb = "change plan"
	createShard verb = "create shard"
	convert     verb = "convert shard" // to another plan
	openPlan    verb = "open plan"     // all Leases of shards have been created
	join        verb = "join"
	rejoin      verb = "join again"
	renew       verb = "renew"
	fence       verb = "end member"
	fenceAbsent verb = "end absent member"
	claim       verb = "claim"
	adopt       verb = "adopt" // a claim whose answer was lost
	empty       verb = "empty"
	release     verb = "release"
	collect     verb = "collect"
	quit        verb = "quit"
)

// action is one thing to do. Those with a base compare and swap; those without create.
type action struct {
	do    verb
	name  string // of the Lease
	shard int
	base  *seen
}

// decision is what follows from what was seen.
type decision struct {
	actions []action
	wake    time.Time // when to decide again; zero: when something happens
	coming  []int     // shards that are assigned to this process, and not held by it
	owners  []string  // of all shards, as assigned
	waits   error     // why this process takes no shard; nil: it does

	*Options
	w       *world
	me      *self
	now     time.Time
	longest time.Duration // for which another member may trust itself
	// endsFormer: a Lease of this process's identities before is to be ended.
	endsFormer bool
}

// decide returns what this process is to do. It is pure but for world.missing.
func (o *Options) decide(w *world, me *self, now time.Time) *decision {
	d := &decision{Options: o, w: w, me: me, now: now, longest: w.longest(o.LeaseDuration, now)}
	if !w.synced {
		d.waits = fmt.Errorf("the Leases of namespace %q have not been listed yet", o.Namespace)
		return d
	}
	if me.lease != nil && !me.trusted(now) && !me.trust.IsZero() {
		d.add(rejoin, "", -1, nil)
		return d
	}
	d.waits = d.agree()
	d.fenceDead()
	d.keepAlive()
	if d.waits == nil {
		d.divide()
	}
	d.hand()
	d.collectEnded()
	d.collectLeft()
	slices.SortStableFunc(d.actions, func(a, b action) int { // for a simulation
		return cmp.Or(cmp.Compare(a.shard, b.shard), cmp.Compare(a.name, b.name))
	})
	return d
}

func (d *decision) add(do verb, name string, shard int, base *seen) {
	if name == "" || !d.me.busy[name] {
		d.actions = append(d.actions, action{do, name, shard, base})
	}
}

// after reports whether at has come, and otherwise decides again then.
func (d *decision) after(at time.Time) bool {
	if !d.now.Before(at) {
		return true
	}
	if d.wake.IsZero() || at.Before(d.wake) {
		d.wake = at
	}
	return false
}

// missingSince returns since when the Lease of that name is known to be missing.
func (d *decision) missingSince(name string) time.Time {
	at, known := d.w.missing[name]
	if !known {
		at = d.now
		d.w.missing[name] = at
	}
	return at
}

// agree makes all members have one plan. It returns why this process must not take shards; nil: it may.
func (d *decision) agree() error {
	p := d.w.plan
	if p == nil {
		d.add(createPlan, d.ID, -1, nil)
		return fmt.Errorf("the Lease %s/%s, which has the number of shards, is not there yet", d.Namespace, d.ID)
	}
	if who := p.holder(); who != planHolder {
		lasts := p.duration()
		if p.annotation(planAnnotation) != "" || lasts == planLasts {
			lasts = d.longest // somebody has edited it, and it does not last for ever
		}
		if who == "" || d.after(p.since.Add(lasts)) {
			d.add(takePlan, d.ID, -1, p)
		}
		return fmt.Errorf("%q leads by Lease %s/%s, as a version of the program without shards does", who, d.Namespace, d.ID)
	}
	if p.annotation(programAnnotation) == "" || p.annotation(planAnnotation) == "" {
		d.add(takePlan, d.ID, -1, p)
		return fmt.Errorf("the Lease %s/%s lacks its annotations", d.Namespace, d.ID)
	}
	if program := p.annotation(programAnnotation); program != d.Program {
		return fmt.Errorf("the Lease %s/%s is of another program, %q, and this is %q; give each its own LeaderElection.ID, or delete the Lease if the other does not run any more", d.Namespace, d.ID, program, d.Program)
	}
	if p.annotation(planAnnotation) != d.plan().String() {
		return d.changePlan(p)
	}
	all := d.prepareShards()
	if p.annotation(readyAnnotation) != "" {
		return nil
	}
	// Whoever works by an older plan has seen this one by then, or does not trust its Lease any more.
	if all && d.after(p.since.Add(d.longest)) {
		d.add(openPlan, d.ID, -1, p)
	}
	return fmt.Errorf("the division into %s is new, and older ones end", d.plan())
}

// prepareShards creates the Leases of shards that are not there, and makes those that nobody holds of
// this process's plan. It reports whether all are.
func (d *decision) prepareShards() (all bool) {
	all = true
	for s := range d.Count {
		l, name := d.w.shards[s], shardName(d.ID, s)
		switch {
		case l == nil:
			d.add(createShard, name, s, nil)
		case d.foreign(l): // the others are taken nevertheless
			d.after(l.since.Add(lookAgain))
			continue
		case d.planOf(l) == d.plan().String():
			continue
		case d.isFree(l):
			d.add(convert, name, s, l)
		}
		all = false
	}
	return all
}

// changePlan makes the plan this process's, once no member with another one is left.
func (d *decision) changePlan(p *seen) error {
	theirs, want := p.annotation(planAnnotation), d.plan().String()
	err := fmt.Errorf("the other replicas divide objects into %s and this one into %s (the number of shards, and what divides them); it takes shards when no other replica is left with %[1]s", theirs, want)
	for _, m := range d.w.members {
		if m.holder() != "" && d.planOf(m) == theirs && cmp.Or(m.annotation(programAnnotation), d.Program) == d.Program {
			return err
		}
	}
	if d.me.lease == nil || !d.me.trusted(d.now) || d.me.leaving {
		return err
	}
	d.add(changePlan, d.ID, -1, p)
	return err
}

// planOf returns the plan that a Lease is of. One without it, because somebody has edited it, is of the
// plan that all have.
func (d *decision) planOf(l *seen) string {
	return cmp.Or(l.annotation(planAnnotation), d.w.plan.annotation(planAnnotation))
}

// holderOf returns who holds a shard; empty: nobody, or another program has the Lease of its name.
func (d *decision) holderOf(s int) string {
	if l := d.w.shards[s]; !d.foreign(l) {
		return l.holder()
	}
	return ""
}

// isFree reports whether nobody holds the Lease of a shard.
func (d *decision) isFree(l *seen) bool {
	holder := l.holder()
	if holder == "" {
		return true
	}
	if !strings.HasPrefix(holder, d.ID+"-") {
		// A person has written it; who held the shard before has seen that by then.
		return d.after(l.since.Add(max(d.longest, l.duration())))
	}
	m := d.w.members[holder]
	if m == nil || m.holder() != "" || holder == d.me.identity {
		return false
	}
	// A request that created the Lease of an ended member may have been under way for any time.
	return m.everHeld() || d.after(m.born.Add(max(d.longest, l.duration())))
}

// keepAlive joins, and renews.
func (d *decision) keepAlive() {
	switch {
	case d.me.lease == nil && d.me.leaving:
	case d.me.lease == nil:
		// Without the right to renew and to end Leases each one would stay. That of the identity before is ended
		// as soon as the right is there.
		if d.after(d.me.renewAt) && !(d.me.barred && d.endsFormer) {
			d.add(join, d.me.identity, -1, nil)
		}
	case d.after(d.me.renewAt):
		d.add(renew, d.me.identity, -1, d.me.lease)
	}
	if d.me.lease != nil {
		d.after(d.me.trust)
	}
}

// fenceDead ends the members whose Leases have not changed for their duration, those that are named by a
// shard and not there, and this process's own former ones.
func (d *decision) fenceDead() {
	trusted := d.me.lease != nil && d.me.trusted(d.now)
	for name, m := range d.w.members {
		switch {
		case name == d.me.identity || m.holder() == "":
		case d.me.former[name] && d.me.idle && d.after(d.me.quiet):
			// It is of this process itself, which does nothing in that name any more.
			d.endsFormer = true
			d.add(fence, name, -1, m)
		case trusted && d.after(m.since.Add(m.duration()+d.turn(name))):
			d.add(fence, name, -1, m)
		}
	}
	if trusted {
		d.fenceMissing()
	}
}

// fenceMissing ends the members that are named by a shard and not there.
func (d *decision) fenceMissing() {
	known := map[string]bool{"": true, d.me.identity: true}
	for s := range d.w.shards {
		name := d.holderOf(s)
		if known[name] || d.w.members[name] != nil || !strings.HasPrefix(name, d.ID+"-") {
			continue
		}
		known[name] = true
		if d.after(d.missingSince(name).Add(2*d.RetryPeriod + d.turn(name))) {
			d.add(fenceAbsent, name, -1, nil)
		}
	}
}

// turn returns how long this process waits for others to end a member first.
func (d *decision) turn(dead string) time.Duration {
	const most = 4
	before, mine := 0, order(dead, d.me.identity)
	for name, m := range d.w.members {
		if m.holder() != "" && name != dead && order(dead, name) < mine {
			before++
		}
	}
	return time.Duration(min(before, most)) * d.RetryPeriod
}

func order(dead, name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name + "/" + dead))
	return h.Sum64()
}

// active returns the members that take part.
func (d *decision) active() []Member {
	var all []Member
	for name, m := range d.w.members {
		if m.holder() != "" && name != d.me.identity && d.planOf(m) == d.plan().String() && m.annotation(stateAnnotation) == stateActive {
			all = append(all, Member{Name: name, Weight: m.weight()})
		}
	}
	if d.me.lease != nil && d.me.trusted(d.now) && !d.me.leaving {
		all = append(all, Member{Name: d.me.identity, Weight: d.Weight})
	}
	return all
}

// divide assigns the shards, and claims those of this process.
func (d *decision) divide() {
	holders := make([]string, d.Count)
	for s := range holders {
		holders[s] = d.holderOf(s)
	}
	d.owners = Assign(d.active(), d.Count, holders)
	for s, owner := range d.owners {
		l := d.w.shards[s]
		if owner != d.me.identity || d.foreign(l) || l == nil && d.w.foreign[s] != "" {
			continue
		}
		if d.me.shards[s] < working {
			d.coming = append(d.coming, s)
		}
		if d.me.shards[s] == elsewhere {
			d.claim(s)
		}
	}
}

// claim claims a shard that is assigned to this process and not held by it.
func (d *decision) claim(s int) {
	l, name := d.w.shards[s], shardName(d.ID, s)
	switch {
	case l == nil || d.planOf(l) != d.plan().String():
	case l.holder() == d.me.identity:
		if l.shown {
			d.add(adopt, name, s, l)
		} else if d.after(l.since.Add(d.LeaseDuration)) {
			// The watch has shown a renewal sent since, so it does not show this Lease: its label was removed, or
			// it is gone. Nothing here works on the shard. To give it away sets the label.
			d.add(empty, "", s, nil)
		}
	case !l.everHeld() && !d.after(l.born.Add(d.longest)):
		// Somebody may have held the one before, which was deleted by hand.
	case d.isFree(l):
		d.add(claim, name, s, l)
	}
}

// hand gives away the shards that are another one's now, or all.
func (d *decision) hand() {
	left := 0
	for s, at := range d.me.shards {
		name := shardName(d.ID, s)
		if at != elsewhere || d.w.shards[s].holder() == d.me.identity {
			left++
		}
		goes := d.me.leaving || d.waits != nil && at == elsewhere || d.owners != nil && d.owners[s] != d.me.identity && d.owners[s] != ""
		switch at {
		case elsewhere:
			// It was lost, or claimed by a request whose answer was lost.
			if goes && d.w.shards[s].holder() == d.me.identity && !d.me.busy[name] {
				d.add(empty, "", s, nil)
			}
		case claimed, working:
			if goes {
				d.add(empty, "", s, nil)
			}
		case emptied, releasing:
			if at == releasing || d.after(d.me.arrives[s]) {
				d.add(release, name, s, d.w.shards[s])
			}
		}
	}
	if d.me.leaving && left == 0 && d.me.lease != nil && len(d.me.busy) == 0 {
		d.actions = []action{{quit, d.me.identity, -1, d.me.lease}}
	}
}

// collectEnded deletes the Leases of members that ended long ago.
func (d *decision) collectEnded() {
	if d.me.lease == nil || d.me.leaving || !d.me.trusted(d.now) {
		return
	}
	var named map[string]bool
	for _, name := range slices.Sorted(maps.Keys(d.w.members)) {
		m := d.w.members[name]
		if m.holder() != "" || name == d.me.identity || !d.after(m.since.Add(CollectAfter*m.duration()+d.turn(name))) {
			continue
		}
		if named == nil {
			named = make(map[string]bool, len(d.w.shards))
			for _, l := range d.w.shards {
				named[l.holder()] = true
			}
		}
		if !named[name] {
			d.add(collect, name, -1, m)
		}
	}
}

// collectLeft deletes the Leases of shards that a plan with more shards has left, some at a time.
func (d *decision) collectLeft() {
	if d.waits != nil || len(d.w.shards) <= d.Count || d.me.lease == nil || d.me.leaving || !d.me.trusted(d.now) {
		return
	}
	n := 0
	for _, s := range slices.Sorted(maps.Keys(d.w.shards)) {
		l := d.w.shards[s]
		if s < d.Count || d.foreign(l) || !l.shown || !d.isFree(l) {
			continue
		}
		if !d.after(l.since.Add(d.LeaseDuration)) || !d.after(l.since.Add(d.LeaseDuration+d.turn(l.name()))) {
			continue
		}
		if n++; n > atOnce { // without the right to delete no more are tried either
			return
		}
		d.add(collect, l.name(), -1, l)
	}
}
