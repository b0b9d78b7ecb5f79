// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/internal/writegate"
	"github.com/flyball-dev/flyball/kube"
)

// book is what an Agent knows: what it has seen, and what follows for its own shards. The Agent's lock
// guards it.
type book struct {
	*Options
	guard  *Guard
	leases informer.Lister[*coordinationv1.Lease]
	log    logr.Logger
	sim    simhook.Hooks
	joined chan struct{}
	wake   func()

	world    world
	me       self
	shown    map[string]kube.Version // of each Lease, by the watch
	renewals []renewal               // that the watch has not shown
	refusals
	claimed  map[int]*seen // the Leases of shards before the claims of this process
	taken    map[int]Taken
	catching bool
	// following: the watch is to show a renewal.
	following bool
	asked     string // of the informers
	waits     string // why this process takes no shard
	moves     []Move
	requests  map[string]uint64
	owners    []string
	running   bool
	begun     time.Time
}

// renewal is one that was answered.
type renewal struct {
	sent    writegate.Moment
	at      time.Time
	version kube.Version
}

func newBook(opts *Options, guard *Guard, joined chan struct{}, wake func()) book {
	return book{
		Options: opts, guard: guard, joined: joined, wake: wake,
		world: newWorld(), shown: map[string]kube.Version{},
		me:       self{shards: make([]stage, opts.Count), worked: make([]bool, opts.Count), arrives: make([]time.Time, opts.Count), busy: map[string]bool{}, former: map[string]bool{}},
		refusals: newRefusals(), taken: map[int]Taken{}, claimed: map[int]*seen{},
		requests: map[string]uint64{string(renew): 0, string(claim): 0, string(release): 0}, // for a rate from the start
	}
}

func (b *book) loseAll(why string) {
	b.guard.gate.Shut(why)
	var all []int
	for s, at := range b.me.shards {
		if at != elsewhere {
			all = append(all, s)
		}
	}
	b.lose(why, all...)
}

// lose records that shards are not this process's any more.
func (b *book) lose(why string, some ...int) {
	for _, s := range some {
		b.me.shards[s] = elsewhere
		delete(b.taken, s)
		delete(b.claimed, s)
	}
	b.guard.lose(some, why)
}

// rejoin ends this member, and begins another one.
func (b *book) rejoin(why string) {
	textlog.Warn(b.log, nil, "This replica has lost its shards, and joins again", "reason", why, "identity", b.me.identity, "lost", len(b.guard.Held()))
	b.loseAll(why)
	me := &b.me
	if me.lease != nil {
		me.former[me.identity] = true
	}
	me.identity, me.lease, me.version, me.trust = b.newIdentity(), nil, 0, time.Time{}
	me.renewAt, me.busy = time.Now(), map[string]bool{}
	b.renewals = nil
	b.wake()
}

// take records that the watch shows the Lease of a shard to name this process, by a claim.
func (b *book) take(s int) {
	me := &b.me
	if me.shards[s] != elsewhere {
		return
	}
	me.shards[s] = claimed
	before := b.claimed[s] // nil: the answer was lost
	delete(b.claimed, s)
	taken := Taken{Shard: s, Previous: before.holder()}
	if r, ok := recordOf(before); ok {
		taken.Previous, taken.Released, taken.Written = r.By, true, r.kinds()
	}
	b.taken[s] = taken
}

// living returns how many members live.
func (b *book) living() int {
	n := 0
	for _, m := range b.world.members {
		if m.holder() != "" {
			n++
		}
	}
	return max(n, 1)
}

// ownDeleted records that the Lease of this process was deleted. That is the end of its identity: one that
// is created again could be the effect of an older request, and others may count it as ended.
func (b *book) ownDeleted() {
	switch {
	case b.me.lease == nil:
	case b.me.leaving: // by its own request, most often
		b.loseAll("this process has left")
		b.me.lease = nil
	default:
		b.rejoin("its Lease was deleted")
	}
}

// ownSeen records a state of this process's Lease that another client may have written.
func (b *book) ownSeen(s *seen) {
	me := &b.me
	switch {
	case s.holder() == me.identity && me.lease == nil: // the answer to the first write was lost
		me.lease, me.version, me.renewAt = s, s.version, time.Now()
		b.onceJoined()
	case s.holder() != me.identity:
		b.rejoin("another replica has ended it")
	case me.lease.lease.UID != s.lease.UID:
		b.ownDeleted()
	case s.version > me.version:
		me.lease, me.version = s, s.version
	}
}

