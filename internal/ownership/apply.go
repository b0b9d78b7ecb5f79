// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/kube"
)

// isAnswer reports whether err is an answer of the server.
func isAnswer(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

// isConflict reports whether another client has written first.
func isConflict(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// versionOf returns the version of a Lease; 0: there is none.
func versionOf(s *seen) kube.Version {
	if s == nil {
		return 0
	}
	return s.version
}

// knownLocked returns the version of a Lease that this process has seen; 0: none.
func (a *Agent) knownLocked(name string) kube.Version {
	w := &a.mu.world
	if shard, ok := shardOf(a.ID, name); ok {
		return versionOf(w.shards[shard])
	}
	if name == a.ID {
		return versionOf(w.plan)
	}
	return versionOf(w.members[name])
}

// applyLocked records how the request of an action ended.
func (a *Agent) applyLocked(do action, got *coordinationv1.Lease, err error, sent renewal) {
	now := time.Now()
	me := &a.mu.me
	if err != nil {
		a.failedLocked(do, err, now)
		return
	}
	a.mu.forbidden = nil
	delete(a.mu.refused, do.name)
	if do.do == quit {
		me.lease = nil
		a.gate.Shut("this process has left")
		return
	}
	if do.do == collect {
		return
	}
	s := see(got, now)
	a.learnLocked(s)
	switch do.do {
	case join, renew:
		me.lease, me.version = s, s.version
		me.renewAt = now.Add(a.renewEvery(a.membersLocked()))
		sent.version = s.version
		a.mu.renewals = append(a.mu.renewals, sent)
		a.confirmLocked()
		if do.do == join {
			a.onceJoined()
		}
	case claim:
		if me.shards[do.shard] == elsewhere {
			a.mu.claimed[do.shard] = do.base // it is taken when the watch shows it
		}
	case release:
		me.shards[do.shard] = elsewhere
		a.log.V(1).Info("Gave a shard away", "shard", do.shard)
	case fence, fenceAbsent:
		textlog.Warn(a.log, nil, "Ended a replica that has not renewed its Lease", "replica", do.name)
	}
}

func (a *Agent) onceJoined() {
	select {
	case <-a.joined:
	default:
		close(a.joined)
	}
}

// membersLocked returns how many members live.
func (a *Agent) membersLocked() int {
	n := 0
	for _, m := range a.mu.world.members {
		if m.holder() != "" {
			n++
		}
	}
	return max(n, 1)
}

// failedLocked records that the request of an action failed.
func (a *Agent) failedLocked(do action, err error, now time.Time) {
	me := &a.mu.me
	again := a.RetryPeriod
	if a.sim != nil {
		again = again/2 + simhook.Duration(a.sim, "shards retry", again)
	}
	log := a.log.V(1)
	if apierrors.IsForbidden(err) {
		log = a.log
		if a.mu.forbidden == nil {
			a.mu.forbiddenSince = now
		}
		a.mu.forbidden = err
	}
	log.Info("Cannot write a Lease", "lease", do.name, "to", string(do.do), "reason", err.Error())
	if overtaken := isConflict(err) && a.knownLocked(do.name) > versionOf(do.base); !overtaken {
		a.mu.refused[do.name] = now.Add(again)
	}
	// The watch does not show a Lease without the label, such as that of a leader, or one whose label was
	// removed.
	unseen := a.knownLocked(do.name) == versionOf(do.base) && (do.base == nil || !do.base.shown)
	if isConflict(err) && unseen && do.do != join && do.do != renew {
		a.readLocked(do.name, a.learnLocked, func() { a.forgetLocked(do.name) })
		return
	}
	switch do.do {
	case join, renew:
		me.renewAt = now.Add(again)
		switch {
		case apierrors.IsNotFound(err):
			a.ownDeletedLocked()
		case isConflict(err):
			a.readLocked(me.identity, a.ownSeenLocked, a.ownDeletedLocked)
		}
	case quit:
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			me.lease = nil // somebody has ended or deleted it
		}
	}
}

// ownDeletedLocked makes the next renewal create the Lease of this process, which was deleted.
func (a *Agent) ownDeletedLocked() {
	me := &a.mu.me
	if me.lease == nil {
		return
	}
	l := me.lease.lease.DeepCopy()
	l.ResourceVersion, l.UID = "", ""
	me.lease, me.renewAt = &seen{lease: l, since: me.lease.since}, time.Now()
	delete(a.mu.refused, me.identity)
}

// readLocked reads a Lease that another client has written, and that the watch does not show, or not yet.
func (a *Agent) readLocked(name string, found func(*seen), gone func()) {
	identity := a.mu.me.identity
	a.mu.me.busy[name] = true
	a.work.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), a.LeaseDuration)
		defer cancel()
		got, err := a.sender.get(ctx, name)
		a.mu.Lock()
		defer a.mu.Unlock()
		defer a.wake()
		a.mu.requests["get"]++
		if identity != a.mu.me.identity {
			return
		}
		delete(a.mu.me.busy, name)
		switch {
		case apierrors.IsNotFound(err):
			gone()
		case err == nil:
			found(see(got, time.Now()))
		}
	})
}

