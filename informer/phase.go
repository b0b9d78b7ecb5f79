// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
	resultHeld                           // not sent: the gate has closed
	resultDemanded                       // ended for a list that is wanted
)

const (
	// healthy is how long a watch must live for its failures to be forgotten.
	healthy = 2 * time.Minute
	// brief is a clean end so early that one after the other is trouble.
	brief = 10 * time.Second
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
	// failures, refusals, briefs, silences, expiries, restarts and tries of a
	// streaming list, each in a row.
	failures, refusals, briefs, silences, expiries, restarts, tries int
	// away: since when the server gives no answer. Zero: it does.
	away time.Time
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
	lived      time.Duration // of a stream
	spoke      bool          // the stream gave at least one frame
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
)

// decision is what to do next.
type decision struct {
	next    progress
	pace    pace
	atLeast time.Duration // the server's Retry-After
	away    time.Duration // with paceAway
	state   State         // to show; empty: no change
	relist  string        // why a list begins again; empty: none does
	// fellBack: paged lists take over from streaming lists.
	fellBack bool
}

// next is the whole judgement of the Reflector: where it goes from p after o.
func next(p progress, o outcome) decision {
	if o.lived >= healthy {
		p.failures, p.refusals, p.briefs, p.oversized = 0, 0, 0, 0
	}
	// A server that is restarted again and again is not the one that fails again
	// and again: each ten seconds of a stream forget half of the failures.
	p.failures >>= min(int(o.lived/brief), 30)
	if o.result != resultUnreachable && o.result != resultHeld {
		p.away = time.Time{}
	}
	if o.spoke {
		p.silences, p.expiries, p.doubt = 0, 0, false
	}
	switch o.result {
	case resultCompleted:
		return completed(p, o)
	case resultOpened:
		p.refusals = 0
		return decision{next: p, state: StateLive}
	case resultForbidden:
		p.refusals++
		return decision{next: p, pace: paceSlow, state: StateForbidden}
	case resultUnauthorized:
		// Credentials are rotated by themselves: faster than a right is given.
		p.failures++
		return decision{next: p, pace: paceBackoff, state: StateUnauthorized}
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
	case resultBusy, resultFailing:
		return retry(p, o)
	case resultHeld:
		return decision{next: p}
	case resultOversized:
		return oversized(p, o)
	case resultDemanded:
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
	state := State("")
	if p.phase == phaseStream {
		state = StateLive // the same stream goes on as the watch
	}
	p.phase, p.last = phaseWatch, o.version
	p.consistent, p.whole, p.content, p.repair, p.doubt = false, false, false, false, false
	p.refusals, p.restarts, p.tries = 0, 0, 0
	return decision{next: p, state: state}
}

// retry does the same again, later.
func retry(p progress, o outcome) decision {
	p.failures++
	return decision{next: p, pace: paceBackoff, atLeast: o.retryAfter, state: StateStale}
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
	p.failures++
	p.consistent = p.consistent || consistent
	p.phase = p.listPhase(o.now)
	return decision{next: p, pace: paceBackoff, atLeast: o.retryAfter, relist: reason}
}

func afterWatch(p progress, o outcome) decision {
	switch o.result {
	case resultEnded:
		p.doubt = p.doubt || o.early
		if o.lived >= brief {
			p.briefs = 0
			return decision{next: p}
		}
		// A changed schema ends every watch of its kind once.
		if p.briefs++; p.briefs == 1 {
			return decision{next: p}
		}
		return retry(p, o)
	case resultSilent:
		if p.silences++; p.silences == 1 {
			return decision{next: p, state: StateStale}
		}
		// Nobody answers for this version: perhaps the server has lost it.
		d := relist(p, o, relistSilent, true)
		d.state = StateStale
		return d
	case resultExpired:
		// A server that has restarted or compacted says this to every watch, once.
		p.expiries++
		d := relist(p, o, relistExpired, p.expiries > 1)
		d.next.failures, d.pace = p.failures, paceAnew
		return d
	case resultTooLarge:
		return relist(p, o, relistTooLarge, true)
	case resultRejected:
		d := relist(p, o, relistRejected, true)
		d.state = StateStale
		return d
	}
	return retry(p, o)
}

func afterList(p progress, o outcome) decision {
	switch o.result {
	case resultExpired:
		if !o.continued {
			return relist(p, o, relistExpired, true)
		}
		d := relist(p, o, relistContinue, false)
		if d.next.restarts++; d.next.restarts == 1 {
			d.pace = paceNone
		} else {
			// The pages take longer than the server keeps the version.
			d.next.whole = true
		}
		d.next.phase = phaseList
		return d
	case resultTooLarge:
		return relist(p, o, relistTooLarge, true)
	case resultRejected:
		if p.last != "" && !p.consistent {
			d := relist(p, o, relistRejected, true)
			d.pace = paceNone
			return d
		}
		p.refusals++
		return decision{next: p, pace: paceSlow, state: StateStale}
	}
	return retry(p, o)
}

func afterStream(p progress, o outcome) decision {
	switch o.result {
	case resultExpired:
		return relist(p, o, relistExpired, true)
	case resultTooLarge:
		return relist(p, o, relistTooLarge, true)
	case resultRejected:
		p.phase, p.noStreamBefore = phaseList, o.now.Add(streamRetry)
		return decision{next: p, fellBack: true}
	}
	if p.tries++; p.tries < streamTries {
		return retry(p, o)
	}
	p.phase, p.noStreamBefore, p.tries = phaseList, o.now.Add(streamRetry), 0
	return decision{next: p, fellBack: true}
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

var (
	errSilent  = errors.New("the server said nothing more on an open stream")
	errOverdue = errors.New("the server did not end the stream at its timeout")
)

// classify says what an error of a list or watch means.
func classify(err error) (r result, retryAfter time.Duration) {
	if _, ok := errors.AsType[*NotServedError](err); ok {
		return resultNotServed, 0
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		return classifyStatus(err, status.Status())
	}
	if _, ok := errors.AsType[*TooLargeError](err); ok {
		return resultOversized, 0
	}
	switch {
	case errors.Is(err, errHeld):
		return resultHeld, 0
	case errors.Is(err, errSilent):
		return resultSilent, 0
	case errors.Is(err, errOverdue):
		return resultEnded, 0
	case errors.Is(err, errDemanded):
		return resultDemanded, 0
	case isNetwork(err):
		return resultUnreachable, 0
	case errors.Is(err, io.ErrUnexpectedEOF):
		return resultCut, 0
	case errors.Is(err, io.EOF):
		return resultEnded, 0
	}
	return resultGarbled, 0
}

func classifyStatus(err error, status metav1.Status) (result, time.Duration) {
	var retryAfter time.Duration
	if status.Details != nil {
		retryAfter = time.Duration(max(status.Details.RetryAfterSeconds, 0)) * time.Second
	}
	code := int(status.Code)
	switch {
	case apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge),
		apierrors.IsTimeout(err) && strings.Contains(status.Message, "Too large resource version"):
		return resultTooLarge, retryAfter
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err), code == http.StatusGone:
		return resultExpired, 0
	case apierrors.IsUnauthorized(err):
		return resultUnauthorized, 0
	case apierrors.IsForbidden(err):
		return resultForbidden, 0
	case apierrors.IsTooManyRequests(err):
		return resultBusy, retryAfter
	case apierrors.IsNotFound(err):
		return resultNotServed, 0
	case code >= http.StatusInternalServerError, code == http.StatusRequestTimeout, retryAfter > 0, code == 0:
		if code == http.StatusNotImplemented {
			return resultRejected, 0
		}
		return resultFailing, retryAfter
	}
	return resultRejected, 0
}
