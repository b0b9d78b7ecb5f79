// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestPhase_Next(t *testing.T) {
	now := time.Unix(1e9, 0)
	later := now.Add(streamRetry)
	watching := progress{phase: phaseWatch, last: "100"}
	listing := progress{phase: phaseList, last: "100"}
	first := progress{phase: phaseList}
	streaming := progress{phase: phaseStream, last: "100"}
	with := func(p progress, f func(*progress)) progress { f(&p); return p }
	unused := func(d time.Duration) progress {
		return with(watching, func(p *progress) { p.watching.since, p.watching.failing = now.Add(-d), now.Add(-d) })
	}
	listed := func(d time.Duration) progress {
		return with(unused(time.Hour), func(p *progress) { p.watching.listed = now.Add(-d) })
	}

	for _, c := range []struct {
		name string
		p    progress
		o    outcome
		want string // phase, version of the next list or watch, pace, state, relist
	}{
		// A watch that ends, in every way.
		{"clean end at the timeout", watching, outcome{result: resultEnded, lived: 7 * time.Minute, spoke: true}, "watch 100 none - -"},
		{"clean end, early, once", watching, outcome{result: resultEnded, lived: time.Second}, "watch 100 none - -"},
		{"clean end, early, again", with(watching, func(p *progress) { p.briefs = 1 }), outcome{result: resultEnded, lived: time.Second, spoke: true}, "watch 100 backoff Stale -"},
		{"clean end, early, with news", with(watching, func(p *progress) { p.briefs = 9 }), outcome{result: resultEnded, moved: true, spoke: true}, "watch 100 none - -"},
		{"clean end, early, with a bookmark", with(watching, func(p *progress) { p.briefs = 9 }), outcome{result: resultEnded, lived: lively, spoke: true}, "watch 100 none - -"},
		{"clean end, early, after a while", with(watching, func(p *progress) { p.briefs = 9 }), outcome{result: resultEnded, lived: lively}, "watch 100 none - -"},
		{"clean end, early, with news, too often", with(watching, func(p *progress) { p.reopens = reopens{reopenBurst, now} }), outcome{result: resultEnded, moved: true, spoke: true}, "watch 100 reopen - -"},
		{"unexpected end", watching, outcome{result: resultCut}, "watch 100 backoff Stale -"},
		{"refused", watching, outcome{result: resultUnreachable}, "watch 100 away Stale -"},
		{"429", watching, outcome{result: resultBusy, retryAfter: 7 * time.Second}, "watch 100 backoff>7s Stale -"},
		{"503", watching, outcome{result: resultFailing, retryAfter: time.Second}, "watch 100 backoff>1s Stale -"},
		{"a frame that cannot be read", watching, outcome{result: resultGarbled}, "watch 100 backoff Stale -"},
		{"410", watching, outcome{result: resultExpired}, "stream 100/NotOlderThan anew - expired"},
		{"410, again at once", with(watching, func(p *progress) { p.expiries = 1 }), outcome{result: resultExpired}, "list newest anew - expired"},
		{"410, without streaming lists", with(watching, func(p *progress) { p.paged = true }), outcome{result: resultExpired}, "list 100/NotOlderThan anew - expired"},
		{"version is too large", watching, outcome{result: resultTooLarge, retryAfter: time.Second}, "list newest backoff>1s - too large resource version"},
		{"400", watching, outcome{result: resultRejected}, "list newest backoff Stale rejected"},
		{"403", watching, outcome{result: resultForbidden}, "watch 100 slow Forbidden -"},
		{"401", watching, outcome{result: resultUnauthorized}, "watch 100 backoff Unauthorized -"},
		{"404", watching, outcome{result: resultNotServed}, "stream 100/NotOlderThan slow NotServed not served"},
		{"silence", watching, outcome{result: resultSilent, spoke: true}, "watch 100 none Stale -"},
		{"silence twice, nothing between", with(watching, func(p *progress) { p.silences = 1 }), outcome{result: resultSilent}, "list newest backoff Stale silent"},
		{"opened", watching, outcome{result: resultOpened}, "watch 100 none Live -"},

		// Lists that stand in for watches of no use.
		{"garbage for long", unused(failingFor), outcome{result: resultGarbled}, "list 100/NotOlderThan none Stale watches of no use"},
		{"garbage for long, and a list since", listed(failingFor / 2), outcome{result: resultGarbled}, "watch 100 backoff Stale -"},
		{"garbage for long, and a list long ago", listed(failingFor), outcome{result: resultGarbled}, "list 100/NotOlderThan none Stale watches of no use"},
		{"garbage, after something new", unused(failingFor), outcome{result: resultGarbled, moved: true}, "watch 100 backoff Stale -"},
		{"garbage, after something old", unused(failingFor), outcome{result: resultGarbled, spoke: true}, "list 100/NotOlderThan none Stale watches of no use"},
		{"garbage once, after a watch that said nothing", with(unused(cutFor-1), func(p *progress) { p.watching.failing = time.Time{} }), outcome{result: resultGarbled}, "watch 100 backoff Stale -"},
		{"garbage once, after watches that said nothing for long", with(unused(cutFor), func(p *progress) { p.watching.failing = time.Time{} }), outcome{result: resultGarbled}, "list 100/NotOlderThan none Stale watches of no use"},
		{"garbage, after something old and a while", unused(failingFor), outcome{result: resultGarbled, spoke: true, lived: brief}, "watch 100 backoff Stale -"},
		{"garbage often", with(watching, func(p *progress) { p.watching.vain = mostVain - 1 }), outcome{result: resultGarbled}, "list 100/NotOlderThan none Stale watches of no use"},
		{"503 for long", unused(failingFor), outcome{result: resultFailing, retryAfter: time.Second}, "list 100/NotOlderThan none>1s Stale watches of no use"},
		{"early ends for long", unused(failingFor), outcome{result: resultEnded, lived: time.Second, early: true}, "list 100/NotOlderThan none Stale watches of no use"},
		{"early ends after a while, for long", unused(cutFor - time.Second), outcome{result: resultEnded, lived: lively, early: true}, "watch 100 none - -"},
		{"early ends after a while, for longer", unused(cutFor), outcome{result: resultEnded, lived: lively, early: true}, "list 100/NotOlderThan none Stale watches of no use"},
		{"breaks for long", unused(cutFor - time.Second), outcome{result: resultCut, lived: time.Minute, early: true}, "watch 100 backoff Stale -"},
		{"breaks for longer", unused(cutFor), outcome{result: resultCut, lived: time.Minute, early: true}, "list 100/NotOlderThan none Stale watches of no use"},
		{"ends at the timeout, and has said nothing", unused(cutFor), outcome{result: resultEnded, lived: cutFor}, "watch 100 none - -"},
		{"ends at the timeout for long, and has said nothing", unused(mutedFor), outcome{result: resultEnded, lived: cutFor}, "list 100/NotOlderThan none Stale watches of no use"},
		{"ends at the timeout for long, and need not say anything", with(unused(mutedFor), func(p *progress) { p.foreign = true }), outcome{result: resultEnded, lived: cutFor}, "watch 100 none - -"},
		{"no answer for long", unused(refusedFor), outcome{result: resultUnreachable}, "list 100/NotOlderThan none Stale watches of no use"},
		{"403 for long", unused(refusedFor), outcome{result: resultForbidden}, "list 100/NotOlderThan none Forbidden watches of no use"},
		{"opened again", with(watching, func(p *progress) { p.instead = true }), outcome{result: resultOpened}, "watch 100 none - -"},
		{"the list has no answer either", with(listing, func(p *progress) { p.instead = true }), outcome{result: resultUnreachable}, "watch 100 away Stale -"},
		{"the list fails too", with(listing, func(p *progress) { p.instead = true }), outcome{result: resultFailing}, "watch 100 backoff Stale -"},
		{"the list is older than demanded", with(listing, func(p *progress) { p.instead = true }), outcome{result: resultOlder}, "list newest backoff Stale older than demanded"},
		{"the list is read", with(listing, func(p *progress) { p.instead = true }), outcome{result: resultCompleted, version: "120"}, "watch 120 none - -"},

		// Lists.
		{"first list read", first, outcome{result: resultCompleted, version: "120"}, "watch 120 none - -"},
		{"list read, older than what was seen", listing, outcome{result: resultCompleted, version: "50"}, "watch 50 none - -"},
		{"first list refused", first, outcome{result: resultUnreachable}, "list newest away Stale -"},
		{"later list refused", listing, outcome{result: resultUnreachable}, "list 100/NotOlderThan away Stale -"},
		{"list 429", listing, outcome{result: resultBusy, retryAfter: 5 * time.Second}, "list 100/NotOlderThan backoff>5s Stale -"},
		{"list broke off", listing, outcome{result: resultCut, continued: true}, "list 100/NotOlderThan backoff Stale -"},
		{"list too large", listing, outcome{result: resultTooLarge, retryAfter: time.Second}, "list newest backoff>1s - too large resource version"},
		{"continue token expired", listing, outcome{result: resultExpired, continued: true}, "list 100/NotOlderThan none - continue expired"},
		{"continue token expired again", with(listing, func(p *progress) { p.restarts = 1 }), outcome{result: resultExpired, continued: true}, "list 100/NotOlderThan whole backoff - continue expired"},
		{"list 410 on its first page", listing, outcome{result: resultExpired}, "list newest backoff - expired"},
		{"list 400, with a version", listing, outcome{result: resultRejected}, "list newest none - rejected"},
		{"list 400, consistent", first, outcome{result: resultRejected}, "list newest slow Stale -"},
		{"list 403", first, outcome{result: resultForbidden}, "list newest slow Forbidden -"},
		{"list 401", first, outcome{result: resultUnauthorized}, "list newest backoff Unauthorized -"},
		{"list 404", first, outcome{result: resultNotServed}, "list newest slow NotServed -"},
		{"list that cannot be read", first, outcome{result: resultGarbled}, "list newest backoff Stale -"},
		{"list is older than demanded", listing, outcome{result: resultOlder}, "list newest backoff Stale older than demanded"},
		{"newest list is older than what was seen", with(listing, func(p *progress) { p.consistent = true }), outcome{result: resultOlder}, "list newest backoff Stale older than demanded"},
		{"pages lead to themselves", listing, outcome{result: resultStuck, continued: true}, "list 100/NotOlderThan whole backoff Stale pages do not advance"},
		{"page is too slow", listing, outcome{result: resultSlow}, "list 100/NotOlderThan backoff Stale -"},
		{"whole list is too slow", with(listing, func(p *progress) { p.whole = true }), outcome{result: resultSlow}, "list 100/NotOlderThan backoff Stale -"},

		// Streaming lists.
		{"streaming list read", streaming, outcome{result: resultCompleted, version: "120"}, "watch 120 none Live -"},
		{"streaming list is not known to the server", streaming, outcome{result: resultRejected}, "list 100/NotOlderThan none - -"},
		{"streaming list ends without its bookmark", streaming, outcome{result: resultEnded, spoke: true}, "stream 100/NotOlderThan backoff Stale -"},
		{"streaming list ends without its bookmark, again", with(streaming, func(p *progress) { p.tries = 1 }), outcome{result: resultEnded, spoke: true}, "list 100/NotOlderThan none - -"},
		{"streaming list ends and has said nothing", streaming, outcome{result: resultEnded}, "list 100/NotOlderThan none - -"},
		{"streaming list that cannot be read", streaming, outcome{result: resultGarbled}, "list 100/NotOlderThan none - -"},
		{"streaming list goes on for ever", streaming, outcome{result: resultEndless, spoke: true}, "list 100/NotOlderThan none - -"},
		{"streaming list falls silent", streaming, outcome{result: resultSilent}, "stream 100/NotOlderThan backoff Stale -"},
		{"streaming list of a foreign source falls silent", with(streaming, func(p *progress) { p.foreign = true }), outcome{result: resultSilent}, "list 100/NotOlderThan none - -"},
		{"streaming list is older than demanded", streaming, outcome{result: resultOlder}, "list newest backoff Stale older than demanded"},
		{"streaming list 500", streaming, outcome{result: resultFailing}, "stream 100/NotOlderThan backoff Stale -"},
		{"streaming list 500, again", with(streaming, func(p *progress) { p.tries = 1 }), outcome{result: resultFailing}, "list 100/NotOlderThan backoff Stale -"},
		{"streaming list 403, again", with(streaming, func(p *progress) { p.tries = 1 }), outcome{result: resultForbidden}, "list 100/NotOlderThan slow Forbidden -"},
		{"streaming list falls silent, again", with(streaming, func(p *progress) { p.tries = 1 }), outcome{result: resultSilent}, "list 100/NotOlderThan none - -"},
		{"streaming list 410", streaming, outcome{result: resultExpired}, "list newest backoff - expired"},
		{"streaming list too large", streaming, outcome{result: resultTooLarge}, "list newest backoff - too large resource version"},
		{"first streaming list too large", progress{phase: phaseStream}, outcome{result: resultTooLarge}, "list newest backoff - too large resource version"},
		{"streaming list 429", streaming, outcome{result: resultBusy, retryAfter: 2 * time.Second}, "stream 100/NotOlderThan backoff>2s Stale -"},
		{"streaming list 403", streaming, outcome{result: resultForbidden}, "stream 100/NotOlderThan slow Forbidden -"},
		{"streaming list 404", streaming, outcome{result: resultNotServed}, "stream 100/NotOlderThan slow NotServed -"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.now = now
			d := next(c.p, c.o)
			if got := describe(d); got != c.want {
				t.Errorf("from %+v after %+v:\n got %s\nwant %s\nphase, version, pause, state, reason of a relist", c.p, c.o, got, c.want)
			}
			if d.next.noStreamBefore != (time.Time{}) && d.next.noStreamBefore != later {
				t.Errorf("streaming lists are off until %v, want %v", d.next.noStreamBefore, later)
			}
		})
	}
}