// ownSeenLocked records a state of this process's Lease that another client may have written.
func (a *Agent) ownSeenLocked(s *seen) {
	me := &a.mu.me
	switch {
	case s.holder() == me.identity && me.lease == nil: // the answer to the first write was lost
		me.lease, me.version, me.renewAt = s, s.version, time.Now()
		a.onceJoined()
	case s.holder() != me.identity:
		a.rejoinLocked("another replica has ended it")
	case s.version > me.version:
		me.lease, me.version = s, s.version
	}
}

// confirmLocked trusts the renewals that the watch has shown.
func (a *Agent) confirmLocked() {
	me := &a.mu.me
	m := a.mu.world.members[me.identity]
	if m == nil {
		return
	}
	for len(a.mu.renewals) > 0 && a.mu.renewals[0].version <= m.version {
		r := a.mu.renewals[0]
		a.mu.renewals = a.mu.renewals[1:]
		if until := r.at.Add(a.trusted()); until.After(me.trust) {
			me.trust = until
			a.gate.Open(r.sent)
		}
	}
}

// observeEvent handles an event of the watch.
func (a *Agent) observeEvent(e kube.Event[*coordinationv1.Lease]) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.wake()
	if e.Type == kube.Deleted {
		a.removedLocked(e.Old)
		return
	}
	a.watchedLocked(see(e.New, time.Now()))
}

// watchedLocked records what the watch shows. Only that confirms renewals.
func (a *Agent) watchedLocked(s *seen) {
	delete(a.mu.refused, s.name())
	s.shown = true
	if s.version < a.mu.shown[s.name()] {
		a.startOverLocked()
	}
	a.mu.shown[s.name()] = s.version
	a.learnLocked(s)
	if s.name() == a.mu.me.identity {
		a.mu.world.members[s.name()] = s
		a.ownSeenLocked(s)
		a.compareLocked(s.version)
		a.confirmLocked()
	}
}

// startOverLocked forgets all, since the state of the server has gone back, as when a backup is restored.
func (a *Agent) startOverLocked() {
	a.rejoinLocked("the state of the server has gone back")
	a.mu.world = newWorld()
	a.mu.world.synced, a.mu.shown = true, map[string]kube.Version{}
	now := time.Now()
	for l := range a.leases.All() {
		s := see(l, now)
		s.shown = true
		a.learnLocked(s)
	}
}

// compareLocked records what the watch has shown up to a version, which handlers may be told later:
// what was deleted or edited by hand before a renewal is known when that is trusted.
func (a *Agent) compareLocked(upTo kube.Version) {
	now := time.Now()
	for l := range a.leases.All() {
		if l.Name != a.mu.me.identity {
			s := see(l, now)
			s.shown = true
			a.learnLocked(s)
		}
	}
	for _, s := range maps.Clone(a.mu.world.shards) {
		// One that cannot be decoded is there.
		if _, err := a.leases.Get(kube.KeyOf(s.lease)); apierrors.IsNotFound(err) && s.version <= upTo {
			a.removedLocked(s.lease)
		}
	}
}

