// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package election

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// JitterFactor is up to how many retry periods more a standby waits for its next try.
const JitterFactor = 1.2

// candidate takes and renews the lease by the rules that all users of the Lease share: who
// is named in it leads; others take it once they have seen no change of it for as long as it
// says. Clocks of two machines are not compared.
type candidate struct {
	lease   *lease
	opts    Options
	changed func(leader string) // called when another process leads
	refused func(error)         // called with refusals, at a falling rate; nil: nobody asks

	observed coordinationv1.LeaseSpec
	since    time.Time // when this process saw it change
	leader   string    // passed to changed last

	reportAt  time.Time // when refused is called next
	reportGap time.Duration
}

// acquire tries until this process leads. It returns false if ctx ended before.
func (c *candidate) acquire(ctx context.Context) bool {
	for ctx.Err() == nil {
		if c.try(ctx) {
			return true
		}
		pause(ctx, c.opts.RetryPeriod+time.Duration(rand.Float64()*JitterFactor*float64(c.opts.RetryPeriod)))
	}
	return false
}

// renew keeps the lease. It returns when ctx has ended, or when no renewal has succeeded
// for the renew deadline.
func (c *candidate) renew(ctx context.Context) {
	for ctx.Err() == nil && c.renewed(ctx) {
		pause(ctx, c.opts.RetryPeriod)
	}
}

// renewed tries until a renewal succeeds, up to the renew deadline.
func (c *candidate) renewed(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, c.opts.RenewDeadline)
	defer cancel()
	for ctx.Err() == nil {
		if c.try(ctx) {
			return true
		}
		pause(ctx, c.opts.RetryPeriod)
	}
	return false
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// try takes or renews the lease once.
func (c *candidate) try(ctx context.Context) bool {
	err := c.attempt(ctx)
	if err != nil {
		logr.FromContextOrDiscard(ctx).Info("Cannot take or renew the lease", "reason", err.Error())
	}
	if ctx.Err() == nil {
		c.record(err, time.Now())
	}
	if leader := holderIn(c.observed); leader != c.leader {
		c.leader = leader
		c.changed(leader)
	}
	return err == nil && holderIn(c.observed) == c.lease.Identity()
}

// record records a refusal by the server, which no other try will change, and reports it: at
// once, then at intervals that double.
func (c *candidate) record(err error, now time.Time) {
	switch {
	case err != nil && !refused(err):
		return // the server may not have been reached, or is busy
	case err == nil || apierrors.IsConflict(err):
		c.lease.refuse(nil, now)
		c.reportAt, c.reportGap = time.Time{}, 0
		return
	}
	c.lease.refuse(err, now)
	if c.refused == nil || now.Before(c.reportAt) {
		return
	}
	c.reportGap = min(max(2*c.reportGap, time.Minute), time.Hour)
	c.reportAt = now.Add(c.reportGap)
	c.refused(err)
}

// refused reports whether err is an answer by which the server refuses the request or, as a
// conflict, has considered it.
func refused(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= 400 && code < 500 && code != http.StatusTooManyRequests && code != http.StatusRequestTimeout
}

// attempt sends the requests of one try. Without an error the lease is this process's, or
// another one's that has not expired.
func (c *candidate) attempt(ctx context.Context) error {
	now := time.Now()
	me := c.lease.Identity()
	if holderIn(c.observed) == me && c.valid(now) {
		// Nothing is known to have changed: the version decides whether that is so.
		if c.update(ctx, c.next(now, &c.observed)) == nil {
			return nil
		}
	}
	got, err := c.lease.get(ctx)
	if apierrors.IsNotFound(err) {
		next := c.next(now, nil)
		if err := c.lease.create(ctx, next); err != nil {
			return err
		}
		c.observe(next)
		return nil
	}
	if err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(*got, c.observed) {
		c.observe(*got)
	}
	if holder := holderIn(c.observed); holder != "" && holder != me && c.valid(now) {
		return nil
	}
	return c.update(ctx, c.next(now, &c.observed))
}

func (c *candidate) update(ctx context.Context, next coordinationv1.LeaseSpec) error {
	err := c.lease.update(ctx, next)
	if err == nil {
		c.observe(next)
	}
	return err
}

func (c *candidate) observe(spec coordinationv1.LeaseSpec) { c.observed, c.since = spec, time.Now() }

// valid reports whether the lease, as observed, has not expired.
func (c *candidate) valid(now time.Time) bool {
	seconds := int32(0)
	if c.observed.LeaseDurationSeconds != nil {
		seconds = *c.observed.LeaseDurationSeconds
	}
	return c.since.Add(time.Duration(seconds) * time.Second).After(now)
}

// next returns the lease of this process that follows another; nil: there is none.
func (c *candidate) next(now time.Time, before *coordinationv1.LeaseSpec) coordinationv1.LeaseSpec {
	me, at := c.lease.Identity(), metav1.NewMicroTime(now)
	next := coordinationv1.LeaseSpec{
		HolderIdentity: &me, LeaseDurationSeconds: new(int32(c.opts.LeaseDuration / time.Second)), AcquireTime: &at, RenewTime: &at,
		LeaseTransitions: new(int32(0)),
	}
	switch {
	case before == nil:
	case holderIn(*before) == me:
		next.AcquireTime, next.LeaseTransitions = before.AcquireTime, before.LeaseTransitions
	case before.LeaseTransitions == nil:
		next.LeaseTransitions = new(int32(1))
	default:
		next.LeaseTransitions = new(*before.LeaseTransitions + 1)
	}
	return next
}

func holderIn(spec coordinationv1.LeaseSpec) string {
	if spec.HolderIdentity == nil {
		return ""
	}
	return *spec.HolderIdentity
}
