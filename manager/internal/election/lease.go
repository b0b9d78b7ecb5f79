// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package election

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/flyball-dev/flyball/internal/writegate"
	"github.com/flyball-dev/flyball/kube"
)

// releaseTime bounds the release of the lease. If it fails, the lease expires.
const releaseTime = 5 * time.Second

// errWoken ends a round of the election, so that the next one begins at once.
var errWoken = errors.New("the lease may be free")

// LeaseWrite is why a Lease is written.
type LeaseWrite uint8

const (
	Claim   LeaseWrite = iota + 1 // to become the leader
	Renewal                       // to stay it
	Release                       // after the last guarded write
)

// lease is the Lease that a candidate competes for. It opens and shuts the gate, and
// tracks what a watch of the Lease shows.
type lease struct {
	client    requests
	reconnect func() // makes the next request use a new connection
	key       kube.Key
	gate      *writegate.Gate
	sign      func(l *coordinationv1.Lease, holder string, what LeaseWrite) // completes a Lease before it is written; nil: nothing to do
	shown     func(l *coordinationv1.Lease)                                 // see Options
	tries     atomic.Uint64                                                 // requests begun or ended
	mu        struct {
		sync.Mutex
		identity string                  // empty: the elector does not run yet
		base     *coordinationv1.Lease   // last read or written by the elector
		seen     *coordinationv1.Lease   // the newest known
		version  kube.Version            // of seen
		deleted  types.UID               // the last deleted one; empty: none
		held     bool                    // by this process, as far as it knows
		claiming bool                    // a write that takes it is in flight
		claimed  bool                    // such a write was sent at some time
		won      bool                    // such a write was carried out
		was      *coordinationv1.Lease   // what the first of them replaced; nil: nothing
		end      context.CancelCauseFunc // ends the round
		refusal  error                   // of the last try; nil: none
		refused  time.Time               // since when all tries were refused
	}
}

// refuse records the refusal of a try; nil: it was not refused.
func (l *lease) refuse(err error, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil {
		l.mu.refused = time.Time{}
	} else if l.mu.refusal == nil {
		l.mu.refused = now
	}
	l.mu.refusal = err
}

// Identity returns the name of this process in the Lease.
func (l *lease) Identity() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.identity
}

func (l *lease) setIdentity(identity string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.identity = identity
}

// begin records how to end the round that begins.
func (l *lease) begin(end context.CancelCauseFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.end = end
}

// get reads the Lease. One that was deleted while another process held it counts as one
// that is no longer renewed: the holder may still write.
func (l *lease) get(ctx context.Context) (*coordinationv1.LeaseSpec, error) {
	l.tries.Add(1)
	got, err := l.client.get(ctx)
	l.tries.Add(1)
	switch {
	case apierrors.IsNotFound(err):
		if got = l.missing(); got == nil {
			return nil, err
		}
	case err != nil:
		return nil, l.reconnectUnlessAnswered(err)
	default:
		l.learn(got, true)
	}
	return got.Spec.DeepCopy(), nil
}

// missing returns the Lease that another process held when it was deleted; nil: none.
func (l *lease) missing() *coordinationv1.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.base = nil
	if holder := holderOf(l.mu.seen); holder == "" || holder == l.mu.identity {
		return nil
	}
	return l.mu.seen
}

func holderOf(got *coordinationv1.Lease) string {
	if got == nil || got.Spec.HolderIdentity == nil {
		return ""
	}
	return *got.Spec.HolderIdentity
}

// learn records a Lease from the server; own means that the elector requested it. A
// held lease with another identity, or none, is lost.
func (l *lease) learn(got *coordinationv1.Lease, own bool) {
	l.show(got)
	version := kube.ParseVersion(got.ResourceVersion)
	holder := holderOf(got)
	l.mu.Lock()
	defer l.mu.Unlock()
	if own {
		l.mu.base = got
	}
	if !own && version <= l.mu.version {
		return // outdated: what was read or written since is newer
	}
	l.mu.seen, l.mu.version = got, version
	switch {
	case holder == l.mu.identity:
	case l.mu.held:
		why := fmt.Sprintf("%q has taken the lease", holder)
		if holder == "" {
			why = "the lease was cleared"
		}
		l.mu.held = false
		l.gate.Shut(why)
		l.mu.end(errors.New(why))
	case holder == "" && !own:
		l.wakeLocked()
	}
}

// gone records the deletion of a Lease; nil: nothing more is known about it. If another
// was created since, the event is outdated.
func (l *lease) gone(was *coordinationv1.Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if was != nil {
		l.mu.deleted = was.UID
		if l.mu.seen != nil && l.mu.seen.UID != was.UID {
			return
		}
	}
	switch {
	case l.mu.held:
		l.gate.Shut("the lease was deleted, and has not been renewed since")
	case holderOf(l.mu.seen) == "":
		l.wakeLocked()
	}
}

