// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"cmp"
	"fmt"
	"time"

	"github.com/flyball-dev/flyball/informer/internal/base"
)

// A watch is of use when it brings a version that was not seen before, or says
// something and lasts. One that is of no use is opened again; after a time a list
// stands in for it, so that the scope is never older than listsWithin.
const (
	// failingFor: watches fail at once or with garbage.
	failingFor = 10 * time.Second
	// refusedFor: the server gives no answer, or has a reason not to watch.
	refusedFor = time.Minute
	// cutFor: watches say nothing and end before their time.
	cutFor = 5 * time.Minute
	// mutedFor: watches say nothing and end at their time, as on a server without
	// bookmarks.
	mutedFor = time.Hour
	// mostVain watches that fail lead to a list, however fast they do.
	mostVain = 8
	// listsWithin bounds the time from one sign of use, or list, to the next list
	// that is asked for: an unused watch to the end of its time, twice, and the
	// pause before the second.
	listsWithin = mutedFor + LongestWatch + Overdue + time.Minute
)

// watchRecord is what has come of the last watches.
type watchRecord struct {
	// useless watches in a row. Each second that one lives forgets half of those
	// before it.
	useless int
	// vain: useless ones since the last list.
	vain int
	// since is until when a watch was of use. Zero: the last one was.
	since time.Time
	// failing: since when watches end at once, or are not opened. Zero: the last one
	// lived for a while.
	failing time.Time
	// refused: the last one was not opened.
	refused bool
	// listed is when a list was last completed, or asked for instead of a watch.
	listed time.Time
}

// useful says whether the watch that o ended was of use.
func (o Outcome) useful() bool { return o.Moved || o.Spoke && o.lasted() }

// ofUse says whether the watch that o ended was of use. A source that is no API
// server need not send bookmarks: its watch is sound if it lasts to its end.
func (p Progress) ofUse(o Outcome) bool {
	return o.useful() || p.Foreign && o.Result == ResultEnded && !o.Early && o.Lived >= Brief
}

// watched is p with what o says of a watch.
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

// opened: the server has accepted the watch. Where watches were of no use, this
// one has yet to show that it is.
func opened(p Progress) Decision {
	p.Refusals = 0
	d := Decision{Next: p, State: base.StateLive}
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
			return Decision{Next: p, State: base.StateStale}
		}
		// Nobody answers for this version: perhaps the server has lost it.
		d := relist(p, o, relistSilent, true)
		d.State = base.StateStale
		return d
	case resultExpired:
		// A server that has restarted or compacted says this to every watch, once.
		p.expiries++
		d := relist(p, o, RelistExpired, p.expiries > 1)
		d.pace = paceAnew
		return d
	case resultTooLarge:
		return relist(p, o, relistTooLarge, true)
	case resultRejected:
		d := relist(p, o, relistRejected, true)
		d.State = base.StateStale
		return d
	}
	return retry(p, o)
}

// patience is how long watches may end as o did before a list stands in for
// them. Zero: it does not end a watch, or leads elsewhere.
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

// orList is d, by which the watch is opened again, or a list where watches have
// been of no use for too long. The list follows the watch without a pause: after
// an outage the watch is what comes first, and where watches fail alone, lists
// follow each other as slowly as the watches do.
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
		d.State = cmp.Or(d.State, base.StateStale)
		d.Why = fmt.Sprintf("no watch has been of use since %s, lists stand in for them; the last watch: %s", w.since.UTC().Format(time.RFC3339), o.words())
	}
	return d
}

// due: after watches that may end so for patience, a list is.
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

// orWatch is d, by which a list that stands in for watches is tried again, or
// the watch once more: after an outage it is what comes first.
func (d Decision) orWatch(o Outcome) Decision {
	switch o.Result {
	case ResultUnreachable, resultBusy, resultFailing, resultGarbled, ResultCut, ResultEnded, ResultSilent,
		resultSlow, resultForbidden, resultUnauthorized:
		d.Next.Phase = PhaseWatch
	}
	return d
}

// words are what is known of how a step failed.
func (o Outcome) words() string {
	switch {
	case o.Result == ResultEnded && !o.lasted():
		return "the server ended it at once"
	case o.Result == ResultEnded:
		return "the server ended it and had said nothing"
	}
	return base.TextOf(o.Err)
}