// describe is a decision in a line.
func describe(d decision) string {
	p := d.next
	version, match := p.last, ""
	if p.phase != phaseWatch {
		version, match = p.listVersion(false)
	}
	if version == "" {
		version = "newest"
	}
	if match != "" {
		version += "/" + match
	}
	if p.whole {
		version += " whole"
	}
	wait := []string{"none", "backoff", "slow", "away", "anew", "reopen"}[d.pace]
	if d.pace == paceReopen && d.within == 0 {
		wait = "none"
	}
	if d.atLeast > 0 {
		wait += ">" + d.atLeast.String()
	}
	dash := func(s string) string {
		if s == "" {
			return "-"
		}
		return s
	}
	return fmt.Sprintf("%s %s %s %s %s", []string{"", "list", "stream", "watch"}[p.phase], version, wait, dash(string(d.state)), dash(d.relist))
}

func TestPhase_UseForgetsFailures(t *testing.T) {
	p := progress{phase: phaseWatch, last: "1", failures: 9, silences: 1, expiries: 9, watching: watchRecord{useless: 9}}
	for _, c := range []struct {
		name             string
		o                outcome
		attempt, expires int
	}{
		{"it fails at once", outcome{result: resultCut}, 10, 9},
		{"it lives for a second", outcome{result: resultCut, lived: time.Second}, 5, 4},
		{"it lives for ten", outcome{result: resultCut, lived: brief}, 1, 0},
		{"it says something new", outcome{result: resultCut, moved: true, spoke: true}, 0, 0},
		{"it says something old", outcome{result: resultCut, spoke: true}, 10, 0},
	} {
		if d := next(p, c.o); d.attempt != c.attempt || d.next.expiries != c.expires {
			t.Errorf("a watch breaks, and %s: got attempt %d and %d expiries, want %d and %d", c.name, d.attempt, d.next.expiries, c.attempt, c.expires)
		}
	}
	p = progress{phase: phaseList, last: "1", failures: 9, tries: 1, restarts: 3, behind: 1}
	if q := next(p, outcome{result: resultCompleted, version: "2"}).next; q.failures+q.tries+q.restarts+q.behind != 0 {
		t.Errorf("after a list: got %+v, want no failures", q)
	}
}

