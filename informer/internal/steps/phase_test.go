// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package steps

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

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/kube"
)

func TestPhase_Next(t *testing.T) {
	now := time.Unix(1e9, 0)
	later := now.Add(streamRetry)
	watching := Progress{Phase: PhaseWatch, Last: "100"}
	listing := Progress{Phase: PhaseList, Last: "100"}
	first := Progress{Phase: PhaseList}
	streaming := Progress{Phase: PhaseStream, Last: "100"}
	with := func(p Progress, f func(*Progress)) Progress { f(&p); return p }
	unused := func(d time.Duration) Progress {
		return with(watching, func(p *Progress) { p.watching.since, p.watching.failing = now.Add(-d), now.Add(-d) })
	}
	listed := func(d time.Duration) Progress {
		return with(unused(time.Hour), func(p *Progress) { p.watching.listed = now.Add(-d) })
	}

	for _, c := range []struct {
		name string
		p    Progress
		o    Outcome
		want string // phase, version of the next list or watch, pace, state, relist
	}{
		// All ways in which a watch ends.
		{"clean end at the timeout", watching, Outcome{Result: ResultEnded, Lived: 7 * time.Minute, Spoke: true}, "watch 100 none - -"},
		{"clean end, early, once", watching, Outcome{Result: ResultEnded, Lived: time.Second}, "watch 100 none - -"},
		{"clean end, early, again", with(watching, func(p *Progress) { p.briefs = 1 }), Outcome{Result: ResultEnded, Lived: time.Second, Spoke: true}, "watch 100 backoff Stale -"},
		{"clean end, early, with news", with(watching, func(p *Progress) { p.briefs = 9 }), Outcome{Result: ResultEnded, Moved: true, Spoke: true}, "watch 100 none - -"},
		{"clean end, early, with a bookmark", with(watching, func(p *Progress) { p.briefs = 9 }), Outcome{Result: ResultEnded, Lived: lively, Spoke: true}, "watch 100 none - -"},
		{"clean end, early, after a while", with(watching, func(p *Progress) { p.briefs = 9 }), Outcome{Result: ResultEnded, Lived: lively}, "watch 100 none - -"},
		{"clean end, early, with news, too often", with(watching, func(p *Progress) { p.reopens = reopens{reopenBurst, now} }), Outcome{Result: ResultEnded, Moved: true, Spoke: true}, "watch 100 reopen - -"},
		{"unexpected end", watching, Outcome{Result: ResultCut}, "watch 100 backoff Stale -"},
		{"refused", watching, Outcome{Result: ResultUnreachable}, "watch 100 away Stale -"},
		{"429", watching, Outcome{Result: resultBusy, RetryAfter: 7 * time.Second}, "watch 100 backoff>7s Stale -"},
		{"503", watching, Outcome{Result: resultFailing, RetryAfter: time.Second}, "watch 100 backoff>1s Stale -"},
		{"a frame that cannot be read", watching, Outcome{Result: resultGarbled}, "watch 100 backoff Stale -"},
		{"410", watching, Outcome{Result: resultExpired}, "stream 100/NotOlderThan anew - expired"},
		{"410, again at once", with(watching, func(p *Progress) { p.expiries = 1 }), Outcome{Result: resultExpired}, "list newest anew - expired"},
		{"410, without streaming lists", with(watching, func(p *Progress) { p.Paged = true }), Outcome{Result: resultExpired}, "list 100/NotOlderThan anew - expired"},
		{"version is too large", watching, Outcome{Result: resultTooLarge, RetryAfter: time.Second}, "list newest backoff>1s - too large resource version"},
		{"400", watching, Outcome{Result: resultRejected}, "list newest backoff Stale rejected"},
		{"403", watching, Outcome{Result: resultForbidden}, "watch 100 slow Forbidden -"},
		{"401", watching, Outcome{Result: resultUnauthorized}, "watch 100 backoff Unauthorized -"},
		{"404", watching, Outcome{Result: resultNotServed}, "stream 100/NotOlderThan slow NotServed not served"},
		{"silence", watching, Outcome{Result: ResultSilent, Spoke: true}, "watch 100 none Stale -"},
		{"silence twice, nothing between", with(watching, func(p *Progress) { p.silences = 1 }), Outcome{Result: ResultSilent}, "list newest backoff Stale silent"},
		{"opened", watching, Outcome{Result: ResultOpened}, "watch 100 none Live -"},

		// Lists that replace useless watches.
		{"garbage for long", unused(failingFor), Outcome{Result: resultGarbled}, "list 100/NotOlderThan none Stale watches of no use"},
		{"garbage for long, and a list since", listed(failingFor / 2), Outcome{Result: resultGarbled}, "watch 100 backoff Stale -"},
		{"garbage for long, and a list long ago", listed(failingFor), Outcome{Result: resultGarbled}, "list 100/NotOlderThan none Stale watches of no use"},
		{"garbage, after something new", unused(failingFor), Outcome{Result: resultGarbled, Moved: true}, "watch 100 backoff Stale -"},
		{"garbage, after something old", unused(failingFor), Outcome{Result: resultGarbled, Spoke: true}, "list 100/NotOlderThan none Stale watches of no use"},
		{"garbage once, after a watch that said nothing", with(unused(cutFor-1), func(p *Progress) { p.watching.failing = time.Time{} }), Outcome{Result: resultGarbled}, "watch 100 backoff Stale -"},
		{"garbage once, after watches that said nothing for long", with(unused(cutFor), func(p *Progress) { p.watching.failing = time.Time{} }), Outcome{Result: resultGarbled}, "list 100/NotOlderThan none Stale watches of no use"},
		{"garbage, after something old and a while", unused(failingFor), Outcome{Result: resultGarbled, Spoke: true, Lived: Brief}, "watch 100 backoff Stale -"},
		{"garbage often", with(watching, func(p *Progress) { p.watching.vain = mostVain - 1 }), Outcome{Result: resultGarbled}, "list 100/NotOlderThan none Stale watches of no use"},
		{"503 for long", unused(failingFor), Outcome{Result: resultFailing, RetryAfter: time.Second}, "list 100/NotOlderThan none>1s Stale watches of no use"},
		{"early ends for long", unused(failingFor), Outcome{Result: ResultEnded, Lived: time.Second, Early: true}, "list 100/NotOlderThan none Stale watches of no use"},
		{"early ends after a while, for long", unused(cutFor - time.Second), Outcome{Result: ResultEnded, Lived: lively, Early: true}, "watch 100 none - -"},
		{"early ends after a while, for longer", unused(cutFor), Outcome{Result: ResultEnded, Lived: lively, Early: true}, "list 100/NotOlderThan none Stale watches of no use"},
		{"breaks for long", unused(cutFor - time.Second), Outcome{Result: ResultCut, Lived: time.Minute, Early: true}, "watch 100 backoff Stale -"},
		{"breaks for longer", unused(cutFor), Outcome{Result: ResultCut, Lived: time.Minute, Early: true}, "list 100/NotOlderThan none Stale watches of no use"},
		{"ends at the timeout, and has said nothing", unused(cutFor), Outcome{Result: ResultEnded, Lived: cutFor}, "watch 100 none - -"},
		{"ends at the timeout for long, and has said nothing", unused(mutedFor), Outcome{Result: ResultEnded, Lived: cutFor}, "list 100/NotOlderThan none Stale watches of no use"},
		{"ends at the timeout for long, and need not say anything", with(unused(mutedFor), func(p *Progress) { p.Foreign = true }), Outcome{Result: ResultEnded, Lived: cutFor}, "watch 100 none - -"},
		{"no answer for long", unused(refusedFor), Outcome{Result: ResultUnreachable}, "list 100/NotOlderThan none Stale watches of no use"},
		{"403 for long", unused(refusedFor), Outcome{Result: resultForbidden}, "list 100/NotOlderThan none Forbidden watches of no use"},
		{"opened again", with(watching, func(p *Progress) { p.Instead = true }), Outcome{Result: ResultOpened}, "watch 100 none - -"},
		{"the list has no answer either", with(listing, func(p *Progress) { p.Instead = true }), Outcome{Result: ResultUnreachable}, "watch 100 away Stale -"},
		{"the list fails too", with(listing, func(p *Progress) { p.Instead = true }), Outcome{Result: resultFailing}, "watch 100 backoff Stale -"},
		{"the list is older than demanded", with(listing, func(p *Progress) { p.Instead = true }), Outcome{Result: resultOlder}, "list newest backoff Stale older than demanded"},
		{"the list is read", with(listing, func(p *Progress) { p.Instead = true }), Outcome{Result: ResultCompleted, Version: "120"}, "watch 120 none - -"},

		// Lists.
		{"first list read", first, Outcome{Result: ResultCompleted, Version: "120"}, "watch 120 none - -"},
		{"list read, older than what was seen", listing, Outcome{Result: ResultCompleted, Version: "50"}, "watch 50 none - -"},
		{"first list refused", first, Outcome{Result: ResultUnreachable}, "list newest away Stale -"},
		{"later list refused", listing, Outcome{Result: ResultUnreachable}, "list 100/NotOlderThan away Stale -"},
		{"list 429", listing, Outcome{Result: resultBusy, RetryAfter: 5 * time.Second}, "list 100/NotOlderThan backoff>5s Stale -"},
		{"list broke off", listing, Outcome{Result: ResultCut, Continued: true}, "list 100/NotOlderThan backoff Stale -"},
		{"list too large", listing, Outcome{Result: resultTooLarge, RetryAfter: time.Second}, "list newest backoff>1s - too large resource version"},
		{"continue token expired", listing, Outcome{Result: resultExpired, Continued: true}, "list 100/NotOlderThan none - continue expired"},
		{"continue token expired again", with(listing, func(p *Progress) { p.restarts = 1 }), Outcome{Result: resultExpired, Continued: true}, "list 100/NotOlderThan whole backoff - continue expired"},
		{"list 410 on its first page", listing, Outcome{Result: resultExpired}, "list newest backoff - expired"},
		{"list 400, with a version", listing, Outcome{Result: resultRejected}, "list newest none - rejected"},
		{"list 400, consistent", first, Outcome{Result: resultRejected}, "list newest slow Stale -"},
		{"list 400, by a field", first, Outcome{Result: resultUnselectable}, "list newest slow Misuse -"},
		{"list 400, by a field that was known", listing, Outcome{Result: resultUnselectable}, "list 100/NotOlderThan slow Misuse -"},
		{"watch 400, by a field", watching, Outcome{Result: resultUnselectable}, "list newest slow Misuse rejected"},
		{"streaming list 400, by a field", streaming, Outcome{Result: resultUnselectable}, "stream 100/NotOlderThan slow Misuse -"},
		{"list 403", first, Outcome{Result: resultForbidden}, "list newest slow Forbidden -"},
		{"list 401", first, Outcome{Result: resultUnauthorized}, "list newest backoff Unauthorized -"},
		{"list 404", first, Outcome{Result: resultNotServed}, "list newest slow NotServed -"},
		{"list that cannot be read", first, Outcome{Result: resultGarbled}, "list newest backoff Stale -"},
		{"list is older than demanded", listing, Outcome{Result: resultOlder}, "list newest backoff Stale older than demanded"},
		{"newest list is older than what was seen", with(listing, func(p *Progress) { p.Consistent = true }), Outcome{Result: resultOlder}, "list newest backoff Stale older than demanded"},
		{"pages lead to themselves", listing, Outcome{Result: resultStuck, Continued: true}, "list 100/NotOlderThan whole backoff Stale pages do not advance"},
		{"page is too slow", listing, Outcome{Result: resultSlow}, "list 100/NotOlderThan backoff Stale -"},
		{"whole list is too slow", with(listing, func(p *Progress) { p.Whole = true }), Outcome{Result: resultSlow}, "list 100/NotOlderThan backoff Stale -"},

		// Streaming lists.
		{"streaming list read", streaming, Outcome{Result: ResultCompleted, Version: "120"}, "watch 120 none Live -"},
		{"streaming list is not known to the server", streaming, Outcome{Result: resultRejected}, "list 100/NotOlderThan none - -"},
		{"streaming list ends without its bookmark", streaming, Outcome{Result: ResultEnded, Spoke: true}, "stream 100/NotOlderThan backoff Stale -"},
		{"streaming list ends without its bookmark, again", with(streaming, func(p *Progress) { p.Tries = 1 }), Outcome{Result: ResultEnded, Spoke: true}, "list 100/NotOlderThan none - -"},
		{"streaming list ends and has said nothing", streaming, Outcome{Result: ResultEnded}, "list 100/NotOlderThan none - -"},
		{"streaming list that cannot be read", streaming, Outcome{Result: resultGarbled}, "list 100/NotOlderThan none - -"},
		{"streaming list goes on forever", streaming, Outcome{Result: ResultEndless, Spoke: true}, "list 100/NotOlderThan none - -"},
		{"streaming list falls silent", streaming, Outcome{Result: ResultSilent}, "stream 100/NotOlderThan backoff Stale -"},
		{"streaming list of a foreign source falls silent", with(streaming, func(p *Progress) { p.Foreign = true }), Outcome{Result: ResultSilent}, "list 100/NotOlderThan none - -"},
		{"streaming list is older than demanded", streaming, Outcome{Result: resultOlder}, "list newest backoff Stale older than demanded"},
		{"streaming list 500", streaming, Outcome{Result: resultFailing}, "stream 100/NotOlderThan backoff Stale -"},
		{"streaming list 500, again", with(streaming, func(p *Progress) { p.Tries = 1 }), Outcome{Result: resultFailing}, "list 100/NotOlderThan backoff Stale -"},
		{"streaming list 403, again", with(streaming, func(p *Progress) { p.Tries = 1 }), Outcome{Result: resultForbidden}, "list 100/NotOlderThan slow Forbidden -"},
		{"streaming list falls silent, again", with(streaming, func(p *Progress) { p.Tries = 1 }), Outcome{Result: ResultSilent}, "list 100/NotOlderThan none - -"},
		{"streaming list 410", streaming, Outcome{Result: resultExpired}, "list newest backoff - expired"},
		{"streaming list too large", streaming, Outcome{Result: resultTooLarge}, "list newest backoff - too large resource version"},
		{"first streaming list too large", Progress{Phase: PhaseStream}, Outcome{Result: resultTooLarge}, "list newest backoff - too large resource version"},
		{"streaming list 429", streaming, Outcome{Result: resultBusy, RetryAfter: 2 * time.Second}, "stream 100/NotOlderThan backoff>2s Stale -"},
		{"streaming list 403", streaming, Outcome{Result: resultForbidden}, "stream 100/NotOlderThan slow Forbidden -"},
		{"a kind without lists", first, Outcome{Result: resultUnlisted}, "list newest slow Misuse -"},
		{"streaming list 404", streaming, Outcome{Result: resultNotServed}, "stream 100/NotOlderThan slow NotServed -"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Now = now
			d := Next(c.p, c.o)
			if got := describe(d); got != c.want {
				t.Errorf("from %+v after %+v:\n got %s\nwant %s\nphase, version, pause, state, reason of a relist", c.p, c.o, got, c.want)
			}
			if d.Next.NoStreamBefore != (time.Time{}) && d.Next.NoStreamBefore != later {
				t.Errorf("streaming lists are off until %v, want %v", d.Next.NoStreamBefore, later)
			}
		})
	}
}