// wake makes the elector retry at once, if it still can.
func (l *lease) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wakeLocked()
}

func (l *lease) wakeLocked() {
	if !l.mu.held && !l.mu.claiming && l.mu.end != nil {
		l.mu.end(errWoken)
	}
}

// create makes the Lease.
func (l *lease) create(ctx context.Context, spec coordinationv1.LeaseSpec) error {
	next := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: l.key.Namespace, Name: l.key.Name},
		Spec:       spec,
	}
	l.signed(next)
	return l.claim(ctx, nil, func() (*coordinationv1.Lease, error) {
		return l.client.create(ctx, next)
	})
}

// signed completes a Lease that names this process.
func (l *lease) signed(next *coordinationv1.Lease) {
	l.mu.Lock()
	what := Renewal
	if !l.mu.held {
		what = Claim
	}
	l.mu.Unlock()
	if l.sign != nil {
		l.sign(next, holderOf(next), what)
	}
}

// update overwrites the version that get or the last write returned, and no other.
func (l *lease) update(ctx context.Context, spec coordinationv1.LeaseSpec) error {
	l.mu.Lock()
	base := l.mu.base
	l.mu.Unlock()
	if base == nil {
		return l.create(ctx, spec)
	}
	next := base.DeepCopy()
	next.Spec = spec
	l.signed(next)
	return l.claim(ctx, base, func() (*coordinationv1.Lease, error) {
		return l.client.update(ctx, next)
	})
}

// claim writes this process's identity into the Lease, in place of base. The gate counts
// from before the request was sent.
func (l *lease) claim(ctx context.Context, base *coordinationv1.Lease, write func() (*coordinationv1.Lease, error)) error {
	if err := l.beginClaim(ctx); err != nil {
		return err
	}
	sent := l.gate.Now()
	l.tries.Add(1)
	got, err := write()
	l.tries.Add(1)
	if err != nil {
		err = l.reconnectUnlessAnswered(err)
	} else {
		l.show(got)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.claiming = false
	if err != nil {
		return err
	}
	version := kube.ParseVersion(got.ResourceVersion)
	if holder := holderOf(l.mu.seen); version < l.mu.version && holder != l.mu.identity {
		return fmt.Errorf("%q has the lease since", holder) // the watch was faster than the answer
	}
	if got.UID != "" && got.UID == l.mu.deleted {
		return errors.New("the lease has been deleted since") // the watch has shown that
	}
	l.mu.base, l.mu.seen, l.mu.version = got, got, version
	if !l.mu.won {
		l.mu.won, l.mu.was = true, base
	}
	l.mu.held = true
	l.gate.Open(sent)
	return nil
}

// reconnectUnlessAnswered returns err, and forces a new connection unless err is an
// answer of the server.
func (l *lease) reconnectUnlessAnswered(err error) error {
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) {
		l.reconnect()
	}
	return err
}

// beginClaim returns an error once the round has ended, so that a woken round does not
// take the lease.
func (l *lease) beginClaim(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.claiming, l.mu.claimed = true, true
	return nil
}

// drop records that the lease is no longer held. It reports whether it may still have
// this process's identity.
func (l *lease) drop(why string) (claimed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.held = false
	l.gate.Shut(why)
	return l.mu.claimed
}

// release releases the lease, so that another process can take it at once.
func (l *lease) release(ctx context.Context) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, time.Second, releaseTime, true, func(ctx context.Context) (bool, error) {
		last = l.tryRelease(ctx)
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

func (l *lease) tryRelease(ctx context.Context) error {
	got, err := l.client.get(ctx)
	if apierrors.IsNotFound(err) || err == nil && holderOf(got) != l.Identity() {
		return nil
	}
	if err != nil {
		return err
	}
	next, now := got.DeepCopy(), metav1.NowMicro()
	next.Spec.HolderIdentity, next.Spec.LeaseDurationSeconds = new(""), new(int32(1))
	next.Spec.AcquireTime, next.Spec.RenewTime = &now, &now
	if l.sign != nil {
		l.sign(next, l.Identity(), Release)
	}
	_, err = l.client.update(ctx, next)
	return err
}

// predecessor returns the Lease that this process took over; nil: none.
func (l *lease) predecessor() *coordinationv1.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.was
}

// state returns the election as this process sees it.
func (l *lease) state() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := State{
		Lease: l.key.String(), Identity: l.mu.identity, Leading: l.mu.held, Holder: holderOf(l.mu.seen),
		Refused: l.mu.refusal, RefusedSince: l.mu.refused,
	}
	if s.Holder != "" && l.mu.seen.Spec.AcquireTime != nil {
		s.Since = l.mu.seen.Spec.AcquireTime.Time
	}
	return s
}