func TestPhase_FirstListFromCacheIsAnOption(t *testing.T) {
	for _, c := range []struct {
		p          progress
		fromCache  bool
		rv, expect string
	}{
		{progress{}, false, "", "the first list is consistent"},
		{progress{}, true, "0", "any state will do"},
		{progress{last: "5"}, true, "5", "not older than what was seen"},
		{progress{last: "5", consistent: true}, true, "", "the newest"},
	} {
		if rv, _ := c.p.listVersion(c.fromCache); rv != c.rv {
			t.Errorf("%+v from cache %v: got %q, want %q: %s", c.p, c.fromCache, rv, c.rv, c.expect)
		}
	}
}

func TestPhase_AdvanceNeverGoesBack_I1(t *testing.T) {
	p := progress{last: "100"}
	for _, v := range []string{"99", "", "100"} {
		if p.advance(v); p.last != "100" {
			t.Fatalf("after %q: got %s, want 100: an older version was taken", v, p.last)
		}
	}
	if p.advance("1000"); p.last != "1000" {
		t.Errorf("got %s, want 1000: versions are numbers, not texts", p.last)
	}
	if p.advance("abc"); p.last != "abc" {
		t.Errorf("got %s, want abc: where versions are no numbers, arrival decides", p.last)
	}
}