// describe returns a decision as one line.
func describe(d Decision) string {
	p := d.Next
	version, match := p.Last, ""
	if p.Phase != PhaseWatch {
		version, match = p.ListVersion(false)
	}
	if version == "" {
		version = "newest"
	}
	if match != "" {
		version += "/" + match
	}
	if p.Whole {
		version += " whole"
	}
	wait := []string{"none", "backoff", "slow", "away", "anew", "reopen"}[d.pace]
	if d.pace == paceReopen && d.within == 0 {
		wait = "none"
	}
	if d.AtLeast > 0 {
		wait += ">" + d.AtLeast.String()
	}
	dash := func(s string) string {
		if s == "" {
			return "-"
		}
		return s
	}
	return fmt.Sprintf("%s %s %s %s %s", []string{"", "list", "stream", "watch"}[p.Phase], version, wait, dash(string(d.State)), dash(d.Relist))
}

func TestPhase_UseForgetsFailures(t *testing.T) {
	p := Progress{Phase: PhaseWatch, Last: "1", failures: 9, silences: 1, expiries: 9, watching: watchRecord{useless: 9}}
	for _, c := range []struct {
		name             string
		o                Outcome
		attempt, expires int
	}{
		{"it fails at once", Outcome{Result: ResultCut}, 10, 9},
		{"it lives for a second", Outcome{Result: ResultCut, Lived: time.Second}, 5, 4},
		{"it lives for ten", Outcome{Result: ResultCut, Lived: Brief}, 1, 0},
		{"it says something new", Outcome{Result: ResultCut, Moved: true, Spoke: true}, 0, 0},
		{"it says something old", Outcome{Result: ResultCut, Spoke: true}, 10, 0},
	} {
		if d := Next(p, c.o); d.attempt != c.attempt || d.Next.expiries != c.expires {
			t.Errorf("a watch breaks, and %s: got attempt %d and %d expiries, want %d and %d", c.name, d.attempt, d.Next.expiries, c.attempt, c.expires)
		}
	}
	p = Progress{Phase: PhaseList, Last: "1", failures: 9, Tries: 1, restarts: 3, Behind: 1}
	if q := Next(p, Outcome{Result: ResultCompleted, Version: "2"}).Next; q.failures+q.Tries+q.restarts+q.Behind != 0 {
		t.Errorf("after a list: got %+v, want no failures", q)
	}
}

