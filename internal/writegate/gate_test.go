// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package writegate

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/internal/effects"
	"github.com/flyball-dev/flyball/reconcile"
)

func TestGate_WritesPassOnlyWhileTheLeaseIsTrusted_M3(t *testing.T) {
	begin := time.Now()
	at := func(running, wall time.Duration) Moment {
		return Moment{running: begin.Add(running), wall: begin.Add(wall).Round(0)}
	}
	held := renewed(at(0, 0), 9*time.Second)
	for _, c := range []struct {
		name string
		term term
		now  Moment
		left time.Duration // 0: refused
	}{
		{"never held", term{}, at(0, 0), 0},
		{"just renewed", held, at(0, 0), 9 * time.Second},
		{"a while later", held, at(4*time.Second, 4*time.Second), 5 * time.Second},
		{"the last Moment", held, at(9*time.Second-1, 9*time.Second-1), 1},
		{"run out", held, at(9*time.Second, 9*time.Second), 0},
		{"run out long ago", held, at(time.Hour, time.Hour), 0},
		{"the machine slept: only the wall clock went on", held, at(time.Second, time.Minute), 0},
		{"the machine slept a little", held, at(time.Second, 3*time.Second), 6 * time.Second},
		{"the wall clock was set back: only the other went on", held, at(time.Minute, -time.Hour), 0},
		{"the wall clock was set back a little while ago", held, at(time.Second, -time.Hour), 8 * time.Second},
		{"renewed since", renewed(at(20*time.Second, 20*time.Second), 9*time.Second), at(21*time.Second, 21*time.Second), 8 * time.Second},
		{"a renewal that was answered when its time was over", held, at(10*time.Second, 10*time.Second), 0},
		{"taken by another", lost("another has it"), at(0, 0), 0},
	} {
		left, err := c.term.mayWrite(c.now)
		if left != c.left || (err == nil) != (c.left > 0) {
			t.Errorf("%s: %v, %v, want %v left", c.name, left, err, c.left)
		}
		if err != nil && !errors.Is(err, reconcile.ErrNotLeading) {
			t.Errorf("%s: %v is not reconcile.ErrNotLeading", c.name, err)
		}
	}
}

