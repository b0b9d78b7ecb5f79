// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/manager"
)

// postbox is a server of Events without a network.
type postbox struct {
	mu       sync.Mutex
	delay    time.Duration
	fail     func(method string) (code int, err error) // nil: nothing fails
	events   map[string]eventsv1.Event                 // by name
	requests []string
}

func newPostbox() *postbox { return &postbox{events: map[string]eventsv1.Event{}} }

func (p *postbox) config() *rest.Config {
	return &rest.Config{Host: "http://server", Transport: p, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

func (p *postbox) RoundTrip(req *http.Request) (*http.Response, error) {
	select {
	case <-time.After(p.delay):
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, req.Method)
	if p.fail != nil {
		if code, err := p.fail(req.Method); err != nil {
			return nil, err
		} else if code != 0 {
			return answer(req, code, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(code), Reason: "Odd"}), nil
		}
	}
	var event eventsv1.Event
	if req.Method == http.MethodPatch {
		event = p.events[req.URL.Path[strings.LastIndex(req.URL.Path, "/")+1:]]
	}
	if err := json.NewDecoder(req.Body).Decode(&event); err != nil {
		return nil, err
	}
	p.events[event.Name] = event
	event.TypeMeta = metav1.TypeMeta{Kind: "Event", APIVersion: "events.k8s.io/v1"}
	return answer(req, http.StatusCreated, event), nil
}

// CloseIdleConnections is called by client-go.
func (p *postbox) CloseIdleConnections() {}

func answer(req *http.Request, code int, body any) *http.Response {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return &http.Response{
		StatusCode: code, Request: req, Body: io.NopCloser(bytes.NewReader(text)),
		Header: http.Header{"Content-Type": {"application/json"}},
	}
}

func (p *postbox) totals() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[string]int{}
	for _, e := range p.events {
		n := 1
		if e.Series != nil {
			n = int(e.Series.Count)
		}
		out[e.Reason] += n
	}
	return out
}

func (p *postbox) sent() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.requests, " ")
}

// posting runs test in a bubble with a manager that sends its events to p.
func posting(t *testing.T, test func(t *testing.T, p *postbox, tell func(object, reason string), end func())) {
	synctest.Test(t, func(t *testing.T) {
		p := newPostbox()
		m := newManager(t, manager.Options{Config: p.config()})
		recorder := m.Events("website")
		stop, wait := run(t, m)
		synctest.Wait()
		ended := false
		end := func() {
			if !ended {
				ended = true
				stop()
				must(t, wait())
			}
		}
		defer end()
		test(t, p, func(object, reason string) {
			recorder.Eventf(newConfigMap(object), nil, corev1.EventTypeNormal, reason, "Test", "%s is %s", object, reason)
		}, end)
	})
}

func TestEvents_WhatIsToldBeforeTheStopIsSent_M7(t *testing.T) {
	posting(t, func(t *testing.T, p *postbox, tell func(object, reason string), end func()) {
		p.delay = 2 * time.Second // time per request
		for i := range 5 {
			tell(fmt.Sprint("map-", i), fmt.Sprint("Reason", i))
		}
		for range 9 {
			tell("map-0", "Reason0")
		}
		end()
		got := p.totals()
		for i := range 5 {
			want := 1
			if i == 0 {
				want = 10
			}
			if reason := fmt.Sprint("Reason", i); got[reason] != want {
				t.Errorf("the server has %d of %s, want %d: it was told before the stop", got[reason], reason, want)
			}
		}
	})
}

// Events of a controller that drains come before the end of the recorder.
func TestEvents_DrainingReconcileIsHeard_M7(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPostbox()
		m := newManager(t, manager.Options{Config: p.config()})
		recorder := m.Events("website")
		must(t, m.Add(manager.RunnableFunc(func(ctx context.Context) error {
			<-ctx.Done()
			<-time.After(time.Second)
			recorder.Eventf(newConfigMap("a"), nil, corev1.EventTypeWarning, "Drained", "Stop", "last words")
			return nil
		})))
		stop, wait := run(t, m)
		synctest.Wait()
		stop()
		must(t, wait())
		if p.totals()["Drained"] != 1 {
			t.Errorf("the server has %v, want the last words of a controller", p.totals())
		}
	})
}

