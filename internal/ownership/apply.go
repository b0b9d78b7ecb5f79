// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"context"
	"errors"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
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

// applyLocked records how the request of an action ended.
func (a *Agent) applyLocked(ctx context.Context, do action, got *coordinationv1.Lease, err error, sent renewal) {
	now := time.Now()
	me := &a.mu.me
	if err != nil {
		a.failedLocked(do, err, now)
		return
	}
	a.mu.succeeded(attemptOf(do))
	if do.do == quit {
		me.lease = nil
		a.gate.Shut("this process has left")
		return
	}
	if do.do == collect {
		return
	}
	s := see(got, now)
	a.mu.learn(s)
	switch do.do {
	case join, renew:
		me.lease, me.version = s, s.version
		me.renewAt, me.took = sent.at.Add(a.renewEvery(a.mu.living())), now.Sub(sent.at)
		if s.annotation(stateAnnotation) != a.mu.memberAnnotations()[stateAnnotation] {
			me.renewAt = now // the state has changed since the request was made
		}
		sent.version = s.version
		a.mu.renewals = append(a.mu.renewals, sent)
		a.mu.confirm()
		a.followLocked(ctx, s.version)
		if do.do == join {
			a.mu.onceJoined()
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

// followLocked makes the watch show a renewal. One that is silent is replaced by a list after two seconds.
func (a *Agent) followLocked(ctx context.Context, version kube.Version) {
	if a.mu.following {
		return
	}
	a.mu.following = true
	a.work.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, a.LeaseDuration/2)
		defer cancel()
		a.watched.CatchUp(ctx, func(schema.GroupKind) informer.Floor { return informer.Floor{Version: version} })
		a.mu.Lock()
		defer a.unlock()
		a.mu.following = false
	})
}

// failedLocked records that the request of an action failed.
func (a *Agent) failedLocked(do action, err error, now time.Time) {
	me := &a.mu.me
	log := a.log.V(1)
	if apierrors.IsForbidden(err) {
		log = a.log
	}
	log.Info("Cannot write a Lease", "lease", do.name, "to", string(do.do), "reason", err.Error())
	again := a.RetryPeriod
	if overtaken := isConflict(err) && a.mu.known(do.name) > versionOf(do.base); !overtaken {
		again = a.mu.failed(attemptOf(do), err, now)
	}
	if do.do == renew {
		again = a.renewAgain(me.trust.Sub(now), again, isAnswer(err))
	}
	// The watch does not show a Lease without the label, such as that of a leader, or one whose label was
	// removed.
	unseen := a.mu.known(do.name) == versionOf(do.base) && (do.base == nil || !do.base.shown)
	if isConflict(err) && unseen && do.do != join && do.do != renew {
		a.readLocked(do.name, a.mu.learn, func() { a.mu.forget(do.name) })
		return
	}
	switch do.do {
	case join, renew:
		me.renewAt = now.Add(again)
		switch {
		case apierrors.IsNotFound(err):
			a.mu.ownDeleted()
		case isConflict(err):
			a.readLocked(me.identity, a.mu.ownSeen, a.mu.ownDeleted)
		}
	case quit:
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			me.lease = nil // somebody has ended or deleted it
		}
	}
}

// readLocked reads a Lease that another client has written, and that the watch does not show, or not yet.
func (a *Agent) readLocked(name string, found func(*seen), gone func()) {
	identity, reads := a.mu.me.identity, attempt{name, "get"}
	if time.Now().Before(a.mu.paused[reads].until) {
		return
	}
	a.mu.me.busy[name] = true
	a.work.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), a.LeaseDuration)
		defer cancel()
		got, err := a.sender.get(ctx, name)
		a.mu.Lock()
		defer a.unlock()
		defer a.wake()
		a.mu.requests["get"]++
		if err == nil || apierrors.IsNotFound(err) {
			a.mu.succeeded(reads)
			a.mu.changed(name)
		} else {
			a.mu.failed(reads, err, time.Now())
		}
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

// observeEvent handles an event of the watch.
func (a *Agent) observeEvent(e kube.Event[*coordinationv1.Lease]) {
	a.mu.Lock()
	defer a.unlock()
	defer a.wake()
	if e.Type == kube.Deleted {
		a.mu.removed(e.Old)
		return
	}
	a.mu.watched(see(e.New, time.Now()))
}