// confirm trusts the renewals that the watch has shown.
func (b *book) confirm() {
	me := &b.me
	m := b.world.members[me.identity]
	if m == nil {
		return
	}
	for len(b.renewals) > 0 && b.renewals[0].version <= m.version {
		r := b.renewals[0]
		b.renewals = b.renewals[1:]
		if until := r.at.Add(b.trusted()); until.After(me.trust) {
			if me.trust.IsZero() && b.waits == "" {
				me.renewAt = time.Now() // to say that it takes shards
				b.wake()
			}
			me.trust = until
			b.guard.gate.Open(r.sent)
		}
	}
}

// compare records what the watch has shown up to a version, which handlers may be told later:
// what was deleted or edited by hand before a renewal is known when that is trusted.
func (b *book) compare(upTo kube.Version) {
	now := time.Now()
	for l := range b.leases.All() {
		if l.Name != b.me.identity {
			s := see(l, now)
			s.shown = true
			b.learn(s)
		}
	}
	for _, s := range maps.Clone(b.world.shards) {
		// One that cannot be decoded is there.
		if _, err := b.leases.Get(kube.KeyOf(s.lease)); apierrors.IsNotFound(err) && s.shown && s.version <= upTo {
			b.removed(s.lease)
		}
	}
}

// startOver forgets all, since the state of the server has gone back, as when a backup is restored.
func (b *book) startOver() {
	b.rejoin("the state of the server has gone back")
	before := b.world
	for _, m := range before.members {
		before.remove(m, time.Now())
	}
	b.world = newWorld()
	b.world.gone = before.gone
	b.world.synced, b.shown = true, map[string]kube.Version{}
	b.learnListed()
}

// learnListed records all Leases as the watch has shown them.
func (b *book) learnListed() {
	now := time.Now()
	for l := range b.leases.All() {
		s := see(l, now)
		s.shown = true
		b.learn(s)
	}
}

// learn records a state of a Lease, if it is newer than what is known.
func (b *book) learn(s *seen) {
	w, me := &b.world, &b.me
	if s.shown {
		delete(w.deleted, s.name())
	} else if gone := w.deleted[s.name()]; gone.uid == s.lease.UID && gone.uid != "" && s.version <= gone.version {
		return // an answer that the watch has overtaken
	}
	delete(w.missing, s.name())
	shard, ok := shardOf(b.ID, s.name())
	if known := b.known(s.name()); s.version <= known {
		if now := w.shards[shard]; ok && s.version == known && s.shown {
			now.shown = true
		}
		return
	}
	switch {
	case ok:
		w.shards[shard] = s.after(w.shards[shard])
		b.shardSeen(shard, s)
	case s.name() == b.ID:
		w.plan = s.after(w.plan)
		b.planSeen()
		b.show(s.lease)
	case s.name() != me.identity: // the watch shows this process's own
		w.members[s.name()] = s.after(w.members[s.name()])
	}
}

// forget records that a Lease which the watch does not show is gone.
func (b *book) forget(name string) {
	if shard, ok := shardOf(b.ID, name); ok {
		delete(b.world.shards, shard)
	} else if name == b.ID {
		b.world.plan = nil
	}
}

// shardSeen records who holds a shard now.
func (b *book) shardSeen(shard int, s *seen) {
	me := &b.me
	if shard >= len(me.shards) {
		return
	}
	if at := me.shards[shard]; at != elsewhere && s.holder() != me.identity {
		if at != releasing {
			textlog.Warn(b.log, nil, "A shard was taken away from this replica", "shard", shard, "holder", s.holder())
		}
		b.lose("its Lease names another holder", shard)
	}
}

// planSeen gives all shards away if the plan is another one now: this process's shards overlap those
// of the new one.
func (b *book) planSeen() {
	p := b.world.plan.annotation(planAnnotation)
	if p == "" || p == b.plan().String() {
		return
	}
	var all []int
	for s, at := range b.me.shards {
		if at != elsewhere && at != releasing {
			all = append(all, s)
		}
	}
	b.lose("the plan has changed to "+p, all...)
	for _, s := range all {
		b.me.shards[s] = emptied
	}
}

