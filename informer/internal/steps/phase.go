// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"errors"
	"time"

	"github.com/flyball-dev/flyball/informer/internal/base"
)

// Phase is what a Reflector does next.
type Phase uint8

const (
	PhaseList   Phase = iota + 1 // a list, page by page
	PhaseStream                  // a streaming list
	PhaseWatch                   // a watch from progress.last
)

// result is how a step of a phase went.
type result uint8

const (
	ResultCompleted    result = iota + 1 // the whole list is read
	ResultOpened                         // the server has accepted the watch
	ResultEnded                          // the stream ended between frames
	ResultCut                            // the stream broke off
	ResultSilent                         // the stream spoke no more
	ResultUnreachable                    // no answer at all
	resultGarbled                        // an answer that cannot be read
	resultBusy                           // 429
	resultFailing                        // 5xx
	resultExpired                        // 410: the version or continue token is too old
	resultTooLarge                       // the version is newer than the server's
	resultRejected                       // the server does not take the request as it is
	resultForbidden                      // 403
	resultUnauthorized                   // 401
	resultNotServed                      // 404: no such kind
	resultOversized                      // a page or frame larger than is read
	resultSlow                           // a page of the list did not arrive in time
	ResultEndless                        // a streaming list did not end in time
	resultStuck                          // the pages of the list do not advance
	resultOlder                          // the list is older than what was seen before
	ResultHeld                           // not sent: the gate has closed
	ResultDemanded                       // ended for a list that is wanted
)

const (
	// healthy is how long a watch must live for refusals and oversized frames to
	// be forgotten.
	healthy = 2 * time.Minute
	// Brief is an end so early that one after the other is trouble. A clean end is
	// trouble only when it comes before lively.
	Brief, lively = 10 * time.Second, 2 * time.Second
	// streamRetry is how long streaming lists are not asked for again after the
	// server has refused one or has not ended it.
	streamRetry = time.Hour
	// streamTries of a streaming list before paged lists take over.
	streamTries = 2
)

// Reasons of a relist, as ScopeState.Relists counts them.
const (
	RelistExpired   = "expired"
	relistTooLarge  = "too large resource version"
	relistSilent    = "silent"
	relistRejected  = "rejected"
	relistNotServed = "not served"
	relistContinue  = "continue expired"
	RelistOversized = "oversized"
	RelistSchema    = "schema changed"
	RelistAudit     = "audit"
	relistUseless   = "watches of no use"
	relistOlder     = "older than demanded"
	RelistUndone    = "objects in older versions"
	relistStuck     = "pages do not advance"
	RelistGarbled   = "garbled watch"
)

// Progress is all that a Reflector knows when it decides.
type Progress struct {
	Phase Phase
	// last is the newest resourceVersion seen. Empty: none.
	Last string
	// consistent: the next list must be the server's newest state.
	Consistent bool
	// whole: the next list is asked for in one piece.
	Whole bool
	// content: the next list is compared by content. repair: it is to repair what
	// an audit has found.
	content, Repair bool
	// doubt: the last watch ended early without a reason, as it does when the
	// schema has changed. A list that follows is compared by content.
	doubt bool
	// epoch: the next list is taken as it is; something else has proved that the
	// server's versions went back.
	Epoch bool
	// elsewhere: the next list goes over another connection.
	Elsewhere bool
	// behind: consistent lists in a row that were older than what was seen.
	Behind int
	// failures, refusals, briefs, silences, expiries, restarts, slow pages and
	// tries of a streaming list, each in a row.
	failures, Refusals, briefs, silences, expiries, restarts, Slows, Tries int
	// away: since when the server gives no answer. Zero: it does.
	away time.Time
	// reopens bounds how often watches are opened again without backoff.
	reopens reopens
	// trouble: since when the server answers and its answers are of no use.
	trouble time.Time
	// watching is what has come of the last watches.
	watching watchRecord
	// instead: lists stand in for watches that are of no use.
	Instead bool
	// foreign: the source is not an API server by HTTP.
	Foreign bool
	// probing: pages are tried because of this error of a streaming list; empty:
	// they are not.
	Probing string
	// oversized pages or frames since a watch has lived for long, and how often
	// pages were halved because of them.
	oversized, Halvings int
	// paged: never ask for a streaming list. noStreamBefore: not before then.
	Paged          bool
	NoStreamBefore time.Time
}

