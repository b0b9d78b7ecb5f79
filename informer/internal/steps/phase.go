// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"errors"
	"time"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
)

// Phase is the kind of a Reflector's next step.
type Phase uint8

const (
	PhaseList   Phase = iota + 1 // a list, page by page
	PhaseStream                  // a streaming list
	PhaseWatch                   // a watch from Progress.Last
)

type result uint8

const (
	ResultCompleted    result = iota + 1 // the whole list was read
	ResultOpened                         // the server accepted the watch
	ResultEnded                          // the stream ended between frames
	ResultCut                            // the connection broke
	ResultSilent                         // the stream fell silent
	ResultUnreachable                    // no answer
	resultGarbled                        // an unreadable answer
	resultBusy                           // 429
	resultFailing                        // 5xx
	resultExpired                        // 410: the version or continue token is too old
	resultTooLarge                       // the version is newer than the server's
	resultRejected                       // the server does not accept the request as it is
	resultUnselectable                   // 400: the server does not select by such a field
	resultForbidden                      // 403
	resultUnauthorized                   // 401
	resultNotServed                      // 404: no such kind
	resultUnlisted                       // the server has no lists of the kind
	resultOversized                      // a page or frame above the size limit
	resultSlow                           // a page of the list did not arrive in time
	ResultEndless                        // a streaming list did not end in time
	resultStuck                          // the pages of the list do not advance
	resultOlder                          // the list is older than what was seen
	ResultHeld                           // not sent: the gate closed
	ResultDemanded                       // ended for a demanded list
	resultNoRoom                         // the list does not fit into the memory budget
)

const (
	// healthy is how long a watch must live to reset refusals and oversized
	// frames.
	healthy = 2 * time.Minute
	// A watch that ends before Brief is trouble if it happens repeatedly; a
	// clean end only before lively.
	Brief, lively = 10 * time.Second, 2 * time.Second
	// streamRetry is how long streaming lists are not requested after the
	// server refused one or did not end it.
	streamRetry = time.Hour
	// streamTries is how often a streaming list is tried before paged lists
	// take over.
	streamTries = 2
)

// Reasons of a relist, as counted in state.Scope.Relists.
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
	RelistFields    = "more fields"
	relistUseless   = "watches of no use"
	relistOlder     = "older than demanded"
	RelistUndone    = "objects in older versions"
	relistStuck     = "pages do not advance"
	RelistGarbled   = "garbled watch"
	RelistHandOver  = "hand-over"
)

// Progress is the state of a Reflector on which its decisions depend.
type Progress struct {
	Phase Phase
	// Last is the newest resourceVersion seen, or empty.
	Last string
	// Consistent: the next list must be the server's newest state.
	Consistent bool
	// Whole: the next list is requested in one piece.
	Whole bool
	// content: the next list is compared by content. Repair: it repairs what an
	// audit found.
	content, Repair bool
	// doubt: the last watch ended early without a reason, as after a schema
	// change. A list that follows is compared by content.
	doubt bool
	// Epoch: the next list is accepted as it is; it is already proved that the
	// server's versions went back.
	Epoch bool
	// Elsewhere: the next list uses another connection.
	Elsewhere bool
	// Behind counts consecutive consistent lists older than what was seen.
	Behind int
	// Consecutive events of each kind; Tries are of a streaming list.
	failures, Refusals, briefs, silences, expiries, restarts, Slows, Tries int
	// away is since when the server has not answered; zero: it answers.
	away time.Time
	// reopens bounds how often watches are reopened without backoff.
	reopens reopens
	// trouble is since when the server's answers have been useless.
	trouble time.Time
	// watching is the record of the last watches.
	watching watchRecord
	// Instead: lists replace watches that are of no use.
	Instead bool
	// Foreign: the source is not an API server over HTTP.
	Foreign bool
	// Probing is the error of a streaming list for which pages are tried, or
	// empty.
	Probing string
	// oversized pages or frames since the last long-lived watch, and how often
	// pages were halved because of them.
	oversized, Halvings int
	// Paged: never request a streaming list. NoStreamBefore: not before that
	// time.
	Paged          bool
	NoStreamBefore time.Time
}

// Outcome is the result of a step.
type Outcome struct {
	Result     result
	Err        error
	Version    string        // of a completed list
	RetryAfter time.Duration // requested by the server
	Lived      time.Duration // of a stream; for a streaming list, since the end of the list
	Spoke      bool          // the stream sent at least one frame
	Moved      bool          // the stream sent a new version
	Early      bool          // the stream ended well before its timeout
	Continued  bool          // the list failed after its first page
	Now        time.Time
}

// pace is the kind of pause before the next step.
type pace uint8

const (
	paceNone pace = iota
	paceBackoff
	paceSlow
	paceAway // depends on how long the server has been away
	paceAnew // depends on the consecutive watches that could not continue
	paceReopen
)

// Decision is the next step of a Reflector.
type Decision struct {
	Next    Progress
	pace    pace
	attempt int           // with paceBackoff: consecutive failures
	within  time.Duration // with paceBackoff: how long they have lasted; with paceReopen: until there are points
	AtLeast time.Duration // the server's Retry-After
	away    time.Duration // with paceAway
	State   state.State   // to show; empty: unchanged
	Why     string        // shown with the state; empty: the error
	Relist  string        // reason of a relist; empty: none
	// FellBack: paged lists replace streaming lists.
	FellBack bool
}