func TestPhase_Classify(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	tooLarge := apierrors.NewTimeoutError("Too large resource version: 9, current: 5", 1)
	tooLarge.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	generic := func(code int) error {
		return apierrors.NewGenericServerResponse(code, "list", pods, "", "", 0, true)
	}
	for _, c := range []struct {
		err   error
		want  result
		after time.Duration
	}{
		{io.EOF, resultEnded, 0},
		{io.ErrUnexpectedEOF, resultCut, 0},
		{&url.Error{Op: "Get", Err: io.EOF}, resultUnreachable, 0},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, resultUnreachable, 0},
		{errSilent, resultSilent, 0},
		{errOverdue, resultEnded, 0},
		{errors.New("gibberish"), resultGarbled, 0},
		{&UnexpectedAnswerError{}, resultGarbled, 0},
		{&NotServedError{Err: generic(404)}, resultNotServed, 0},
		{generic(404), resultNotServed, 0},
		{generic(401), resultUnauthorized, 0},
		{generic(403), resultForbidden, 0},
		{apierrors.NewTooManyRequests("slow", 3), resultBusy, 3 * time.Second},
		{generic(500), resultFailing, 0},
		{generic(502), resultFailing, 0},
		{generic(503), resultFailing, 0},
		{generic(504), resultFailing, 0},
		{apierrors.NewServerTimeout(pods, "list", 2), resultFailing, 2 * time.Second},
		{tooLarge, resultTooLarge, time.Second},
		{apierrors.NewTimeoutError("Too large resource version: 9, current: 5", 1), resultTooLarge, time.Second},
		{apierrors.NewResourceExpired("too old resource version: 1 (393)"), resultExpired, 0},
		{generic(http.StatusGone), resultExpired, 0},
		{generic(http.StatusBadRequest), resultRejected, 0},
		{generic(http.StatusUnprocessableEntity), resultRejected, 0},
		{generic(http.StatusMethodNotAllowed), resultRejected, 0},
		{generic(http.StatusNotImplemented), resultRejected, 0},
	} {
		for _, err := range []error{c.err, fmt.Errorf("list: %w", c.err)} {
			if got, after := classify(err); got != c.want || after != c.after {
				t.Errorf("%v: got %d after %v, want %d after %v", err, got, after, c.want, c.after)
			}
		}
	}
}