// stalled is a server whose first answer does not end.
type stalled struct {
	*postbox
	once sync.Once
}

func (s *stalled) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := s.postbox.RoundTrip(req)
	s.once.Do(func() { resp.Body = endless{req} })
	return resp, err
}

// endless is a body that is read until the request is cancelled.
type endless struct{ request *http.Request }

func (e endless) Read([]byte) (int, error) {
	<-e.request.Context().Done()
	return 0, e.request.Context().Err()
}

func (endless) Close() error { return nil }

// An Event in flight at the stop is sent again, and its cancelled request is no error.
func TestEvents_StopDuringAnAnswerIsQuiet_M7(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines strings.Builder
		p := newPostbox()
		m, err := manager.New(manager.Options{
			Config: &rest.Config{Host: "http://server", Transport: &stalled{postbox: p}, ContentConfig: rest.ContentConfig{ContentType: "application/json"}},
			Logger: funcr.New(func(_, args string) { lines.WriteString(args + "\n") }, funcr.Options{}), MetricsAddress: "0", HealthAddress: "0",
		})
		must(t, err)
		recorder := m.Events("website")
		stop, wait := run(t, m)
		recorder.Eventf(newConfigMap("a"), nil, corev1.EventTypeNormal, "Ready", "Test", "it is served")
		synctest.Wait()
		stop()
		must(t, wait())
		if got := lines.String(); strings.Contains(got, `"error"`) || !strings.Contains(got, "Stopping the manager") {
			t.Errorf("the stop is logged as this, want no error:\n%s", got)
		}
		if got := p.sent(); got != "POST POST" || p.totals()["Ready"] != 1 {
			t.Errorf("sent %s, and the server has %v; want the Event sent again", got, p.totals())
		}
	})
}

func TestEvents_StopDoesNotWaitForADeadServer_M7(t *testing.T) {
	for name, lame := range map[string]func(p *postbox){
		"refuses connections": func(p *postbox) {
			p.fail = func(string) (int, error) { return 0, errors.New("connection refused") }
		},
		"never answers": func(p *postbox) { p.delay = 1000 * time.Hour },
	} {
		t.Run(name, func(t *testing.T) {
			posting(t, func(t *testing.T, p *postbox, tell func(object, reason string), end func()) {
				lame(p)
				for i := range 100 {
					tell(fmt.Sprint("map-", i), "Lost")
				}
				begin := time.Now()
				end() // Run returns nil
				if took := time.Since(begin); took > 31*time.Second {
					t.Errorf("the stop took %v, want it within the grace period", took)
				}
			})
		})
	}
}

func TestEvents_SameEventIsOneSeries(t *testing.T) {
	posting(t, func(t *testing.T, p *postbox, tell func(object, reason string), _ func()) {
		for range 100 {
			tell("a", "Failed")
			time.Sleep(time.Second)
		}
		if got := p.sent(); got != "POST PATCH" {
			t.Errorf("100 times the same event sent %s, want it and the beginning of its series", got)
		}
		time.Sleep(8 * time.Minute)
		if got := p.totals()["Failed"]; got != 100 {
			t.Errorf("after the series has ended the server counts %d, want 100", got)
		}
		tell("a", "Failed")
		time.Sleep(time.Second)
		if got := p.sent(); got != "POST PATCH PATCH POST" {
			t.Errorf("sent %s, want a new event after the series has ended", got)
		}
	})
}

func TestEvents_OneObjectHasAnAllowance(t *testing.T) {
	posting(t, func(t *testing.T, p *postbox, tell func(object, reason string), _ func()) {
		for i := range 40 {
			tell("loud", fmt.Sprint("Reason", i))
		}
		tell("other", "Heard")
		time.Sleep(time.Second)
		if got := p.totals(); len(got) != 26 || got["Heard"] != 1 {
			t.Errorf("the server has %d reasons, want 25 of the loud object and that of the other", len(got))
		}
		time.Sleep(5 * time.Minute)
		tell("loud", "Later")
		time.Sleep(time.Second)
		if got := p.totals(); got["Later"] != 1 {
			t.Error("after five minutes the loud object is still not heard")
		}
	})
}

