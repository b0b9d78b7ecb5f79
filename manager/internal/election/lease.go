// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package election

import (
	"context"
	"encoding/json"
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
	leases "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/flyball-dev/flyball/informer"
)

// releaseTime is how long giving the lease back may take. After that it expires.
const releaseTime = 5 * time.Second

// errWoken ends a round of the election, so that the next one asks at once.
var errWoken = errors.New("the lease may be free")

// lease is what the elector of client-go reads and writes the Lease through. It
// opens and shuts the gate, and knows what a watch of the Lease says of it.
type lease struct {
	client    leases.LeaseInterface
	reconnect func() // has the next request make a connection of its own
	key       informer.Key
	gate      *gate
	tries     atomic.Uint64 // requests that were begun or have ended
	mu        struct {
		sync.Mutex
		identity string                  // empty: the elector does not run yet
		base     *coordinationv1.Lease   // what the elector has last read or written
		seen     *coordinationv1.Lease   // the newest that anybody has
		version  informer.Version        // of seen
		deleted  types.UID               // of the last that was deleted; empty: none
		held     bool                    // by this process, as far as it knows
		claiming bool                    // a write that takes it is under way
		claimed  bool                    // such a write was ever sent
		end      context.CancelCauseFunc // of the round
	}
}

var _ resourcelock.Interface = (*lease)(nil)

// Describe implements resourcelock.Interface.
func (l *lease) Describe() string { return l.key.String() }

// Identity implements resourcelock.Interface.
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

// RecordEvent implements resourcelock.Interface.
func (l *lease) RecordEvent(string) {}

// begin notes how the round that begins can be ended.
func (l *lease) begin(end context.CancelCauseFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.end = end
}

// Get implements resourcelock.Interface. A Lease that was deleted while another
// held it counts as one that is no longer renewed: who held it may still write.
func (l *lease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.tries.Add(1)
	got, err := l.client.Get(ctx, l.key.Name, metav1.GetOptions{})
	l.tries.Add(1)
	switch {
	case apierrors.IsNotFound(err):
		if got = l.missing(); got == nil {
			return nil, nil, err
		}
	case err != nil:
		return nil, nil, l.unheard(err)
	default:
		l.learn(got, true)
	}
	record := resourcelock.LeaseSpecToLeaderElectionRecord(&got.Spec)
	raw, err := json.Marshal(*record)
	return record, raw, err
}

// missing is what another held when the Lease disappeared; nil: nobody did.
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

// learn takes in what the server says. own: the elector has asked for it. A lease
// that was held and has another's name in it, or nobody's, is lost.
func (l *lease) learn(got *coordinationv1.Lease, own bool) {
	version := informer.ParseVersion(got.ResourceVersion)
	holder := holderOf(got)
	l.mu.Lock()
	defer l.mu.Unlock()
	if own {
		l.mu.base = got
	}
	if !own && version <= l.mu.version {
		return // late news: what was asked for or written since is newer
	}
	l.mu.seen, l.mu.version = got, version
	switch {
	case holder == l.mu.identity:
	case l.mu.held:
		why := fmt.Sprintf("%q has taken the lease", holder)
		if holder == "" {
			why = "somebody has cleared the lease"
		}
		l.mu.held = false
		l.gate.shut(why)
		l.mu.end(errors.New(why))
	case holder == "" && !own:
		l.wakeLocked()
	}
}

// gone takes in that a Lease has been deleted; nil: nothing more is known of it. If
// another has been made since, that is late news.
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
		l.gate.shut("the lease was deleted, and has not been renewed since")
	case holderOf(l.mu.seen) == "":
		l.wakeLocked()
	}
}

// wake has the elector look at once, unless it is past looking.
func (l *lease) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wakeLocked()
}

// wakeLocked is wake.
func (l *lease) wakeLocked() {
	if !l.mu.held && !l.mu.claiming && l.mu.end != nil {
		l.mu.end(errWoken)
	}
}

// Create implements resourcelock.Interface.
func (l *lease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.claim(ctx, func() (*coordinationv1.Lease, error) {
		return l.client.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: l.key.Namespace, Name: l.key.Name},
			Spec:       resourcelock.LeaderElectionRecordToLeaseSpec(&record),
		}, metav1.CreateOptions{})
	})
}

// Update implements resourcelock.Interface. It writes only over what Get or the
// last write has returned.
func (l *lease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	base := l.mu.base
	l.mu.Unlock()
	if base == nil {
		return l.Create(ctx, record)
	}
	next := base.DeepCopy()
	next.Spec = resourcelock.LeaderElectionRecordToLeaseSpec(&record)
	return l.claim(ctx, func() (*coordinationv1.Lease, error) {
		return l.client.Update(ctx, next, metav1.UpdateOptions{})
	})
}

// claim writes this process's name into the Lease. The gate counts from before the
// request was sent.
func (l *lease) claim(ctx context.Context, write func() (*coordinationv1.Lease, error)) error {
	if err := l.beginClaim(ctx); err != nil {
		return err
	}
	sent := l.gate.now()
	l.tries.Add(1)
	got, err := write()
	l.tries.Add(1)
	if err != nil {
		err = l.unheard(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.claiming = false
	if err != nil {
		return err
	}
	version := informer.ParseVersion(got.ResourceVersion)
	if holder := holderOf(l.mu.seen); version < l.mu.version && holder != l.mu.identity {
		return fmt.Errorf("%q has the lease since", holder) // the watch was faster than the answer
	}
	if got.UID != "" && got.UID == l.mu.deleted {
		return errors.New("the lease has been deleted since") // so it was here
	}
	l.mu.base, l.mu.seen, l.mu.version = got, got, version
	l.mu.held = true
	l.gate.open(sent)
	return nil
}

// unheard is err, after which another connection is made unless the server itself has
// said it.
func (l *lease) unheard(err error) error {
	if status := apierrors.APIStatus(nil); !errors.As(err, &status) {
		l.reconnect()
	}
	return err
}

// beginClaim refuses once the round has been ended, so that a round which was woken
// has not taken the lease.
func (l *lease) beginClaim(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.claiming, l.mu.claimed = true, true
	return nil
}

// drop notes that the lease is not held any more. It reports whether it may have
// this process's name in it.
func (l *lease) drop(why string) (claimed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.held = false
	l.gate.shut(why)
	return l.mu.claimed
}

// release gives the lease back, so that another can take it at once.
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
	got, err := l.client.Get(ctx, l.key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && holderOf(got) != l.Identity() {
		return nil
	}
	if err != nil {
		return err
	}
	now := metav1.Now()
	record := resourcelock.LeaseSpecToLeaderElectionRecord(&got.Spec)
	record.HolderIdentity, record.LeaseDurationSeconds = "", 1
	record.AcquireTime, record.RenewTime = now, now
	next := got.DeepCopy()
	next.Spec = resourcelock.LeaderElectionRecordToLeaseSpec(record)
	_, err = l.client.Update(ctx, next, metav1.UpdateOptions{})
	return err
}

// state says where this process stands.
func (l *lease) state() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return State{
		Lease: l.key.String(), Identity: l.mu.identity, Leading: l.mu.held, Holder: holderOf(l.mu.seen),
	}
}
