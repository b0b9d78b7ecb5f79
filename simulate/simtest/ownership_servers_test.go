// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simtest_test

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/ownership"
)

// inStep is the duration of the Leases of members whose clocks go wrong, in seconds. A clock that is
// slow or fast by one part in this has measured it when it shows one second less or more.
const inStep = 20

// clock is that of a member, as the Leases show it: what it writes as its time is wrong by an hour, and
// it measures durations with a clock of its own. The member is given the durations that the wrong clock
// would take for the right one, so the Leases that it reads and writes are converted.
type clock struct {
	next    http.RoundTripper
	wrong   time.Duration
	seconds string // how long this clock takes for inStep seconds: 19, 20 or 21
}

var timeOf = regexp.MustCompile(`"(renewTime|acquireTime)":"([^"]+)"`)

// RoundTrip sends a request as a member with this clock would, and converts the answer.
func (c *clock) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Accept", "application/json")
	if req.Body != nil {
		text, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		text = timeOf.ReplaceAllFunc(durations(text, c.seconds, strconv.Itoa(inStep)), func(field []byte) []byte {
			parts := timeOf.FindSubmatch(field)
			at, err := time.Parse(time.RFC3339Nano, string(parts[2]))
			if err != nil {
				return field
			}
			return []byte(`"` + string(parts[1]) + `":"` + at.Add(c.wrong).Format("2006-01-02T15:04:05.000000Z07:00") + `"`)
		})
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	}
	resp, err := c.next.RoundTrip(req)
	if err == nil {
		resp.ContentLength = -1
		resp.Header.Del("Content-Length")
		resp.Body = &converted{Closer: resp.Body, lines: bufio.NewReader(resp.Body), to: c.seconds}
	}
	return resp, err
}

// durations replaces the durations of Leases.
func durations(text []byte, from, to string) []byte {
	for _, end := range []string{",", "}"} {
		const field = `"leaseDurationSeconds":`
		text = bytes.ReplaceAll(text, []byte(field+from+end), []byte(field+to+end))
	}
	return text
}

// converted is an answer with the durations of another clock.
type converted struct {
	io.Closer
	lines *bufio.Reader
	rest  []byte
	to    string
	err   error
}

// Read blocks for a line.
func (c *converted) Read(b []byte) (int, error) {
	if len(c.rest) == 0 && c.err == nil {
		c.rest, c.err = c.lines.ReadBytes('\n')
		c.rest = durations(c.rest, strconv.Itoa(inStep), c.to)
	}
	n := copy(b, c.rest)
	if c.rest = c.rest[n:]; len(c.rest) > 0 {
		return n, nil
	}
	return n, c.err
}

// seconds are how long the clocks of members take for inStep seconds.
var seconds = []int{inStep, inStep - 1, inStep + 1}

// clocked gives cfg to a member with a clock, and returns how long its Lease lasts by that clock.
func clocked(cfg *rest.Config, wrong time.Duration, takes int) (*rest.Config, func(*ownership.Options)) {
	cfg.Transport = &clock{cfg.Transport, wrong, strconv.Itoa(takes)}
	return cfg, func(o *ownership.Options) { o.LeaseDuration = time.Duration(takes) * time.Second }
}

// front is one of several API servers of a cluster: members that use it see what it does. Its watches may lag
// behind the store, to which it still writes. It may lose the store.
type front struct {
	mu struct {
		sync.Mutex
		lags, lost bool
		changed    chan struct{} // closed at the next change of lags and lost
	}
}

// set makes it lag behind, or lose the store, or neither.
func (f *front) set(lags, lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.lags, f.mu.lost = lags, lost
	if f.mu.changed != nil {
		close(f.mu.changed)
		f.mu.changed = nil
	}
}

// state returns what set was given, and a channel that is closed when that changes.
func (f *front) state() (lags, lost bool, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.changed == nil {
		f.mu.changed = make(chan struct{})
	}
	return f.mu.lags, f.mu.lost, f.mu.changed
}

// fronted are the requests of one member to a front.
type fronted struct {
	*front
	next http.RoundTripper
}

