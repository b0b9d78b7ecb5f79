// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"cmp"
	"fmt"
	"time"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/state"
)

// A watch is of use when it brings a new version, or sends something and lasts.
// A useless one is reopened; after a time lists replace it, so that the scope
// is never older than listsWithin.
const (
	// failingFor applies if watches fail at once or with garbage.
	failingFor = 10 * time.Second
	// refusedFor applies if the server does not answer, or has a reason to
	// refuse the watch.
	refusedFor = time.Minute
	// cutFor applies if watches are silent and end early.
	cutFor = 5 * time.Minute
	// mutedFor applies if watches are silent and end on time, as on a server
	// without bookmarks.
	mutedFor = time.Hour
	// mostVain failing watches lead to a list, no matter how fast they fail.
	mostVain = 8
	// listsWithin bounds the time from a sign of use, or a list, to the next
	// list requested: two unused watches to their end, and the pause before the
	// second.
	listsWithin = mutedFor + LongestWatch + Overdue + time.Minute
)

// watchRecord summarizes the last watches.
type watchRecord struct {
	// useless counts consecutive useless watches. Each second that one lives
	// halves the count before it.
	useless int
	// vain counts useless watches since the last list.
	vain int
	// since is when a watch was last of use. Zero: the last one was.
	since time.Time
	// failing is since when watches end at once or are not opened. Zero: the
	// last one lived for a while.
	failing time.Time
	// refused: the last one was not opened.
	refused bool
	// listed is when a list last completed, or replaced a watch.
	listed time.Time
}

// useful reports whether the ended watch was of use.
func (o Outcome) useful() bool { return o.Moved || o.Spoke && o.lasted() }

// ofUse is useful, but a source that is not an API server need not send
// bookmarks: its watch is sound if it lasts to its end.
func (p Progress) ofUse(o Outcome) bool {
	return o.useful() || p.Foreign && o.Result == ResultEnded && !o.Early && o.Lived >= Brief
}

// watched returns p updated with the outcome of a watch.
func (p Progress) watched(o Outcome) Progress {
	w := &p.watching
	switch {
	case o.Result == ResultOpened, o.Result == ResultHeld:
		return p
	case p.ofUse(o):
		*w = watchRecord{listed: w.listed}
		p.Instead, p.trouble = false, time.Time{}
		return p
	case o.Result == ResultDemanded:
		return p
	}
	if w.since.IsZero() {
		w.since = o.Now.Add(-o.Lived)
	}
	if seconds := min(int(o.Lived/time.Second), 30); seconds > 0 {
		w.useless >>= seconds
		p.expiries >>= seconds
		p.trouble = time.Time{}
	}
	if o.lasted() {
		p.Instead, w.failing = false, time.Time{}
	} else if w.failing.IsZero() {
		w.failing = o.Now
	}
	w.refused = o.patience() == refusedFor
	if o.Result != ResultUnreachable {
		w.useless++
		w.vain++
	}
	return p
}

// opened handles an accepted watch. If earlier watches were useless, it must
// first prove useful.
func opened(p Progress) Decision {
	p.Refusals = 0
	d := Decision{Next: p, State: state.Live}
	if p.Instead && !p.watching.refused {
		d.State = ""
	}
	return d
}

func afterWatch(p Progress, o Outcome) Decision {
	switch o.Result {
	case ResultEnded:
		return cleanEnd(p, o)
	case ResultSilent:
		if p.silences++; p.silences == 1 {
			return Decision{Next: p, State: state.Stale}
		}
		// The server does not answer for this version: perhaps it has lost it.
		d := relist(p, o, relistSilent, true)
		d.State = state.Stale
		return d
	case resultExpired:
		// A server that has restarted or compacted answers this to every watch,
		// once.
		p.expiries++
		d := relist(p, o, RelistExpired, p.expiries > 1)
		d.pace = paceAnew
		return d
	case resultTooLarge:
		return relist(p, o, relistTooLarge, true)
	case resultRejected:
		d := relist(p, o, relistRejected, true)
		d.State = state.Stale
		return d
	}
	return retry(p, o)
}

// patience is how long watches may end like this before lists replace them.
// Zero: the outcome does not end a watch, or leads elsewhere.
func (o Outcome) patience() time.Duration {
	switch o.Result {
	case ResultOpened, ResultHeld, ResultDemanded:
		return 0
	case ResultUnreachable, resultBusy, resultForbidden, resultUnauthorized:
		return refusedFor
	}
	switch {
	case !o.lasted():
		return failingFor
	case o.Result == ResultEnded && !o.Early:
		return mutedFor
	}
	return cutFor
}

// orList returns d, which reopens the watch, or switches to a list if watches
// have been useless for too long. The list follows without a pause: after an
// outage the watch comes first, and where only watches fail, lists are as slow
// as the watches.
func (d Decision) orList(p Progress, o Outcome) Decision {
	patience, w := o.patience(), &d.Next.watching
	if patience == 0 || p.ofUse(o) {
		return d
	}
	if w.due(patience, o.Now) {
		w.listed, w.vain = o.Now, 0
		d.Next.Instead = true
		d.Next.Phase, d.pace, d.Relist = PhaseList, paceNone, relistUseless
	}
	if d.Next.Instead {
		d.State = cmp.Or(d.State, state.Stale)
		d.Why = fmt.Sprintf("no watch has delivered anything since %s; listing instead; the last watch: %s", w.since.UTC().Format(time.RFC3339), o.words())
	}
	return d
}

// due reports whether a list is due after watches that ended like this for
// patience.
func (w *watchRecord) due(patience time.Duration, now time.Time) bool {
	lasted := func(begun time.Time) time.Duration {
		if w.listed.After(begun) {
			begun = w.listed
		}
		return now.Sub(begun)
	}
	switch {
	case patience == failingFor && w.vain >= mostVain:
		return true
	case !w.failing.IsZero() && lasted(w.failing) >= patience:
		return true
	}
	return lasted(w.since) >= max(patience, cutFor)
}

// orWatch returns d, which retries a list that replaces watches, or tries the
// watch once more: after an outage the watch comes first.
func (d Decision) orWatch(o Outcome) Decision {
	switch o.Result {
	case ResultUnreachable, resultBusy, resultFailing, resultGarbled, ResultCut, ResultEnded, ResultSilent,
		resultSlow, resultForbidden, resultUnauthorized:
		d.Next.Phase = PhaseWatch
	}
	return d
}

// words describes how a step failed.
func (o Outcome) words() string {
	switch {
	case o.Result == ResultEnded && !o.lasted():
		return "the server ended it at once"
	case o.Result == ResultEnded:
		return "the server ended it and had sent nothing"
	}
	return base.TextOf(o.Err)
}