// Next decides where the Reflector goes from p after o.
func Next(p Progress, o Outcome) Decision {
	p = p.noting(o)
	d := decideRetry(p, o)
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

// noting returns p updated with the times and counts of o.
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
		// Behavior after an outage is independent of behavior before it.
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

func notServed(p Progress, o Outcome) Decision {
	p.Refusals++
	d := Decision{Next: p}
	if p.Phase == PhaseWatch {
		d = relist(p, o, relistNotServed, false)
	}
	d.pace, d.State = paceSlow, state.NotServed
	if o.Result == resultUnlisted {
		d.State = state.Misuse // waiting does not help
	}
	return d
}

func decideRetry(p Progress, o Outcome) Decision {
	switch o.Result {
	case ResultCompleted:
		return completed(p, o)
	case ResultOpened:
		return opened(p)
	case resultForbidden:
		p.Refusals++
		return Decision{Next: p, pace: paceSlow, State: state.Forbidden}
	case resultUnauthorized:
		// Credentials rotate automatically: faster than a permission is
		// granted.
		d := retry(p, o)
		d.State = state.Unauthorized
		return d
	case resultNotServed, resultUnlisted:
		return notServed(p, o)
	case resultUnselectable:
		return unselectable(p, o)
	case ResultUnreachable:
		return unreachable(p, o)
	case resultBusy:
		d := retry(p, o)
		d.within = longestPause // its pauses double, regardless of time
		return d
	case resultFailing:
		return retry(p, o)
	case resultOversized:
		return oversized(p, o)
	case resultNoRoom:
		return noRoom(p)
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

// completed continues with a watch from the list's version.
func completed(p Progress, o Outcome) Decision {
	d := Decision{}
	if p.Phase == PhaseStream && !p.Instead {
		d.State = state.Live // the same stream continues as the watch
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

// unselectable tries again rarely: the program's selector is at fault, and only a changed
// CustomResourceDefinition could make it right.
func unselectable(p Progress, o Outcome) Decision {
	p.Refusals++
	d := Decision{Next: p}
	if p.Phase == PhaseWatch {
		d = relist(p, o, relistRejected, true)
	}
	d.pace, d.State = paceSlow, state.Misuse
	d.Why = "the server cannot select by this field: " + base.TextOf(o.Err) +
		"; select by a label, or add the field to selectableFields of the CustomResourceDefinition"
	return d
}

// retry repeats the step later. A completed list resets the failures of lists,
// a useful watch those of watches.
func retry(p Progress, o Outcome) Decision {
	d := Decision{pace: paceBackoff, AtLeast: o.RetryAfter, State: state.Stale, within: o.Now.Sub(p.trouble)}
	if d.attempt = p.watching.useless; p.Phase != PhaseWatch {
		p.failures++
		d.attempt = p.failures
	}
	d.Next = p
	return d
}

// unreachable repeats the step after a pause that depends on the length of the
// outage, which says nothing about the server's later answers.
func unreachable(p Progress, o Outcome) Decision {
	if p.away.IsZero() {
		p.away = o.Now
	}
	return Decision{Next: p, pace: paceAway, away: o.Now.Sub(p.away), State: state.Stale}
}

// relist begins a list because a watch or list cannot continue.
func relist(p Progress, o Outcome, reason string, consistent bool) Decision {
	d := retry(p, o)
	d.Next.Consistent, d.Next.Instead = p.Consistent || consistent, false
	d.Next.Phase = d.Next.ListPhase(o.Now)
	d.State, d.Relist = "", reason
	return d
}

// Advance records a version from the stream. It never goes back, where versions
// are comparable.
func (p *Progress) Advance(version string) {
	if version == "" {
		return
	}
	v, last := kube.ParseVersion(version), kube.ParseVersion(p.Last)
	if v == 0 || last == 0 || v > last {
		p.Last = version
	}
}

// ErrDemanded ends a watch because a list is demanded.
var ErrDemanded = errors.New("the scope must be relisted")

// Demand is a list that another part demands of a Reflector.
type Demand struct {
	Reason  string // as in state.Scope.Relists; empty: no demand
	Content bool   // compare by content
	Repair  bool   // of differences found by an audit
	Epoch   bool   // the server's versions are proved to have gone back
	// Elsewhere: over another connection.
	Elsewhere bool
}

// And returns one demand that covers both.
func (d Demand) And(e Demand) Demand {
	if d.Reason == "" {
		d.Reason = e.Reason
	}
	d.Content, d.Repair, d.Epoch = d.Content || e.Content, d.Repair || e.Repair, d.Epoch || e.Epoch
	d.Elsewhere = d.Elsewhere || e.Elsewhere
	return d
}

const (
	// A watch is requested for a random time between these two, so that watches
	// that began together do not end together.
	ShortestWatch, LongestWatch = 5 * time.Minute, 10 * time.Minute
	// Overdue is how long after its timeout a stream is ended.
	Overdue = 30 * time.Second
)

// SilentAfter is when a stream with bookmarks counts as dead without a frame:
// bookmarks come once a minute.
const SilentAfter = 150 * time.Second