// RoundTrip sends a request to the store, unless that is lost: then it waits as long as an API server does.
func (f fronted) RoundTrip(req *http.Request) (*http.Response, error) {
	watch := req.URL.Query().Get("watch") != ""
	if _, lost, _ := f.state(); lost && !watch {
		select {
		case <-req.Context().Done():
			return nil, req.Context().Err()
		case <-time.After(7 * time.Second): // etcd's client gives up
			return nil, errCut
		}
	}
	resp, err := f.next.RoundTrip(req)
	if err == nil && watch {
		resp.Body = &lateEvents{ReadCloser: resp.Body, front: f.front, closed: make(chan struct{}), ctx: req.Context().Done()}
	}
	return resp, err
}

// lateEvents are the events of a watch of a front.
type lateEvents struct {
	io.ReadCloser
	front  *front
	closed chan struct{}
	once   sync.Once
	ctx    <-chan struct{}
}

// Read returns events when the front has them.
func (l *lateEvents) Read(b []byte) (int, error) {
	n, err := l.ReadCloser.Read(b)
	for {
		lags, lost, changed := l.front.state()
		if !lags && !lost {
			return n, err
		}
		select {
		case <-changed:
		case <-l.closed:
			return 0, io.ErrUnexpectedEOF
		case <-l.ctx:
			return 0, io.ErrUnexpectedEOF
		}
	}
}

// Close ends Read.
func (l *lateEvents) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.ReadCloser.Close()
}

// Wall clocks that differ by an hour, and clocks of which one is a tenth faster than another, change nothing:
// each measures durations by itself.
func TestOwnership_ClocksAnHourApart_M33(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFleet(t, 32)
		defer r.end()
		for i := range 4 {
			cfg, change := clocked(rest.CopyConfig(r.server.Config), time.Duration(i%3-1)*time.Hour, seconds[i%3])
			r.startWith(cfg, change)
		}
		r.watchFor(25 * time.Second)
		even := []int{8, 8, 8, 8}
		if got := r.held(); !slices.Equal(got, even) {
			t.Fatalf("members whose clocks differ hold %v shards, want %v", got, even)
		}
		before := r.writes()
		r.watchFor(10 * time.Minute)
		if got := r.held(); !slices.Equal(got, even) {
			t.Errorf("after ten minutes the members hold %v shards, want %v: none ends another one", got, even)
		}
		if writes, most := r.writes()-before, (4+32/8)*10*60/(inStep-1); writes > most {
			t.Errorf("%d writes in ten minutes, want at most %d", writes, most)
		}
		r.all[3].stop(ownership.ErrAbandoned)
		<-r.all[3].done
		r.watchFor((inStep + 5) * time.Second)
		if got := r.live(); got[0]+got[1]+got[2] != 32 {
			t.Errorf("%d s after one has ended the others hold %v shards, want all 32", inStep+5, got)
		}
	})
}

// A member whose API server lags behind the store asks that with each renewal, and keeps its shards. If the
// server has lost the store, the member does not trust itself, and others take its shards, until it is well again.
func TestOwnership_OneOfTwoServers_M31(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(map[bool]string{false: "lags", true: "lost"}[lost], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newFleet(t, 12)
				defer r.end()
				second := &r.second
				defer second.set(false, false)
				r.start()
				r.start()
				cfg := rest.CopyConfig(r.server.Config)
				cfg.Transport = fronted{second, cfg.Transport}
				r.startWith(cfg)
				r.watchFor(20 * time.Second)
				even := []int{4, 4, 4}
				if got := r.held(); !slices.Equal(got, even) {
					t.Fatalf("three members hold %v shards, want %v", got, even)
				}
				second.set(!lost, lost)
				r.watchFor(time.Minute)
				want := even
				if lost {
					want = []int{6, 6, 0}
				}
				if got := r.held(); !slices.Equal(got, want) {
					t.Errorf("a minute later the members hold %v shards, want %v", got, want)
				}
				second.set(false, false)
				r.watchFor(time.Minute)
				if got := r.held(); !slices.Equal(got, even) {
					t.Errorf("when both servers are well the members hold %v shards, want %v", got, even)
				}
			})
		})
	}
}