// removed records that a Lease was deleted.
func (b *book) removed(l *coordinationv1.Lease) {
	w, me := &b.world, &b.me
	name := l.Name
	w.deleted[name] = deletion{l.UID, kube.ParseVersion(l.ResourceVersion)}
	delete(b.shown, name)
	if m := w.members[name]; m != nil && m.lease.UID == l.UID {
		w.remove(m, time.Now())
	}
	if name == me.identity && me.lease != nil && me.lease.lease.UID == l.UID {
		b.ownDeleted()
	}
	if name == b.ID && w.plan != nil && w.plan.lease.UID == l.UID {
		w.plan = nil
	}
	shard, ok := shardOf(b.ID, name)
	if s := w.shards[shard]; !ok || s == nil || s.lease.UID != l.UID {
		return
	}
	delete(w.shards, shard)
	if shard < len(me.shards) && me.shards[shard] != elsewhere {
		textlog.Warn(b.log, nil, "The Lease of a shard was deleted", "shard", shard)
		b.lose("its Lease was deleted", shard)
	}
}

// known returns the version of a Lease that this process has seen; 0: none.
func (b *book) known(name string) kube.Version {
	w := &b.world
	if shard, ok := shardOf(b.ID, name); ok {
		return versionOf(w.shards[shard])
	}
	if name == b.ID {
		return versionOf(w.plan)
	}
	return versionOf(w.members[name])
}

// watched records what the watch shows. Only that confirms renewals.
func (b *book) watched(s *seen) {
	b.changed(s.name())
	s.shown = true
	if s.version < b.shown[s.name()] {
		b.startOver()
	}
	b.shown[s.name()] = s.version
	b.learn(s)
	if s.name() == b.me.identity {
		b.world.members[s.name()] = s
		b.ownSeen(s)
		b.compare(s.version)
		b.confirm()
	}
}

func (b *book) recordMove(m Move) {
	m.At = simhook.Wall(b.sim)
	if len(b.moves) == mostMoves {
		b.moves = slices.Delete(b.moves, 0, 1)
	}
	b.moves = append(b.moves, m)
}

// reportForeign logs which shards this process cannot take, because Leases of other programs have their
// names, and forgets these Leases after a while: then they are read again.
func (b *book) reportForeign(now time.Time) {
	for s := range b.Count {
		l := b.world.shards[s]
		switch {
		case l == nil:
		case !b.foreign(l):
			delete(b.world.foreign, s)
		case b.world.foreign[s] != l.lease.UID:
			b.world.foreign[s] = l.lease.UID
			textlog.Warn(b.log, nil, "Cannot take a shard, because another program has the Lease of its name; delete that Lease, or give one of the two programs another LeaderElection.ID",
				"shard", s, "lease", b.Namespace+"/"+l.name(), "holder", l.holder())
		case !now.Before(l.since.Add(lookAgain)):
			delete(b.world.shards, s)
		}
	}
}

// report logs why this process takes no shard, when that changes.
func (b *book) report(d *decision) {
	text := ""
	if d.waits != nil {
		text = d.waits.Error()
	}
	if text == b.waits {
		return
	}
	if (text == "") != (b.waits == "") && b.me.lease != nil {
		b.me.renewAt = time.Now() // the others assign shards to those that take them
		b.wake()
	}
	b.waits = text
	if text == "" {
		b.log.Info("Taking shards")
		return
	}
	b.log.Info("Taking no shards", "reason", text)
}

// newIdentity returns a name that no other run of a process has.
func (b *book) newIdentity() string {
	name, chance := b.Identity, rand.String(8)
	if b.sim != nil {
		chance = fmt.Sprintf("%08x", uint32(b.sim.Random("identity of a member")*(1<<32)))
	} else if host, err := os.Hostname(); name == "" && err == nil {
		name = host
	}
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(cmp.Or(name, "replica")))
	const most = 60 // the end of a Pod's name tells it from others
	return fmt.Sprintf("%s-%s-%s", b.ID, strings.Trim(clean[max(len(clean)-most, 0):], "-"), chance)
}

// needed returns the shards whose objects this process needs.
func (b *book) needed(coming []int) []int {
	need := slices.Clone(coming)
	for s, at := range b.me.shards {
		if at != elsewhere {
			need = append(need, s)
		}
	}
	slices.Sort(need)
	return slices.Compact(need)
}

func (b *book) onceJoined() {
	select {
	case <-b.joined:
	default:
		close(b.joined)
	}
}
