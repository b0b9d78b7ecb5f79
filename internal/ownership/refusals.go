// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/internal/simhook"
)

// longestPause is how long a request that the server refuses is not repeated, at most.
const longestPause = time.Minute

// attempt is what a request tries: a verb of the API, on the Lease of a name.
type attempt struct{ name, verb string }

// ownLease is the name of this process's Lease in an attempt: it has another one whenever it joins again.
const ownLease = ""

// refusals are the requests that have failed, and were not repeated with success.
type refusals struct {
	paused    map[attempt]pause
	forbidden map[string]refusal // by verb
}

// pause is until when a request is not repeated.
type pause struct {
	until     time.Time
	lasts     time.Duration
	forbidden bool
}

// refusal is that the server forbids a verb.
type refusal struct {
	err         error
	since, last time.Time
}

func newRefusals() refusals {
	return refusals{paused: map[attempt]pause{}, forbidden: map[string]refusal{}}
}

// attemptOf returns what the request of an action tries.
func attemptOf(do action) attempt {
	verb := "update"
	switch {
	case do.do == quit || do.do == collect:
		verb = "delete"
	case do.base == nil:
		verb = "create"
	}
	if do.do == join || do.do == renew {
		return attempt{ownLease, verb}
	}
	return attempt{do.name, verb}
}

// pausedUntil returns when an action may be tried again.
func (r *refusals) pausedUntil(do action) time.Time {
	switch at := r.paused[attemptOf(do)].until; do.do {
	case renew, rejoin, adopt, empty: // trust ends the tries of a renewal; the others are no requests
		return time.Time{}
	case join: // what it cannot renew it would lose
		if update := r.paused[attempt{ownLease, "update"}].until; update.After(at) {
			return update
		}
		return at
	default:
		return at
	}
}

// succeeded records that the server has done what was asked.
func (r *refusals) succeeded(at attempt) {
	delete(r.paused, at)
	delete(r.forbidden, at.verb)
}

// changed records that a Lease has another state: what was forbidden before still is.
func (r *refusals) changed(name string) {
	maps.DeleteFunc(r.paused, func(at attempt, p pause) bool { return at.name == name && !p.forbidden })
}

// failed records that a request has failed, and returns for how long it is not repeated. What the server
// refuses is repeated ever more rarely.
func (b *book) failed(at attempt, err error, now time.Time) time.Duration {
	r := &b.refusals
	p := pause{lasts: b.RetryPeriod, forbidden: apierrors.IsForbidden(err)}
	if before := r.paused[at].lasts; before > 0 && (p.forbidden || isConflict(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)) {
		p.lasts = max(min(2*before, longestPause), b.RetryPeriod)
	}
	again := p.lasts
	if b.sim != nil {
		again = again/2 + simhook.Duration(b.sim, "shards retry", again)
	}
	p.until = now.Add(again)
	maps.DeleteFunc(r.paused, func(_ attempt, old pause) bool { return now.Sub(old.until) >= 2*longestPause })
	r.paused[at] = p
	if p.forbidden {
		f, known := r.forbidden[at.verb]
		if !known || now.Sub(f.last) >= troubleAfter {
			f.since = now
		}
		f.err, f.last = err, now
		r.forbidden[at.verb] = f
	}
	return again
}

// trouble returns what the server forbids for long. What is not tried any more, because another replica
// did it, is not meant.
func (r *refusals) trouble(now time.Time) error {
	for _, verb := range slices.Sorted(maps.Keys(r.forbidden)) {
		if f := r.forbidden[verb]; now.Sub(f.since) >= troubleAfter && now.Sub(f.last) < troubleAfter {
			return fmt.Errorf("the server forbids this replica to %s Leases of shards since %s: %w", verb, f.since.Format(time.RFC3339), f.err)
		}
	}
	return nil
}
