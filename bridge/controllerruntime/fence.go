// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/flyball-dev/flyball/internal/writegate"
)

// The times of controller-runtime's leader election.
const (
	defaultLeaseDuration = 15 * time.Second
	defaultRenewDeadline = 10 * time.Second
)

// Fence returns a configuration whose writes are refused unless this process holds the lease of the leader election that opts
// describes, and options with the lock of that election. Both are for ctrl.NewManager:
//
//	fenced, opts, err := bridge.Fence(cfg, bridge.Options(ctrl.Options{LeaderElection: true, LeaderElectionID: "website"}))
//	mgr, err := ctrl.NewManager(fenced, opts)
//
// controller-runtime stops a leader that cannot renew its lease, but a write that is under way, or that a paused process resumes,
// still reaches the server after another has taken over. Here each renewal allows writes for nine tenths of
// LeaseDuration, counted from before it was sent, by the wall clock and the monotonic one. A write
// outside that time is not sent, and its error wraps reconcile.ErrNotLeading of flyball. One under way is cut off; its error says
// that the outcome is unknown. Reads always pass. With LeaderElectionReleaseOnCancel, the lease is released after the
// last write in flight, and kept until it expires if the outcome of one is unknown.
//
// The fence covers each client that is made from the returned configuration or from mgr.GetConfig(), including copies. A client
// whose configuration has lost the fence, by a replaced WrapTransport or rest.AnonymousClientConfig, gets no
// connection. What may write on every replica takes a client of cfg itself: runnables without leader election, and webhooks.
// The manager's Events are writes too, so those of a standby get lost, as does the Event of the election itself.
// Metrics.FilterProvider is given cfg, so that metrics are served on standbys.
//
// It cannot promise these:
//
//   - A write that has left the process in time may be carried out late by the server or a proxy.
//   - A lease that another process takes before it has expired, or that is deleted, is noticed by the next renewal (RetryPeriod).
//   - Upgraded connections, such as exec, are checked when they begin, not while they last.
//   - Clients of other configurations, such as cfg, and of other clusters pass no fence.
//
// The lock's requests are those of LeaderElection(cfg), unless opts.LeaderElectionConfig is set.
//
// Without opts.LeaderElection there is no fence: Fence returns its arguments. It changes neither cfg nor what opts points to, does not
// block, and sends nothing. It returns an error if the lock cannot be made.
func Fence(cfg *rest.Config, opts ctrl.Options) (*rest.Config, ctrl.Options, error) {
	if !opts.LeaderElection {
		return cfg, opts, nil
	}
	if cfg == nil {
		return nil, opts, errors.New("fence the leader's writes: the REST configuration is nil")
	}
	span := ptr.Deref(opts.LeaseDuration, defaultLeaseDuration)
	inner, err := lockOf(cfg, opts)
	if err != nil {
		return nil, opts, fmt.Errorf("fence the leader's writes: make the lock: %w", err)
	}
	gate := writegate.New(span * 9 / 10)
	opts.LeaderElectionResourceLockInterface = &lock{Interface: inner, gate: gate, lease: span}
	return gate.Given(cfg), behind(gate.Wrap, cfg, opts), nil
}

// LeaderElection returns a copy of cfg for ctrl.Options.LeaderElectionConfig:
//
//	opts := ctrl.Options{LeaderElection: true, LeaderElectionID: "website", LeaderElectionConfig: bridge.LeaderElection(cfg)}
//	mgr, err := ctrl.NewManager(cfg, bridge.Options(opts))
//
// Without it, a renewal of the lease waits for cfg.RateLimiter behind the requests of controllers,
// and shares their HTTP/2 connection, and may so come too late. The copy has no rate limit and
// connections of its own, by HTTP/1.1 unless cfg has NextProtos: one that hangs is closed with the
// request that hangs on it. A cfg.Transport stays as it is, with its connections. With a
// LeaderElectionConfig, controller-runtime leaves the goroutines of the election's Events behind
// when the manager ends. A nil cfg gives nil.
func LeaderElection(cfg *rest.Config) *rest.Config {
	if cfg == nil {
		return nil
	}
	own := rest.CopyConfig(cfg)
	own.RateLimiter, own.QPS = nil, -1
	if own.Transport != nil {
		return own
	}
	if own.Dial == nil {
		own.Dial = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	}
	if len(own.NextProtos) == 0 {
		own.NextProtos = []string{"http/1.1"}
	}
	return own
}

// lockOf returns the lock of the options, as controller-runtime makes it.
func lockOf(cfg *rest.Config, opts ctrl.Options) (resourcelock.Interface, error) {
	if opts.LeaderElectionResourceLockInterface != nil {
		return opts.LeaderElectionResourceLockInterface, nil
	}
	cfg = cmp.Or(opts.LeaderElectionConfig, LeaderElection(cfg))
	return leaderelection.NewResourceLock(cfg, silent{}, leaderelection.Options{
		LeaderElection:             true,
		LeaderElectionResourceLock: opts.LeaderElectionResourceLock,
		LeaderElectionNamespace:    opts.LeaderElectionNamespace,
		LeaderElectionID:           opts.LeaderElectionID,
		RenewDeadline:              ptr.Deref(opts.RenewDeadline, defaultRenewDeadline),
		LeaderLabels:               opts.LeaderElectionLabels,
	})
}

// silent provides no recorder: that of the manager does not exist yet.
type silent struct{ recorder.Provider }

// GetEventRecorderFor implements recorder.Provider.
func (silent) GetEventRecorderFor(string) record.EventRecorder { return nil }

// lock opens and shuts the gate by what client-go's elector does with a lock. The elector calls it from one goroutine.
type lock struct {
	resourcelock.Interface
	gate  *writegate.Gate
	lease time.Duration
}

// Get implements resourcelock.Interface. Another holder, or none, shuts the gate.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	found, raw, err := l.Interface.Get(ctx)
	if err == nil && found.HolderIdentity != l.Identity() {
		l.gate.Shut(fmt.Sprintf("the holder of the lease is %q", found.HolderIdentity))
	}
	return found, raw, err
}

// Create implements resourcelock.Interface.
func (l *lock) Create(ctx context.Context, next resourcelock.LeaderElectionRecord) error {
	return l.claim(func() error { return l.Interface.Create(ctx, next) })
}

// Update implements resourcelock.Interface. Without a holder it is a release, which comes after the last write.
func (l *lock) Update(ctx context.Context, next resourcelock.LeaderElectionRecord) error {
	if next.HolderIdentity == l.Identity() {
		return l.claim(func() error { return l.Interface.Update(ctx, next) })
	}
	l.gate.Shut("this process has stopped leading")
	if !l.gate.Drain(l.lease) {
		return errors.New("the lease is kept until it expires, because a write was cut off shortly before and may still arrive")
	}
	return l.Interface.Update(ctx, next)
}

// claim writes this process's identity. The gate counts from before the request is sent.
func (l *lock) claim(write func() error) error {
	sent := l.gate.Now()
	if err := write(); err != nil {
		return err
	}
	l.gate.Open(sent)
	return nil
}
