// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import "time"

// backoff is a delay that doubles from base up to most with each attempt.
type backoff struct {
	base, most time.Duration
}

var (
	// retryBackoff is for a server that answers with errors.
	retryBackoff = backoff{base: 800 * time.Millisecond, most: 30 * time.Second}
	// slowBackoff is for answers that only a person can change: no permission,
	// no such kind. It starts fast, since a kind is often installed together
	// with its controller.
	slowBackoff = backoff{base: time.Second, most: 60 * time.Second}
	// awayBackoff is for a server that does not answer. Its pauses depend on
	// the length of the outage. Such an attempt costs the server nothing.
	awayBackoff = backoff{base: 400 * time.Millisecond, most: 30 * time.Second}
	// anewBackoff is for a list after a watch that cannot continue.
	anewBackoff = backoff{base: 400 * time.Millisecond, most: 30 * time.Second}
	// RefusalBackoff is for a transform that refused an object. An attempt
	// costs only this process.
	RefusalBackoff = backoff{base: time.Second, most: 5 * time.Minute}
)

// longestPause bounds no pause.
const longestPause = time.Hour

// A pause takes at most 1/awayShare of an outage, and 1/troubleShare of the
// time in which answers are useless.
const awayShare, troubleShare = 8, 3

// share is the delay before the next attempt on a server that has been away
// that long: an eighth of the time, within base and most, half of it random.
// The end of an outage is noticed after a fraction of its length, and the
// number of attempts grows with its logarithm.
func (b backoff) share(away time.Duration, random float64) time.Duration {
	d := min(max(away/awayShare, b.base), b.most)
	return d/2 + time.Duration(random*float64(d/2))
}

// delayWithin is Delay, but at most a third of the time that the failures have
// lasted: a burst of failures, as while a server starts, must not lead to a
// pause longer than its cause.
func (b backoff) delayWithin(failures int, lasted time.Duration, random float64) time.Duration {
	b.most = min(b.most, max(b.base, lasted/troubleShare))
	return b.Delay(failures, random)
}

// Delay is the delay after the given number of consecutive failures, at least
// 1. random is in [0,1) and decides half of the delay, so that clients that
// failed together do not return together.
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

// Pause is the time before the next step, apart from the server's Retry-After.
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
