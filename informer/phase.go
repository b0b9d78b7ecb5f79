// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import "time"

// phase is what a Reflector does next.
type phase uint8

const (
	phaseList   phase = iota + 1 // a list, page by page
	phaseStream                  // a streaming list
	phaseWatch                   // a watch from progress.last
)

// result is how a step of a phase went.
type result uint8

const (
	resultCompleted    result = iota + 1 // the whole list is read
	resultOpened                         // the server has accepted the watch
	resultEnded                          // the stream ended between frames
	resultCut                            // the stream broke off
	resultSilent                         // the stream spoke no more
	resultUnreachable                    // no answer at all
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
	resultEndless                        // a streaming list did not end in time
	resultStuck                          // the pages of the list do not advance
	resultOlder                          // the list is older than what was seen before
	resultHeld                           // not sent: the gate has closed
	resultDemanded                       // ended for a list that is wanted
)

const (
	// healthy is how long a watch must live for refusals and oversized frames to
	// be forgotten.
	healthy = 2 * time.Minute
	// brief is an end so early that one after the other is trouble. A clean end is
	// trouble only when it comes before lively.
	brief, lively = 10 * time.Second, 2 * time.Second
	// streamRetry is how long streaming lists are not asked for again after the
	// server has refused one or has not ended it.
	streamRetry = time.Hour
	// streamTries of a streaming list before paged lists take over.
	streamTries = 2
)

// Reasons of a relist, as ScopeState.Relists counts them.
const (
	relistExpired   = "expired"
	relistTooLarge  = "too large resource version"
	relistSilent    = "silent"
	relistRejected  = "rejected"
	relistNotServed = "not served"
	relistContinue  = "continue expired"
	relistOversized = "oversized"
	relistSchema    = "schema changed"
	relistAudit     = "audit"
	relistUseless   = "watches of no use"
	relistOlder     = "older than demanded"
	relistUndone    = "objects in older versions"
	relistStuck     = "pages do not advance"
	relistGarbled   = "garbled watch"
)

// progress is all that a Reflector knows when it decides.
type progress struct {
	phase phase
	// last is the newest resourceVersion seen. Empty: none.
	last string
	// consistent: the next list must be the server's newest state.
	consistent bool
	// whole: the next list is asked for in one piece.
	whole bool
	// content: the next list is compared by content. repair: it is to repair what
	// an audit has found.
	content, repair bool
	// doubt: the last watch ended early without a reason, as it does when the
	// schema has changed. A list that follows is compared by content.
	doubt bool
	// epoch: the next list is taken as it is; something else has proved that the
	// server's versions went back.
	epoch bool
	// elsewhere: the next list goes over another connection.
	elsewhere bool
	// behind: consistent lists in a row that were older than what was seen.
	behind int
	// failures, refusals, briefs, silences, expiries, restarts, slow pages and
	// tries of a streaming list, each in a row.
	failures, refusals, briefs, silences, expiries, restarts, slows, tries int
	// away: since when the server gives no answer. Zero: it does.
	away time.Time
	// reopens bounds how often watches are opened again without backoff.
	reopens reopens
	// trouble: since when the server answers and its answers are of no use.
	trouble time.Time
	// watching is what has come of the last watches.
	watching watchRecord
	// instead: lists stand in for watches that are of no use.
	instead bool
	// foreign: the source is not an API server by HTTP.
	foreign bool
	// probing: pages are tried because of this error of a streaming list; empty:
	// they are not.
	probing string
	// oversized pages or frames since a watch has lived for long, and how often
	// pages were halved because of them.
	oversized, halvings int
	// paged: never ask for a streaming list. noStreamBefore: not before then.
	paged          bool
	noStreamBefore time.Time
}