// Outcome is how a step went, with what the decision needs to know of it.
type Outcome struct {
	Result     result
	Err        error
	Version    string        // Completed: of the list
	RetryAfter time.Duration // that the server asks for
	Lived      time.Duration // of a stream; of a streaming list, since its end
	Spoke      bool          // the stream gave at least one frame
	Moved      bool          // the stream gave a version that was not seen before
	Early      bool          // the stream ended well before its timeout
	Continued  bool          // the list failed behind its first page
	Now        time.Time
}

// pace is the kind of pause before the next step.
type pace uint8

const (
	paceNone pace = iota
	paceBackoff
	paceSlow
	paceAway // by the time that the server has been away
	paceAnew // by the watches in a row that could not go on
	paceReopen
)

// Decision is what to do next.
type Decision struct {
	Next    Progress
	pace    pace
	attempt int           // with paceBackoff: the failures in a row
	within  time.Duration // with paceBackoff: how long they have lasted; with paceReopen: until points are there
	AtLeast time.Duration // the server's Retry-After
	away    time.Duration // with paceAway
	State   base.State    // to show; empty: no change
	Why     string        // shown with the state; empty: the error
	Relist  string        // why a list begins again; empty: none does
	// fellBack: paged lists take over from streaming lists.
	FellBack bool
}

// Next is the whole judgement of the Reflector: where it goes from p after o.
func Next(p Progress, o Outcome) Decision {
	p = p.noting(o)
	d := judge(p, o)
	switch {
	case p.Phase == PhaseWatch && d.Next.Phase == PhaseWatch:
		return d.orList(p, o)
	case p.Phase == PhaseStream && d.Next.Phase == PhaseStream:
		return d.orPages(o)
	case p.Phase == PhaseList && d.Next.Phase == PhaseList && p.Instead:
		return d.orWatch(o)
	}
	return d
}

// noting is p with what o says of the time since the step before.
func (p Progress) noting(o Outcome) Progress {
	if o.Lived >= healthy {
		p.Refusals, p.oversized = 0, 0
	}
	if o.Spoke {
		p.silences, p.expiries, p.doubt = 0, 0, false
	}
	if p.Phase == PhaseWatch {
		p = p.watched(o)
	}
	switch o.Result {
	case ResultHeld:
		return p
	case ResultUnreachable:
		// What the server does after an outage says nothing of what it did before.
		p.trouble = time.Time{}
		return p
	case ResultCompleted, ResultOpened, ResultDemanded:
	default:
		if p.trouble.IsZero() {
			p.trouble = o.Now
		}
	}
	p.away = time.Time{}
	return p
}

func judge(p Progress, o Outcome) Decision {
	switch o.Result {
	case ResultCompleted:
		return completed(p, o)
	case ResultOpened:
		return opened(p)
	case resultForbidden:
		p.Refusals++
		return Decision{Next: p, pace: paceSlow, State: base.StateForbidden}
	case resultUnauthorized:
		// Credentials are rotated by themselves: faster than a right is given.
		d := retry(p, o)
		d.State = base.StateUnauthorized
		return d
	case resultNotServed:
		p.Refusals++
		if p.Phase != PhaseWatch {
			return Decision{Next: p, pace: paceSlow, State: base.StateNotServed}
		}
		d := relist(p, o, relistNotServed, false)
		d.pace, d.State = paceSlow, base.StateNotServed
		return d
	case ResultUnreachable:
		return unreachable(p, o)
	case resultBusy:
		d := retry(p, o)
		d.within = longestPause // its pauses double, whatever the time
		return d
	case resultFailing:
		return retry(p, o)
	case resultOversized:
		return oversized(p, o)
	case ResultHeld, ResultDemanded:
		return Decision{Next: p}
	}
	switch p.Phase {
	case PhaseList:
		return afterList(p, o)
	case PhaseStream:
		return afterStream(p, o)
	}
	return afterWatch(p, o)
}

