// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"context"
	"path"
	"runtime/debug"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/kube"
)

// States of a member, in its Lease.
const (
	stateActive  = "active"
	stateWaiting = "waiting" // it takes no shards
	stateLeaving = "leaving"
)

// Options of an Agent. All fields but Address and Pod are set and valid.
type Options struct {
	// ID is the name of the operator, of its Leases and of the plan's Lease, all in Namespace.
	ID, Namespace string
	// Identity of this process, to which a random suffix is added. Empty: the host name.
	Identity string
	// Program tells apart two operators that have the same ID by mistake.
	Program string
	// By is what the objects are divided by, into Count shards.
	By    shards.By
	Count int
	// Weight of this process: one with a weight of 2 takes twice as many shards as one with 1.
	Weight int
	// Address at which other processes reach the console of this one. Empty: none.
	Address string
	// Pod is the name of this process's Pod. Empty: it is in none.
	Pod string
	// LeaseDuration is how long a Lease of a member must stay unchanged before another ends it.
	// RetryPeriod is the pause after a failed renewal.
	LeaseDuration, RetryPeriod time.Duration
	// Informers hold the objects of the shards.
	Informers Informers
	// Sign completes the Lease of the plan before it is written, and Shown is called with each state of
	// it, in any order. Nil: nothing to do.
	Sign, Shown func(plan *coordinationv1.Lease)
	// Written returns what this process has written to objects while it worked on a shard, and its
	// predecessors before: the newest version by kind. Nil: not known.
	Written func(shard int) map[schema.GroupKind]kube.Version
	// CatchUp blocks until the informers have what the previous owners of shards wrote, or ctx ends.
	CatchUp func(ctx context.Context, taken []Taken) error
}

// Informers are told which shards this process needs. *informer.SharedInformerFactory can.
type Informers interface {
	// HoldShards makes the informers hold the objects of these shards alone.
	HoldShards(some ...int) error
	// AwaitShards blocks until they have listed those of some shards, or until ctx ends.
	AwaitShards(ctx context.Context, some ...int) error
}

// Taken is a shard that this process has taken.
type Taken struct {
	Shard    int
	Previous string // identity of the owner before; empty: nobody owned it
	// Released: the previous owner has given it away, and Written is all that it, and those before
	// it, wrote. A kind that is not in it is not known.
	Released bool
	Written  map[schema.GroupKind]kube.Version
}

// Program returns the name of this program, which all its versions have.
func Program() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Path != "" {
		return path.Clean(info.Path)
	}
	return "unknown"
}

func (o *Options) plan() plan { return plan{o.By, o.Count} }

// trusted returns how long after a renewal was sent this process trusts its Lease. The rest allows for
// requests on their way, and for clock drift.
func (o *Options) trusted() time.Duration {
	return o.LeaseDuration * TrustNumerator / TrustDenominator
}

// renewEvery returns the time between renewals: all members together write at most as often in a lease
// duration as there are members and an eighth of the shards, if there are at least four shards for
// each member. It is at most two thirds of the lease duration, and at least a fifth.
func (o *Options) renewEvery(members int) time.Duration {
	part := 8 * float64(members) / (8*float64(members) + float64(o.Count))
	return time.Duration(min(max(part, 0.2), 2./3) * float64(o.LeaseDuration))
}

// renewalTime bounds a renewal that is sent when so much of the trust is left. One that hangs leaves as
// much time for another. took is how long the last one took that was answered: a slow
// server is not cut off.
func (o *Options) renewalTime(left, took time.Duration) time.Duration {
	most := max(o.LeaseDuration/5, time.Second)
	return min(max(left*9/20, 2*took, time.Second), most)
}

// renewAgain returns the pause after a renewal that has failed, when so much of the trust is left. pause is
// what it is without trust.
func (o *Options) renewAgain(left, pause time.Duration, answered bool) time.Duration {
	part := left / 8
	switch {
	case left <= 0:
		return pause
	case answered: // it may fail again
		part = left / 2
	}
	return min(pause, o.RetryPeriod, max(part, o.RetryPeriod/8))
}
