// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import "time"

// backoff is a delay that doubles from base up to most with each attempt.
type backoff struct {
	base, most time.Duration
}

var (
	// retryBackoff is for a server that cannot be reached or answers with errors.
	retryBackoff = backoff{base: 800 * time.Millisecond, most: 30 * time.Second}
	// slowBackoff is for answers that only a person changes: no right, no such
	// kind. It begins fast, since a kind is often installed with its controller.
	slowBackoff = backoff{base: time.Second, most: 60 * time.Second}
	// awayBackoff is for a server that gives no answer at all, whose pauses go by
	// the time that it has been away. Such a try costs the server nothing.
	awayBackoff = backoff{base: 400 * time.Millisecond, most: 30 * time.Second}
	// anewBackoff is for a list after a watch that cannot go on where it was.
	anewBackoff = backoff{base: 400 * time.Millisecond, most: 30 * time.Second}
	// RefusalBackoff is for a transform that has refused an object. A try costs this
	// process alone.
	RefusalBackoff = backoff{base: time.Second, most: 5 * time.Minute}
)

// longestPause is a time that bounds no pause.
const longestPause = time.Hour

// awayShare of an outage is what a pause in it takes at most, troubleShare of the
// time in which a server answers without use.
const awayShare, troubleShare = 8, 3

// share is the delay before a server is tried again that has been away for so
// long: an eighth of that time, from base up to most. Whoever waits notices that
// it is back after a fraction of the outage, short or long, and the tries of an
// outage grow with its logarithm. Half of the delay is left to random.
func (b backoff) share(away time.Duration, random float64) time.Duration {
	d := min(max(away/awayShare, b.base), b.most)
	return d/2 + time.Duration(random*float64(d/2))
}

// delayWithin is delay, but no more than a third of the time that the failures
// have lasted: failures that follow each other fast, as while a server starts,
// do not add up to a pause that is longer than their cause.
func (b backoff) delayWithin(failures int, lasted time.Duration, random float64) time.Duration {
	b.most = min(b.most, max(b.base, lasted/troubleShare))
	return b.Delay(failures, random)
}

// Delay before the attempt after the given number of failures in a row, from 1.
// random is in [0,1): half of the delay is left to it, so that clients which
// failed together do not come back together.
func (b backoff) Delay(failures int, random float64) time.Duration {
	d := b.base
	for range min(max(failures, 1)-1, 30) {
		if d *= 2; d >= b.most {
			d = b.most
			break
		}
	}
	return d/2 + time.Duration(random*float64(d/2))
}

// Pause is how long d waits before the next step, whatever the server asks for.
// random is in [0,1).
func (d Decision) Pause(random float64) time.Duration {
	switch d.pace {
	case paceBackoff:
		return retryBackoff.delayWithin(d.attempt, d.within, random)
	case paceAway:
		return awayBackoff.share(d.away, random)
	case paceAnew:
		return anewBackoff.Delay(d.Next.expiries, random)
	case paceReopen:
		return d.within + time.Duration(random*float64(d.within/4))
	case paceSlow:
		return slowBackoff.Delay(max(d.Next.Refusals, d.Next.oversized), random)
	}
	return 0
}