func TestPhase_FirstListFromCacheIsAnOption(t *testing.T) {
	for _, c := range []struct {
		p          Progress
		fromCache  bool
		rv, expect string
	}{
		{Progress{}, false, "", "the first list is consistent"},
		{Progress{}, true, "0", "any state will do"},
		{Progress{Last: "5"}, true, "5", "not older than what was seen"},
		{Progress{Last: "5", Consistent: true}, true, "", "the newest"},
	} {
		if rv, _ := c.p.ListVersion(c.fromCache); rv != c.rv {
			t.Errorf("%+v from cache %v: got %q, want %q: %s", c.p, c.fromCache, rv, c.rv, c.expect)
		}
	}
}

func TestPhase_AdvanceNeverGoesBack_I1(t *testing.T) {
	p := Progress{Last: "100"}
	for _, v := range []string{"99", "", "100"} {
		if p.Advance(v); p.Last != "100" {
			t.Fatalf("after %q: got %s, want 100: an older version was taken", v, p.Last)
		}
	}
	if p.Advance("1000"); p.Last != "1000" {
		t.Errorf("got %s, want 1000: versions are numbers, not texts", p.Last)
	}
	if p.Advance("abc"); p.Last != "abc" {
		t.Errorf("got %s, want abc: where versions are no numbers, arrival decides", p.Last)
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
		{io.EOF, ResultEnded, 0},
		{io.ErrUnexpectedEOF, ResultCut, 0},
		{&url.Error{Op: "Get", Err: io.EOF}, ResultUnreachable, 0},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, ResultUnreachable, 0},
		{base.ErrSilent, ResultSilent, 0},
		{base.ErrOverdue, ResultEnded, 0},
		{errors.New("gibberish"), resultGarbled, 0},
		{&kube.UnexpectedAnswerError{}, resultGarbled, 0},
		{&kube.NotServedError{Err: generic(404)}, resultNotServed, 0},
		{&kube.NotServedError{Unlisted: true}, resultUnlisted, 0},
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
		{apierrors.NewBadRequest("field label not supported: spec.nope"), resultUnselectable, 0},
		{apierrors.NewBadRequest(`"spec.nope" is not a known field selector: only "metadata.name", "metadata.namespace"`), resultUnselectable, 0},
		{apierrors.NewBadRequest("invalid continue token"), resultRejected, 0},
		{generic(http.StatusUnprocessableEntity), resultRejected, 0},
		{generic(http.StatusMethodNotAllowed), resultRejected, 0},
		{generic(http.StatusNotImplemented), resultRejected, 0},
	} {
		for _, err := range []error{c.err, fmt.Errorf("list: %w", c.err)} {
			if got, after := Classify(err); got != c.want || after != c.after {
				t.Errorf("%v: got %d after %v, want %d after %v", err, got, after, c.want, c.after)
			}
		}
	}
}