// learnLocked records a state of a Lease, if it is newer than what is known.
func (a *Agent) learnLocked(s *seen) {
	w, me := &a.mu.world, &a.mu.me
	if s.shown {
		delete(w.deleted, s.name())
	} else if w.deleted[s.name()] == string(s.lease.UID) && s.lease.UID != "" {
		return // an answer that the watch has overtaken
	}
	delete(w.missing, s.name())
	shard, ok := shardOf(a.ID, s.name())
	if known := a.knownLocked(s.name()); s.version <= known {
		if now := w.shards[shard]; ok && s.version == known && s.shown {
			now.shown = true
		}
		return
	}
	switch {
	case ok:
		w.shards[shard] = s.after(w.shards[shard])
		a.shardSeenLocked(shard, s)
	case s.name() == a.ID:
		w.plan = s.after(w.plan)
		a.planSeenLocked()
		a.show(s.lease)
	case s.name() != me.identity: // the watch shows this process's own
		w.members[s.name()] = s.after(w.members[s.name()])
	}
}

// shardSeenLocked records who holds a shard now.
func (a *Agent) shardSeenLocked(shard int, s *seen) {
	me := &a.mu.me
	if shard >= len(me.shards) {
		return
	}
	if at := me.shards[shard]; at != elsewhere && s.holder() != me.identity {
		if at != releasing {
			textlog.Warn(a.log, nil, "A shard was taken away from this replica", "shard", shard, "holder", s.holder())
		}
		a.loseLocked(shard, "its Lease names another holder")
	}
}

// planSeenLocked gives all shards away if the plan is another one now: this process's shards overlap those
// of the new one.
func (a *Agent) planSeenLocked() {
	p := a.mu.world.plan.annotation(planAnnotation)
	if p == "" || p == a.plan().String() {
		return
	}
	for s, at := range a.mu.me.shards {
		if at != elsewhere && at != releasing {
			a.loseLocked(s, "the plan has changed to "+p)
			a.mu.me.shards[s] = emptied
		}
	}
}

// forgetLocked records that a Lease which the watch does not show is gone.
func (a *Agent) forgetLocked(name string) {
	if shard, ok := shardOf(a.ID, name); ok {
		delete(a.mu.world.shards, shard)
	} else if name == a.ID {
		a.mu.world.plan = nil
	}
}

// removedLocked records that a Lease was deleted.
func (a *Agent) removedLocked(l *coordinationv1.Lease) {
	w, me := &a.mu.world, &a.mu.me
	name := l.Name
	w.deleted[name] = string(l.UID)
	if m := w.members[name]; m != nil && m.lease.UID == l.UID {
		delete(w.members, name)
	}
	if name == me.identity && me.lease != nil && me.lease.lease.UID == l.UID {
		a.ownDeletedLocked()
	}
	if name == a.ID && w.plan != nil && w.plan.lease.UID == l.UID {
		w.plan = nil
	}
	shard, ok := shardOf(a.ID, name)
	if s := w.shards[shard]; !ok || s == nil || s.lease.UID != l.UID {
		return
	}
	delete(w.shards, shard)
	if shard < len(me.shards) && me.shards[shard] != elsewhere {
		textlog.Warn(a.log, nil, "The Lease of a shard was deleted", "shard", shard)
		a.loseLocked(shard, "its Lease was deleted")
	}
}

// record is what a process says about its writes when it gives a shard away.
type record struct {
	By          string                  `json:"by"`
	Transitions int32                   `json:"transitions"`
	Written     map[string]kube.Version `json:"written"`
}

// writtenOf returns the record of a shard that is given away; empty: nothing is known.
func (a *Agent) writtenOf(shard int, l *coordinationv1.Lease) string {
	const most = 16 << 10
	r := record{By: a.mu.me.identity, Transitions: ptr.Deref(l.Spec.LeaseTransitions, 0), Written: map[string]kube.Version{}}
	for kind, version := range a.Written(shard) {
		r.Written[kind.String()] = version
	}
	text, err := json.Marshal(r)
	if err != nil || len(text) > most {
		return ""
	}
	return string(text)
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