// wire is a transport that records complete requests.
type wire struct {
	delay time.Duration // before the body is read
	hangs bool          // until the request's context ends
	code  int           // of the answer; 0: 200
	sent  []string
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	<-time.After(w.delay)
	body := &bytes.Buffer{}
	if req.Body != nil {
		defer req.Body.Close()
		if _, err := body.ReadFrom(req.Body); err != nil {
			return nil, err
		}
	}
	w.sent = append(w.sent, req.Method+" "+body.String())
	if w.hangs {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	return &http.Response{StatusCode: cmp.Or(w.code, http.StatusOK), Body: io.NopCloser(strings.NewReader("answer")), Request: req}, nil
}

func request(t *testing.T, ctx context.Context, method string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, "http://server/api", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// gated runs test in a bubble with a gate of nine seconds.
func gated(t *testing.T, test func(t *testing.T, g *Gate, w *wire, send func(method string) error)) {
	synctest.Test(t, func(t *testing.T) {
		g, w := New(9*time.Second), &wire{}
		test(t, g, w, func(method string) error {
			resp, err := g.Wrap(w).RoundTrip(request(t, t.Context(), method))
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			if text, err := io.ReadAll(resp.Body); err != nil || string(text) != "answer" {
				t.Errorf("%s is answered %q, %v", method, text, err)
			}
			return nil
		})
	})
}

var allWrites = []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

func TestGate_WithoutTheLeaseNothingButReadsIsSent_M3(t *testing.T) {
	gated(t, func(t *testing.T, g *Gate, w *wire, send func(string) error) {
		for _, state := range []struct {
			name   string
			become func()
			pass   bool
		}{
			{"before the first election", func() {}, false},
			{"elected", func() { g.Open(g.Now()) }, true},
			{"after nine seconds", func() { time.Sleep(9 * time.Second) }, false},
			{"renewed by a request sent eight seconds ago", func() {
				sent := g.Now()
				time.Sleep(8 * time.Second)
				g.Open(sent)
			}, true},
			{"a second later", func() { time.Sleep(time.Second) }, false},
			{"renewed", func() { g.Open(g.Now()) }, true},
			{"lost", func() { g.Shut("another has it") }, false},
		} {
			state.become()
			for _, method := range allWrites {
				w.sent = nil
				err := send(method)
				if !state.pass && effects.OutcomeOf(0, err) != effects.Refused {
					t.Errorf("%s: %s: %v does not say that nothing was sent", state.name, method, err)
				}
				if sent := len(w.sent) > 0; sent != state.pass || state.pass != (err == nil) || !state.pass && !errors.Is(err, reconcile.ErrNotLeading) {
					t.Errorf("%s: %s: %v, sent %v, want sent: %v", state.name, method, err, sent, state.pass)
				}
			}
			if err := send(http.MethodGet); err != nil {
				t.Errorf("%s: GET: %v, want reads to pass always", state.name, err)
			}
		}
	})
}

func TestGate_CommandsByGetAreWrites_M3(t *testing.T) {
	for path, want := range map[string]struct{ writes, stream bool }{
		"/api/v1/namespaces/ns/pods/a":                                          {},
		"/api/v1/namespaces/ns/pods/a/log":                                      {},
		"/api/v1/namespaces/ns/pods/a/status":                                   {},
		"/api/v1/namespaces/ns/pods/a/exec":                                     {true, true},
		"/api/v1/namespaces/ns/pods/a/attach":                                   {true, true},
		"/api/v1/namespaces/ns/pods/a/portforward":                              {true, true},
		"/api/v1/namespaces/ns/pods/a/proxy":                                    {true, false},
		"/api/v1/namespaces/ns/pods/a:80/proxy/cache/clear":                     {true, false},
		"/api/v1/namespaces/ns/services/https:a:web/proxy/":                     {true, false},
		"/api/v1/nodes/n/proxy/run/ns/a/main":                                   {true, false},
		"/api/v1/nodes/proxy":                                                   {},
		"/k8s/clusters/c/api/v1/namespaces/ns/pods/exec/exec":                   {true, true},
		"/api/v1/namespaces/ns/pods/exec":                                       {},
		"/api/v1/namespaces/pods/configmaps/exec":                               {},
		"/apis/example.com/v1/namespaces/ns/widgets/a/exec":                     {},
		"/apis/example.com/v1/namespaces/ns/pods/a/proxy":                       {true, false},
		"/apis/example.com/v1/namespaces/nodes/widgets/proxy":                   {},
		"/apis/authorization.k8s.io/v1/namespaces/ns/localsubjectaccessreviews": {},
	} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			writes, stream := kindOf(httptest.NewRequest(method, "https://host"+path, nil))
			if writes != want.writes || stream != want.stream {
				t.Errorf("%s %s: a write %v, a stream %v; want %v", method, path, writes, stream, want)
			}
		}
	}
	upgraded := httptest.NewRequest(http.MethodGet, "https://host/apis/subresources.example.com/v1/namespaces/ns/machines/a/console", nil)
	upgraded.Header.Set("Upgrade", "websocket")
	if writes, stream := kindOf(upgraded); !writes || !stream {
		t.Error("a GET that asks for an upgrade is a read")
	}
	gated(t, func(t *testing.T, g *Gate, w *wire, _ func(string) error) {
		transport := g.Wrap(w)
		run := func() error {
			resp, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "https://host/api/v1/namespaces/ns/pods/a/exec?command=rm", nil))
			if err == nil {
				_ = resp.Body.Close()
			}
			return err
		}
		if err := run(); !errors.Is(err, reconcile.ErrNotLeading) || len(w.sent) > 0 {
			t.Errorf("a standby's command: %v, sent %q", err, w.sent)
		}
		g.Open(g.Now())
		if err := run(); err != nil || len(w.sent) != 1 {
			t.Errorf("a leader's command: %v, sent %q", err, w.sent)
		}
	})
}

// A process that is frozen between the check of the gate and the sending does not
// complete the request.
func TestGate_WriteThatWasFrozenIsNotSent_M3(t *testing.T) {
	gated(t, func(t *testing.T, g *Gate, w *wire, send func(string) error) {
		for _, method := range allWrites {
			g.Open(g.Now())
			w.delay = 10 * time.Second
			if err := send(method); !errors.Is(err, reconcile.ErrNotLeading) {
				t.Errorf("%s: %v, want it refused when it wakes", method, err)
			}
		}
		if len(w.sent) > 0 {
			t.Errorf("sent %q, want nothing", w.sent)
		}
	})
}

func TestGate_RepeatedBodyIsHeldToo_M3(t *testing.T) {
	gated(t, func(t *testing.T, g *Gate, _ *wire, _ func(string) error) {
		g.Open(g.Now())
		held := fenced{gate: g}.held(request(t, t.Context(), http.MethodPut))
		again, err := held.GetBody()
		if err != nil {
			t.Fatal(err)
		}
		g.Shut("another has it")
		if text, err := io.ReadAll(again); !errors.Is(err, reconcile.ErrNotLeading) {
			t.Errorf("a body that is sent again is read as %q, %v, want it refused", text, err)
		}
	})
}