func TestBackoff_GrowsToItsMostAndNeverPast(t *testing.T) {
	for _, b := range []backoff{retryBackoff, slowBackoff, anewBackoff} {
		before := time.Duration(0)
		for failures := range 100 {
			low, high := b.delay(failures, 0), b.delay(failures, 1)
			if low < b.base/2 || high > b.most || low > high || low < before {
				t.Fatalf("%+v after %d failures: got %v to %v, before it was %v", b, failures, low, high, before)
			}
			before = low
		}
		if b.delay(1, 1) != b.base || b.delay(100, 1) != b.most {
			t.Errorf("%+v: got %v at first and %v at last", b, b.delay(1, 1), b.delay(100, 1))
		}
	}
}

func TestPhase_OutageIsTriedOftenerTheYoungerItIs_A13(t *testing.T) {
	for _, c := range []struct{ outage, late time.Duration }{
		{time.Second, 400 * time.Millisecond}, {3 * time.Second, 400 * time.Millisecond}, {8 * time.Second, time.Second},
		{time.Minute, 7500 * time.Millisecond}, {time.Hour, 30 * time.Second},
	} {
		// The failures before the outage say nothing of it.
		p := progress{phase: phaseWatch, last: "1", failures: 9, watching: watchRecord{useless: 9}}
		began := time.Unix(1e9, 0)
		now, tries := began, 0
		var wait time.Duration
		for now.Before(began.Add(c.outage)) {
			d := next(p, outcome{result: resultUnreachable, now: now})
			if p = d.next; p.phase == phaseList { // in place of the watch, at once
				tries++
				d = next(p, outcome{result: resultUnreachable, now: now})
				p = d.next
			}
			wait = awayBackoff.share(d.away, 1)
			if d.pace != paceAway || p.phase != phaseWatch || wait < awayBackoff.base || awayBackoff.share(d.away, 0) < awayBackoff.base/2 {
				t.Fatalf("%v of the outage: %+v, after %v: want a pause in each case, and the watch after it", now.Sub(began), d, wait)
			}
			now, tries = now.Add(wait), tries+1
		}
		if late := now.Sub(began) - c.outage; late > c.late {
			t.Errorf("back after %v: noticed %v later, want %v at most", c.outage, late, c.late)
		}
		if most := 48 + 2*int(c.outage/awayBackoff.most); tries > most {
			t.Errorf("back after %v: tried %d times, want %d at most: a storm of requests keeps a server down", c.outage, tries, most)
		}
		if d := next(p, outcome{result: resultExpired, now: now}); !d.next.away.IsZero() || d.next.expiries != 1 || d.pace != paceAnew {
			t.Errorf("a 410 after %v: got %+v, want the first pause of a relist: the server answers", c.outage, d)
		}
		// What it answers while it starts does not add up either.
		began = now
		for now.Before(began.Add(6 * time.Second)) {
			d := next(p, outcome{result: resultFailing, now: now})
			p, wait = d.next, d.pause(1)
			if now = now.Add(wait); wait > 2*time.Second || wait < retryBackoff.base && d.pace == paceBackoff {
				t.Fatalf("a 503 %v after the outage: pauses for %v", now.Sub(began), wait)
			}
		}
	}
}