// completed goes on to watch from the list's version.
func completed(p Progress, o Outcome) Decision {
	d := Decision{}
	if p.Phase == PhaseStream && !p.Instead {
		d.State = base.StateLive // the same stream goes on as the watch
	}
	if p.Probing != "" {
		p.NoStreamBefore, d.FellBack = o.Now.Add(streamRetry), true
	}
	p.Phase, p.Last, p.watching.listed, p.watching.vain = PhaseWatch, o.Version, o.Now, 0
	p.Consistent, p.Whole, p.content, p.Repair, p.doubt = false, false, false, false, false
	p.Epoch, p.Elsewhere, p.Probing = false, false, ""
	p.failures, p.Refusals, p.restarts, p.Tries, p.Behind = 0, 0, 0, 0, 0
	p.Slows = max(0, p.Slows-1)
	if p.watching.useless == 0 {
		p.trouble = time.Time{}
	}
	d.Next = p
	return d
}

// retry does the same again, later. A list that succeeds forgets the failures
// of lists, a watch that is of use those of watches.
func retry(p Progress, o Outcome) Decision {
	d := Decision{pace: paceBackoff, AtLeast: o.RetryAfter, State: base.StateStale, within: o.Now.Sub(p.trouble)}
	if d.attempt = p.watching.useless; p.Phase != PhaseWatch {
		p.failures++
		d.attempt = p.failures
	}
	d.Next = p
	return d
}

// unreachable does the same again, after a pause that goes by the time without
// an answer: it says nothing of what the server does once it answers.
func unreachable(p Progress, o Outcome) Decision {
	if p.away.IsZero() {
		p.away = o.Now
	}
	return Decision{Next: p, pace: paceAway, away: o.Now.Sub(p.away), State: base.StateStale}
}

// relist begins a list because of a watch or list that cannot go on.
func relist(p Progress, o Outcome, reason string, consistent bool) Decision {
	d := retry(p, o)
	d.Next.Consistent, d.Next.Instead = p.Consistent || consistent, false
	d.Next.Phase = d.Next.ListPhase(o.Now)
	d.State, d.Relist = "", reason
	return d
}

// Advance notes a version that the stream has shown. It never goes back, where
// versions can be compared.
func (p *Progress) Advance(version string) {
	if version == "" {
		return
	}
	v, last := base.ParseVersion(version), base.ParseVersion(p.Last)
	if v == 0 || last == 0 || v > last {
		p.Last = version
	}
}

// ErrDemanded ends a watch because a list is wanted.
var ErrDemanded = errors.New("the scope must be relisted")

// Demand is a list that somebody else than the Reflector wants of its scope.
type Demand struct {
	Reason  string // as ScopeState.Relists counts it; empty: none
	Content bool   // compare by content
	Repair  bool   // of differences that an audit has found
	Epoch   bool   // it is proved that the server's versions went back
	// elsewhere: over another connection.
	Elsewhere bool
}

// And is one list that serves both demands.
func (d Demand) And(e Demand) Demand {
	if d.Reason == "" {
		d.Reason = e.Reason
	}
	d.Content, d.Repair, d.Epoch = d.Content || e.Content, d.Repair || e.Repair, d.Epoch || e.Epoch
	d.Elsewhere = d.Elsewhere || e.Elsewhere
	return d
}

const (
	// A watch is asked to end after a time between these two, so that watches
	// which began together do not end together.
	ShortestWatch, LongestWatch = 5 * time.Minute, 10 * time.Minute
	// Overdue is how long after its timeout a stream is given up.
	Overdue = 30 * time.Second
)

// SilentAfter without a frame, a stream that has bookmarks is dead: they
// come once a minute.
const SilentAfter = 150 * time.Second