func TestGate_SaysHowEachWriteEnds_M3(t *testing.T) {
	gated(t, func(t *testing.T, g *Gate, w *wire, send func(string) error) {
		var got []string
		g.Follow(
			func(context.Context) { got = append(got, "begun") },
			func(_ context.Context, o effects.Outcome) { got = append(got, fmt.Sprint("ended ", o)) },
		)
		_ = send(http.MethodPut) // is refused
		g.Open(g.Now())
		_ = send(http.MethodPut)
		_ = send(http.MethodGet)
		w.hangs = true
		_ = send(http.MethodPut)
		w.hangs = false
		w.code = http.StatusServiceUnavailable
		g.Open(g.Now())
		_ = send(http.MethodPut)
		want := fmt.Sprintf("begun, ended %d, begun, ended %d, begun, ended %d, begun, ended %[3]d",
			effects.Refused, effects.Accepted, effects.Unknown)
		if strings.Join(got, ", ") != want {
			t.Errorf("followed: %q, want %q", got, want)
		}
	})
}

// panicking is a transport that panics.
type panicking struct{}

func (panicking) RoundTrip(*http.Request) (*http.Response, error) { panic("a test says so") }

// A write whose transport panics is not in flight any more, and its outcome is unknown.
func TestGate_WriteEndsWithAPanic_M3(t *testing.T) {
	gated(t, func(t *testing.T, g *Gate, _ *wire, _ func(string) error) {
		var got []effects.Outcome
		g.Follow(func(context.Context) {}, func(_ context.Context, o effects.Outcome) { got = append(got, o) })
		g.Open(g.Now())
		func() {
			defer func() { _ = recover() }()
			_, _ = g.Wrap(panicking{}).RoundTrip(request(t, t.Context(), http.MethodPut))
		}()
		if len(got) != 1 || got[0] != effects.Unknown || len(g.writes.all()) != 0 {
			t.Errorf("the outcomes are %v, and %d writes are in flight, want one unknown, and none", got, len(g.writes.all()))
		}
	})
}

func TestGate_WriteEndsWithTheLease_M3(t *testing.T) {
	gated(t, func(t *testing.T, g *Gate, w *wire, send func(string) error) {
		g.Open(g.Now())
		time.Sleep(2 * time.Second)
		w.hangs = true
		begin := time.Now()
		err := send(http.MethodPut)
		if !errors.Is(err, reconcile.ErrNotLeading) || !strings.Contains(err.Error(), "its outcome is unknown") {
			t.Errorf("PUT that is not answered: %v, want reconcile.ErrNotLeading, and that nobody knows", err)
		}
		if effects.OutcomeOf(0, err) != effects.Unknown {
			t.Errorf("PUT that is not answered: %v passes for one that was not sent", err)
		}
		if took := time.Since(begin); took != 7*time.Second {
			t.Errorf("it was waited for %v, want the 7s that were left", took)
		}
	})
}

// A slow answer, for example because of a webhook, does not affect a leader that keeps
// renewing.
func TestGate_WriteLastsAsLongAsTheLeaseIsRenewed(t *testing.T) {
	gated(t, func(t *testing.T, g *Gate, w *wire, send func(string) error) {
		g.Open(g.Now())
		w.hangs = true
		begin := time.Now()
		for _, at := range []time.Duration{3 * time.Second, 8 * time.Second, 12 * time.Second} {
			time.AfterFunc(at, func() { g.Open(g.Now()) })
		}
		if err := send(http.MethodPut); !errors.Is(err, reconcile.ErrNotLeading) {
			t.Errorf("PUT = %v, want it given up in the end", err)
		}
		if took := time.Since(begin); took != 21*time.Second {
			t.Errorf("it was waited for %v, want 21s: 9s after the last renewal", took)
		}
	})
}

// A request cancelled by the caller is not a lost lease.
func TestGate_OwnEndOfAWriteIsNoLostLease(t *testing.T) {
	gated(t, func(t *testing.T, g *Gate, w *wire, _ func(string) error) {
		g.Open(g.Now())
		w.hangs = true
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := g.Wrap(w).RoundTrip(request(t, ctx, http.MethodPut)); errors.Is(err, reconcile.ErrNotLeading) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("PUT = %v, want the deadline of the caller", err)
		}
	})
}

func TestGate_WallClockOfASimulationCounts_M3(t *testing.T) {
	gated(t, func(t *testing.T, g *Gate, _ *wire, send func(string) error) {
		ahead := time.Duration(0)
		g.SetWall(func() time.Time { return time.Now().Add(ahead) })
		g.Open(g.Now())
		if err := send(http.MethodPut); err != nil {
			t.Error(err)
		}
		ahead = time.Minute
		if err := send(http.MethodPut); !errors.Is(err, reconcile.ErrNotLeading) {
			t.Errorf("PUT after the wall clock has jumped: %v, want it refused", err)
		}
	})
}