// FuzzPhase_Next: whatever happens, the Reflector never waits without a bound,
// never runs without a pause for long, and never forgets what it has seen.
func FuzzPhase_Next(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
	f.Fuzz(func(t *testing.T, script []byte) {
		p := progress{phase: phaseStream}
		hasty := 0
		for i, b := range script {
			o := outcome{result: result(b%byte(resultDemanded)) + 1, continued: b&0x80 != 0, spoke: b&0x40 != 0, now: time.Unix(int64(i), 0)}
			if (o.result == resultOpened) != (p.phase == phaseWatch && o.result == resultOpened) {
				continue
			}
			if o.result == resultCompleted {
				if p.phase == phaseWatch {
					continue
				}
				o.version = fmt.Sprint(i + 1)
			}
			d := next(p, o)
			if d.next.phase < phaseList || d.next.phase > phaseWatch {
				t.Fatalf("step %d: phase %d", i, d.next.phase)
			}
			if p.last != "" && d.next.last == "" {
				t.Fatalf("step %d: version %s is forgotten", i, p.last)
			}
			if d.next.phase == phaseWatch && d.next.last == "" {
				t.Fatalf("step %d: a watch without a list before it", i)
			}
			if hasty++; d.pace != paceNone || o.result == resultCompleted || o.result == resultOpened || o.spoke {
				hasty = 0
			}
			if hasty > 5 {
				t.Fatalf("step %d: %d failures without a pause", i, hasty)
			}
			p = d.next
		}
	})
}