func TestBackoff_GrowsToItsMostAndNeverPast(t *testing.T) {
	for _, b := range []backoff{retryBackoff, slowBackoff, anewBackoff} {
		before := time.Duration(0)
		for failures := range 100 {
			low, high := b.Delay(failures, 0), b.Delay(failures, 1)
			if low < b.base/2 || high > b.most || low > high || low < before {
				t.Fatalf("%+v after %d failures: got %v to %v, before it was %v", b, failures, low, high, before)
			}
			before = low
		}
		if b.Delay(1, 1) != b.base || b.Delay(100, 1) != b.most {
			t.Errorf("%+v: got %v at first and %v at last", b, b.Delay(1, 1), b.Delay(100, 1))
		}
	}
}

func TestPhase_OutageIsTriedOftenerTheYoungerItIs_A13(t *testing.T) {
	for _, c := range []struct{ outage, late time.Duration }{
		{time.Second, 400 * time.Millisecond}, {3 * time.Second, 400 * time.Millisecond}, {8 * time.Second, time.Second},
		{time.Minute, 7500 * time.Millisecond}, {time.Hour, 30 * time.Second},
	} {
		// Failures before the outage do not count.
		p := Progress{Phase: PhaseWatch, Last: "1", failures: 9, watching: watchRecord{useless: 9}}
		began := time.Unix(1e9, 0)
		now, tries := began, 0
		var wait time.Duration
		for now.Before(began.Add(c.outage)) {
			d := Next(p, Outcome{Result: ResultUnreachable, Now: now})
			if p = d.Next; p.Phase == PhaseList { // instead of the watch, at once
				tries++
				d = Next(p, Outcome{Result: ResultUnreachable, Now: now})
				p = d.Next
			}
			wait = awayBackoff.share(d.away, 1)
			if d.pace != paceAway || p.Phase != PhaseWatch || wait < awayBackoff.base || awayBackoff.share(d.away, 0) < awayBackoff.base/2 {
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
		if d := Next(p, Outcome{Result: resultExpired, Now: now}); !d.Next.away.IsZero() || d.Next.expiries != 1 || d.pace != paceAnew {
			t.Errorf("a 410 after %v: got %+v, want the first pause of a relist: the server answers", c.outage, d)
		}
		// Errors while it starts do not accumulate either.
		began = now
		for now.Before(began.Add(6 * time.Second)) {
			d := Next(p, Outcome{Result: resultFailing, Now: now})
			p, wait = d.Next, d.Pause(1)
			if now = now.Add(wait); wait > 2*time.Second || wait < retryBackoff.base && d.pace == paceBackoff {
				t.Fatalf("a 503 %v after the outage: pauses for %v", now.Sub(began), wait)
			}
		}
	}
}

// FuzzPhase_Next checks that the Reflector never waits without a bound, never
// runs long without a pause, and never forgets what it has seen.
func FuzzPhase_Next(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
	f.Fuzz(func(t *testing.T, script []byte) {
		p := Progress{Phase: PhaseStream}
		hasty := 0
		for i, b := range script {
			o := Outcome{Result: result(b%byte(ResultDemanded)) + 1, Continued: b&0x80 != 0, Spoke: b&0x40 != 0, Now: time.Unix(int64(i), 0)}
			if (o.Result == ResultOpened) != (p.Phase == PhaseWatch && o.Result == ResultOpened) {
				continue
			}
			if o.Result == ResultCompleted {
				if p.Phase == PhaseWatch {
					continue
				}
				o.Version = fmt.Sprint(i + 1)
			}
			d := Next(p, o)
			if d.Next.Phase < PhaseList || d.Next.Phase > PhaseWatch {
				t.Fatalf("step %d: phase %d", i, d.Next.Phase)
			}
			if p.Last != "" && d.Next.Last == "" {
				t.Fatalf("step %d: version %s is forgotten", i, p.Last)
			}
			if d.Next.Phase == PhaseWatch && d.Next.Last == "" {
				t.Fatalf("step %d: a watch without a list before it", i)
			}
			if hasty++; d.pace != paceNone || o.Result == ResultCompleted || o.Result == ResultOpened || o.Spoke {
				hasty = 0
			}
			if hasty > 5 {
				t.Fatalf("step %d: %d failures without a pause", i, hasty)
			}
			p = d.Next
		}
	})
}
