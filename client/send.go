// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/effects"
	"github.com/flyball-dev/flyball/internal/redact"
	"github.com/flyball-dev/flyball/internal/sleep"
	"github.com/flyball-dev/flyball/internal/textlog"
)

// write sends a body and returns the answer. Its errors are complete messages.
func (c *Client) write(ctx context.Context, at *call, method, contentType, accept string, body []byte) (response, error) {
	req, err := c.request(at, method)
	if err != nil {
		return response{}, at.wrap(err)
	}
	req = req.SetHeader("Content-Type", contentType).SetHeader("Accept", accept).Body(body)
	if at.verb&fieldWrites != 0 {
		req = fieldParams(req, at)
	}
	return c.do(ctx, at, req)
}

// do sends the request and opens the answer. Its errors are complete messages.
func (c *Client) do(ctx context.Context, at *call, req *rest.Request) (response, error) {
	res, err := c.result(ctx, at, req)
	if err != nil {
		observeLost(c, at)
		return response{}, c.fault(ctx, at, err)
	}
	var contentType string
	res.ContentType(&contentType)
	raw, err := res.Raw()
	a := response{}
	if err == nil {
		a, err = effects.Open(contentType, raw)
	}
	if err != nil {
		at.lost = true
		observeLost(c, at)
	}
	if a.Discreet = at.discreet(); a.Discreet {
		err = redact.Decoding(err)
	}
	return a, at.wrap(err)
}

// result sends the request and returns the result, or the server's error.
func (c *Client) result(ctx context.Context, at *call, req *rest.Request) (res rest.Result, err error) {
	req = req.MaxRetries(0) // send decides on retries; it uses more than the status code
	err = c.send(ctx, at, c.opts.Timeout, func(ctx context.Context) error {
		res = req.Do(textlog.Quiet(ctx))
		return at.answered(res.Error())
	})
	return res, err
}

const (
	defaultTimeout     = 90 * time.Second
	defaultRetryWithin = 30 * time.Second
	// minPause is the least wait before a retry, whatever the server asks for.
	minPause = time.Second
)

// repeatable reports whether the call may be retried when it is unknown whether it took
// effect: it changes nothing, is idempotent, or names the version or UID that the first
// attempt would have consumed.
func (at *call) repeatable() bool {
	if at.dryRun {
		return true
	}
	switch at.verb {
	case verbGet, verbList, verbWatch, verbApply:
		return true
	case verbUpdate, verbPatch:
		return at.version != ""
	case verbDelete:
		return at.preconditions != (Preconditions{})
	}
	return false
}

func (at *call) reads() bool { return at.verb&(verbGet|verbList|verbWatch) != 0 }

// attempt is the result of one attempt.
type attempt struct {
	err  error
	code int // of the answer; 0: no answer
	// asked is the Retry-After of the answer, if asksToWait.
	asked      time.Duration
	asksToWait bool

	lost bool // it is not known whether the server has carried out the attempt

	call     *call    // that it belongs to
	observer Observer // of the write; nil: none
}

// ReportsTo implements effects.Reporter: the Observer learns of the write from the call.
func (t *attempt) ReportsTo() any { return t.observer }

// Kind implements effects.Reporter.
func (t *attempt) Kind() schema.GroupVersionKind { return t.call.kind }

// pause returns how long to wait before the next attempt, and whether there may be one.
// It depends only on the result of the last attempt.
func (at *call) pause(t attempt) (wait time.Duration, again bool) {
	switch {
	case t.err == nil:
		return 0, false
	case at.reads() && (net.IsConnectionReset(t.err) || net.IsProbableEOF(t.err) || net.IsHTTP2ConnectionLost(t.err)):
		return minPause, true
	case !t.asksToWait:
		return 0, false
	case t.code == http.StatusTooManyRequests:
		// A disruption budget refuses the eviction itself; a retry does not help.
		return t.asked, !apierrors.HasStatusCause(t.err, policyv1.DisruptionBudgetCause)
	}
	return t.asked, t.code >= http.StatusInternalServerError && at.repeatable()
}

// send calls once, which sends the call's request, and retries while the server asks
// for it and time is left. limit bounds each attempt; 0: only ctx does.
func (c *Client) send(ctx context.Context, at *call, limit time.Duration, once func(context.Context) error) error {
	var before error
	for left := c.opts.RetryWithin; ; {
		t := try(ctx, at, limit, c.opts.Observer, once)
		at.lost = at.lost || t.lost
		at.code = t.code
		wait, again := at.pause(t)
		if !again || wait > left || !delay(ctx, at, wait, t.err) {
			if t.err != nil && before != nil {
				return fmt.Errorf("%w (sent again after: %v)", t.err, before)
			}
			return t.err
		}
		left -= wait
		before = t.err
	}
}

func try(ctx context.Context, at *call, limit time.Duration, observer Observer, once func(context.Context) error) attempt {
	t, ended := attempt{call: at, observer: observer}, ctx.Err() != nil
	limited := effects.WithReporter(ctx, &t)
	if limit > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(limited, limit)
		defer cancel()
	}
	if t.err = once(limited); t.err != nil && limited.Err() != nil && ctx.Err() == nil {
		t.err = fmt.Errorf("no answer within %s: %w", limit, t.err)
	}
	t.lost = t.err != nil && !ended && effects.OutcomeOf(t.code, t.err) != effects.Refused
	return t
}

// delay waits and reports whether it did; it does not if ctx would end first.
func delay(ctx context.Context, at *call, wait time.Duration, why error) bool {
	if deadline, has := ctx.Deadline(); has && time.Until(deadline) <= wait {
		return false
	}
	logr.FromContextOrDiscard(ctx).V(1).Info("Retrying a request", "request", at.String(), "after", wait, "because", why.Error())
	return sleep.For(ctx, wait)
}

// retryAfterReader records the Retry-After header of answers, which the RESTClient does
// not expose.
type retryAfterReader struct{ next http.RoundTripper }

func (r retryAfterReader) RoundTrip(req *http.Request) (*http.Response, error) {
	next := cmp.Or(r.next, http.DefaultTransport)
	resp, err := next.RoundTrip(req)
	if t, ok := effects.ReporterOf(req.Context()).(*attempt); ok && resp != nil {
		t.code = resp.StatusCode
		if seconds, bad := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 31); bad == nil {
			t.asked, t.asksToWait = max(minPause, time.Duration(seconds)*time.Second), true
		}
	}
	return resp, err
}

// WrappedRoundTripper returns the wrapped transport, for code that unwraps transports.
func (r retryAfterReader) WrappedRoundTripper() http.RoundTripper { return r.next }