// outcome is how a step went, with what the decision needs to know of it.
type outcome struct {
	result     result
	err        error
	version    string        // Completed: of the list
	retryAfter time.Duration // that the server asks for
	lived      time.Duration // of a stream; of a streaming list, since its end
	spoke      bool          // the stream gave at least one frame
	moved      bool          // the stream gave a version that was not seen before
	early      bool          // the stream ended well before its timeout
	continued  bool          // the list failed behind its first page
	now        time.Time
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

// decision is what to do next.
type decision struct {
	next    progress
	pace    pace
	attempt int           // with paceBackoff: the failures in a row
	within  time.Duration // with paceBackoff: how long they have lasted; with paceReopen: until points are there
	atLeast time.Duration // the server's Retry-After
	away    time.Duration // with paceAway
	state   State         // to show; empty: no change
	why     string        // shown with the state; empty: the error
	relist  string        // why a list begins again; empty: none does
	// fellBack: paged lists take over from streaming lists.
	fellBack bool
}

// next is the whole judgement of the Reflector: where it goes from p after o.
func next(p progress, o outcome) decision {
	p = p.noting(o)
	d := judge(p, o)
	switch {
	case p.phase == phaseWatch && d.next.phase == phaseWatch:
		return d.orList(p, o)
	case p.phase == phaseStream && d.next.phase == phaseStream:
		return d.orPages(o)
	case p.phase == phaseList && d.next.phase == phaseList && p.instead:
		return d.orWatch(o)
	}
	return d
}

// noting is p with what o says of the time since the step before.
func (p progress) noting(o outcome) progress {
	if o.lived >= healthy {
		p.refusals, p.oversized = 0, 0
	}
	if o.spoke {
		p.silences, p.expiries, p.doubt = 0, 0, false
	}
	if p.phase == phaseWatch {
		p = p.watched(o)
	}
	switch o.result {
	case resultHeld:
		return p
	case resultUnreachable:
		// What the server does after an outage says nothing of what it did before.
		p.trouble = time.Time{}
		return p
	case resultCompleted, resultOpened, resultDemanded:
	default:
		if p.trouble.IsZero() {
			p.trouble = o.now
		}
	}
	p.away = time.Time{}
	return p
}

func judge(p progress, o outcome) decision {
	switch o.result {
	case resultCompleted:
		return completed(p, o)
	case resultOpened:
		return opened(p)
	case resultForbidden:
		p.refusals++
		return decision{next: p, pace: paceSlow, state: StateForbidden}
	case resultUnauthorized:
		// Credentials are rotated by themselves: faster than a right is given.
		d := retry(p, o)
		d.state = StateUnauthorized
		return d
	case resultNotServed:
		p.refusals++
		if p.phase != phaseWatch {
			return decision{next: p, pace: paceSlow, state: StateNotServed}
		}
		d := relist(p, o, relistNotServed, false)
		d.pace, d.state = paceSlow, StateNotServed
		return d
	case resultUnreachable:
		return unreachable(p, o)
	case resultBusy:
		d := retry(p, o)
		d.within = longestPause // its pauses double, whatever the time
		return d
	case resultFailing:
		return retry(p, o)
	case resultOversized:
		return oversized(p, o)
	case resultHeld, resultDemanded:
		return decision{next: p}
	}
	switch p.phase {
	case phaseList:
		return afterList(p, o)
	case phaseStream:
		return afterStream(p, o)
	}
	return afterWatch(p, o)
}

// completed goes on to watch from the list's version.
func completed(p progress, o outcome) decision {
	d := decision{}
	if p.phase == phaseStream && !p.instead {
		d.state = StateLive // the same stream goes on as the watch
	}
	if p.probing != "" {
		p.noStreamBefore, d.fellBack = o.now.Add(streamRetry), true
	}
	p.phase, p.last, p.watching.listed, p.watching.vain = phaseWatch, o.version, o.now, 0
	p.consistent, p.whole, p.content, p.repair, p.doubt = false, false, false, false, false
	p.epoch, p.elsewhere, p.probing = false, false, ""
	p.failures, p.refusals, p.restarts, p.tries, p.behind = 0, 0, 0, 0, 0
	p.slows = max(0, p.slows-1)
	if p.watching.useless == 0 {
		p.trouble = time.Time{}
	}
	d.next = p
	return d
}

// retry does the same again, later. A list that succeeds forgets the failures
// of lists, a watch that is of use those of watches.
func retry(p progress, o outcome) decision {
	d := decision{pace: paceBackoff, atLeast: o.retryAfter, state: StateStale, within: o.now.Sub(p.trouble)}
	if d.attempt = p.watching.useless; p.phase != phaseWatch {
		p.failures++
		d.attempt = p.failures
	}
	d.next = p
	return d
}

// unreachable does the same again, after a pause that goes by the time without
// an answer: it says nothing of what the server does once it answers.
func unreachable(p progress, o outcome) decision {
	if p.away.IsZero() {
		p.away = o.now
	}
	return decision{next: p, pace: paceAway, away: o.now.Sub(p.away), state: StateStale}
}

// relist begins a list because of a watch or list that cannot go on.
func relist(p progress, o outcome, reason string, consistent bool) decision {
	d := retry(p, o)
	d.next.consistent, d.next.instead = p.consistent || consistent, false
	d.next.phase = d.next.listPhase(o.now)
	d.state, d.relist = "", reason
	return d
}

// advance notes a version that the stream has shown. It never goes back, where
// versions can be compared.
func (p *progress) advance(version string) {
	if version == "" {
		return
	}
	v, last := ParseVersion(version), ParseVersion(p.last)
	if v == 0 || last == 0 || v > last {
		p.last = version
	}
}