func TestEvents_ServerThatFailsIsAskedAgainAndOneThatRefusesIsNot(t *testing.T) {
	posting(t, func(t *testing.T, p *postbox, tell func(object, reason string), _ func()) {
		codes := []int{503, 0, 403}
		lost := true
		p.fail = func(string) (int, error) {
			if lost {
				lost = false
				return 0, errors.New("connection reset")
			}
			code := codes[0]
			codes = append(codes[1:], 0)
			return code, nil
		}
		tell("a", "Late")
		tell("b", "Refused")
		tell("c", "Good")
		time.Sleep(time.Minute)
		if got := p.totals(); got["Late"] != 1 || got["Refused"] != 0 || got["Good"] != 1 {
			t.Errorf("the server has %v, want Late and Good", got)
		}
	})
}

func TestEvents_WhatIsNoEventIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPostbox()
		m := newManager(t, manager.Options{Config: p.config()})
		recorder := m.Events("website")
		stop, wait := run(t, m)
		recorder.Eventf(nil, nil, corev1.EventTypeNormal, "A", "Test", "x")
		recorder.Eventf((*corev1.ConfigMap)(nil), nil, corev1.EventTypeNormal, "B", "Test", "x")
		recorder.Eventf(newConfigMap("a"), nil, "Odd", "C", "Test", "x")
		recorder.Eventf(&eventsv1.EventList{}, nil, corev1.EventTypeNormal, "D", "Test", "x")
		recorder.Eventf(newConfigMap("a"), (*corev1.Pod)(nil), corev1.EventTypeNormal, "Good", "Test", "%s", strings.Repeat("ü", 1000)+"\xff")
		stop()
		must(t, wait())
		recorder.Eventf(newConfigMap("a"), nil, corev1.EventTypeNormal, "TooLate", "Test", "x")
		if got := p.totals(); len(got) != 1 || got["Good"] != 1 {
			t.Errorf("the server has %v, want what is sound", got)
		}
		for _, e := range p.events {
			if len(e.Note) > 1024 || !strings.HasSuffix(e.Note, "ü…") {
				t.Errorf("a note of %d bytes was sent that begins with %.10q, want what the server takes", len(e.Note), e.Note)
			}
			if e.ReportingController != "website" || e.ReportingInstance == "" || e.EventTime.IsZero() || e.Namespace != "default" {
				t.Errorf("sent %+v, which the server would refuse", e)
			}
		}
	})
}

// A server that is always behind still receives the end of a series, and the memory for
// series is bounded.
func TestEvents_SeriesEndWhileMoreIsToldThanIsSent(t *testing.T) {
	posting(t, func(t *testing.T, p *postbox, tell func(object, reason string), _ func()) {
		p.delay = 100 * time.Millisecond
		for range 10 {
			tell("first", "Counted")
			time.Sleep(time.Second)
		}
		others := 0
		for range 12 * 60 { // 24 a second are recorded, ten are sent
			for range 24 {
				others++
				tell(fmt.Sprint("map-", others), "Busy")
			}
			time.Sleep(time.Second)
		}
		if got := p.totals()["Counted"]; got != 10 {
			t.Errorf("the server counts %d in a series that ended minutes ago, want 10", got)
		}
	})
}

// An Event that was refused once is not counted in a series that the server never
// receives.
func TestEvents_WhatWasRefusedIsTriedWhenItComesAgain(t *testing.T) {
	for name, fail := range map[string]func(string) (int, error){
		"refused":     func(string) (int, error) { return 403, nil },
		"unreachable": func(string) (int, error) { return 0, errors.New("connection refused") },
	} {
		t.Run(name, func(t *testing.T) {
			posting(t, func(t *testing.T, p *postbox, tell func(object, reason string), _ func()) {
				p.fail = fail
				tell("a", "Again")
				time.Sleep(5 * time.Minute) // until it is dropped
				p.mu.Lock()
				p.fail = nil
				p.mu.Unlock()
				tell("a", "Again")
				time.Sleep(time.Second)
				if got := p.totals()["Again"]; got != 1 {
					t.Errorf("the server has %d, want the one that it takes now", got)
				}
			})
		})
	}
}
