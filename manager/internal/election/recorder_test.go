// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package election

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

type nobody struct{}

func (nobody) Observe(kube.Written) {}
func (nobody) WhenPassed(schema.GroupVersionKind, kube.Key, kube.Version, func()) func() {
	return func() {}
}

// byPath takes each request for a write of the kind that its path names.
type byPath struct{}

func (byPath) Writes(req *http.Request) (schema.GroupVersionKind, kube.Key, bool) {
	kind, name, _ := strings.Cut(req.URL.Path[1:], "/")
	return schema.GroupVersionKind{Version: "v1", Kind: kind}, kube.Key{Name: name}, req.Method != http.MethodGet
}

// desk is a Recorder and the answer that its writes get.
type desk struct {
	*Recorder
	t     testing.TB
	kinds []schema.GroupKind
	code  int // 0: none arrives

	pending io.Closer // the answer that end reads
}

func newDesk(t testing.TB) *desk {
	d := &desk{t: t, kinds: []schema.GroupKind{secrets, {Kind: "Pod"}}, code: 200}
	d.Recorder = NewRecorder(nobody{}, func() []schema.GroupKind { return d.kinds })
	d.Recognize(byPath{})
	return d
}

func (d *desk) RoundTrip(*http.Request) (*http.Response, error) {
	if d.code == 0 {
		return nil, errors.New("connection reset")
	}
	return &http.Response{StatusCode: d.code, Body: http.NoBody}, nil
}

func (d *desk) send(code int, method, path string) {
	d.t.Helper()
	req, err := http.NewRequest(method, "http://server"+path, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	d.code = code
	if resp, err := d.Wrap(d).RoundTrip(req); err == nil {
		_ = resp.Body.Close()
	}
}

func (d *desk) effect(effect kube.WriteEffect, kind string, version kube.Version) {
	d.Observe(kube.Written{Effect: effect, Kind: schema.GroupVersionKind{Version: "v1", Kind: kind}, Version: version})
}

func (d *desk) effectOn(effect kube.WriteEffect, name string, version kube.Version) {
	d.Observe(kube.Written{Effect: effect, Kind: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Key: kube.Key{Name: name}, Version: version})
}

// begin sends an update whose answer is read by end.
func (d *desk) begin(path string) {
	d.t.Helper()
	req, err := http.NewRequest(http.MethodPut, "http://server"+path, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	d.code = 200
	resp, err := d.Wrap(d).RoundTrip(req)
	if err != nil {
		d.t.Fatal(err)
	}
	d.pending = resp.Body
}

func (d *desk) end() { _ = d.pending.Close() }

// signed returns the kinds in the record of a write of the Lease.
func (d *desk) signed(what LeaseWrite) string {
	l := held("a", 1, 5, nil)
	d.Sign(l, "a", what)
	r, ok := decode(l.Annotations[Annotation])
	if !ok || r.Holder != "a" || r.Transitions != 1 || r.Released != (what == Release) {
		d.t.Errorf("the record is %+v, %v", r, ok)
	}
	return fmt.Sprint(r.Written)[len("map"):]
}

func TestRecorder_KnowsAKindIfEachWriteWasSeen_M13(t *testing.T) {
	for _, row := range []struct {
		name string
		do   func(*desk)
		want string
	}{
		{"nothing written", func(*desk) {}, "[Pod:5 Secret:5]"},
		{"written", func(d *desk) { d.send(200, "PUT", "/Secret"); d.effect(kube.Stored, "Secret", 9) }, "[Pod:5 Secret:9]"},
		{"written twice, seen in the other order", func(d *desk) {
			d.send(200, "PUT", "/Secret")
			d.send(200, "PUT", "/Secret")
			d.effect(kube.Stored, "Secret", 9)
			d.effect(kube.Stored, "Secret", 8)
		}, "[Pod:5 Secret:9]"},
		{"unchanged by an update", func(d *desk) { d.send(200, "PUT", "/Secret"); d.effect(kube.Stored, "Secret", 3) }, "[Pod:5 Secret:5]"},
		{"by a subresource with a version", func(d *desk) { d.send(200, "PUT", "/Secret"); d.effect(kube.Touched, "Secret", 9) }, "[Pod:5 Secret:9]"},
		{"refused", func(d *desk) { d.send(409, "PUT", "/Secret") }, "[Pod:5 Secret:5]"},
		{"read", func(d *desk) { d.send(200, "GET", "/Secret") }, "[Pod:5 Secret:5]"},
		{"a dry run", func(d *desk) { d.send(200, "PUT", "/Secret?dryRun=All") }, "[Pod:5 Secret:5]"},
		{"no answer", func(d *desk) { d.send(0, "PUT", "/Secret") }, "[Pod:5]"},
		{"an error of the server", func(d *desk) { d.send(500, "PUT", "/Secret") }, "[Pod:5]"},
		{"in flight, or its answer was never read", func(d *desk) { d.send(200, "PUT", "/Secret") }, "[Pod:5]"},
		{"deleted", func(d *desk) { d.send(200, "DELETE", "/Secret"); d.effect(kube.Removed, "Secret", 9) }, "[Pod:5]"},
		{"touched", func(d *desk) { d.send(200, "POST", "/Secret"); d.effect(kube.Touched, "Secret", 0) }, "[Pod:5]"},
		{"deleted, then written", func(d *desk) {
			d.send(200, "DELETE", "/Secret")
			d.effect(kube.Removed, "Secret", 0)
			d.send(200, "PUT", "/Secret")
			d.effect(kube.Stored, "Secret", 9)
		}, "[Pod:5]"},
		{"an effect without a write", func(d *desk) {
			d.effect(kube.Stored, "Secret", 9)
			d.send(200, "DELETE", "/Secret")
		}, "[Pod:5]"},
		{"an informer that has ended", func(d *desk) {
			d.kinds = d.kinds[:1]
			d.signed(Renewal)
			d.kinds = append(d.kinds, schema.GroupKind{Kind: "Pod"})
		}, "[Secret:5]"},
		{"an informer that is new", func(d *desk) { d.kinds = append(d.kinds, websites); d.inherit(websites, 5) }, "[Pod:5 Secret:5]"},
	} {
		d := newDesk(t)
		if got := d.signed(Claim); got != "[]" {
			t.Errorf("%s: a claim says %s, want nothing: what the predecessor wrote is not known yet", row.name, got)
		}
		d.inherit(secrets, 5)
		d.inherit(schema.GroupKind{Kind: "Pod"}, 5)
		row.do(d)
		for _, what := range []LeaseWrite{Renewal, Release} {
			if got := d.signed(what); got != row.want {
				t.Errorf("%s: the record is %s, want %s", row.name, got, row.want)
			}
		}
	}
}

// A leader that has not caught up itself hands nothing on.
func TestRecorder_PredecessorsOfThePredecessorCount_M13(t *testing.T) {
	d := newDesk(t)
	d.signed(Claim)
	d.send(200, "PUT", "/Secret")
	d.effect(kube.Stored, "Secret", 3)
	if got := d.signed(Release); got != "[]" {
		t.Errorf("the record is %s, want none: its predecessor may have written later versions", got)
	}
	all := []informer.CaughtUp{
		{Kind: schema.GroupVersionKind{Kind: "Secret"}, Version: 8},
		{Kind: schema.GroupVersionKind{Kind: "Secret"}, Version: 7},
		{Kind: schema.GroupVersionKind{Kind: "Pod"}, Version: 7, Err: errors.New("late")},
		{Kind: schema.GroupVersionKind{Kind: "Pod"}, Version: 7},
		{Kind: schema.GroupVersionKind{Kind: "Node"}}, // not awaited
	}
	if got := fmt.Sprint(passedByAll(all, plan{}.floor)); got != "map[Secret:8]" {
		t.Errorf("it has passed %s, want Secrets alone", got)
	}
	d.inherit(secrets, 8)
	if got := d.signed(Release); got != "[Secret:8]" {
		t.Errorf("the record is %s, want the predecessor's version", got)
	}
}

// Clients look for these methods of their Observer; a receiver that has them keeps them.
type full struct {
	nobody
	asked []string
}

func (f *full) Shares(kube.Object) bool {
	f.asked = append(f.asked, "Shares")
	return true
}

func (f *full) Cached(schema.GroupVersionKind, kube.Key, kube.Object) kube.Object {
	f.asked = append(f.asked, "Cached")
	return &metav1.PartialObjectMetadata{}
}

func TestRecorder_HidesNoMethodOfTheReceiver_M13(t *testing.T) {
	f := &full{}
	r := NewRecorder(f, nil)
	if !r.Shares(nil) || r.Cached(schema.GroupVersionKind{}, kube.Key{}, nil) == nil || len(f.asked) != 2 {
		t.Errorf("asked %v, want both methods", f.asked)
	}
	if r := NewRecorder(nobody{}, nil); r.Shares(nil) || r.Cached(schema.GroupVersionKind{}, kube.Key{}, nil) != nil {
		t.Error("a receiver without the methods shares or holds something")
	}
}

// deaf is a transport that never gets an answer.
type deaf struct{}

var errDeaf = errors.New("no answer")

func (deaf) RoundTrip(*http.Request) (*http.Response, error) { return nil, errDeaf }

func TestRecorder_ReadsCostNoAllocation_M12(t *testing.T) {
	rt := newDesk(t).Wrap(deaf{})
	req, err := http.NewRequest(http.MethodGet, "http://server/Secret", nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = rt.RoundTrip(req) }); n != 0 {
		t.Errorf("a read allocates %v times, want none", n)
	}
}

// shelf are informers that ask the server if they must, which is at a version then.
type shelf struct {
	kinds  []schema.GroupKind
	now    kube.Version
	lists  int
	during func() // is called while a list is under way
}

func (s *shelf) CatchUp(_ context.Context, floor func(schema.GroupKind) informer.Floor) (all []informer.CaughtUp) {
	for _, kind := range s.kinds {
		one, want := informer.CaughtUp{Kind: kind.WithVersion("v1")}, floor(kind)
		if one.Version = want.Version; want.Present {
			s.lists++
			one.Version, one.Lists = s.now, 1
			if s.during != nil {
				s.during()
			}
		}
		all = append(all, one)
	}
	return all
}

// A deletion has no version. The one who takes the shard asks the server, and so does the one who
// gave it away, once. Later moves ask nothing.
func TestRecorder_OneMoveAfterADeletionAsks_M31(t *testing.T) {
	a, b := newDesk(t), newDesk(t)
	server := &shelf{kinds: a.kinds, now: 9}
	for _, d := range []*desk{a, b} {
		d.Begin()
		d.CatchUp(t.Context(), server, func(schema.GroupKind) informer.Floor { return informer.Floor{Present: true} })
	}
	move := func(from, to *desk) (lists int) {
		said := from.Known()
		server.lists = 0
		to.CatchUp(t.Context(), server, func(kind schema.GroupKind) informer.Floor {
			v, known := said[kind]
			return informer.Floor{Version: v, Present: !known}
		})
		return server.lists
	}
	for name, write := range map[string]func(){
		"a deletion":                    func() { a.send(200, "DELETE", "/Secret/x"); a.effectOn(kube.Removed, "x", 0) },
		"a deletion, with a version":    func() { a.send(200, "DELETE", "/Secret/x"); a.effectOn(kube.Removed, "x", 9) },
		"a collection":                  func() { a.send(200, "DELETE", "/Secret"); a.effectOn(kube.Removed, "x", 0) },
		"no answer":                     func() { a.send(0, "PUT", "/Secret/x") },
		"no answer, and that was noted": func() { a.send(0, "PUT", "/Secret/x"); a.effectOn(kube.Touched, "x", 0) },
		"an answer that nobody used":    func() { a.send(200, "PUT", "/Secret/x") },
	} {
		if lists := move(a, b) + move(b, a); lists != 0 {
			t.Errorf("%s: moves before ask %d times", name, lists)
		}
		write()
		server.now++
		if lists := move(a, b); lists != 1 || len(a.Gaps()) != 1 {
			t.Errorf("%s: the first move asks %d times, want once; the gaps are %v", name, lists, a.Gaps())
		}
		a.FillGaps(t.Context(), server)
		server.lists = 0
		a.FillGaps(t.Context(), server)
		if lists := server.lists + move(a, b) + move(b, a) + move(a, b); lists != 0 {
			t.Errorf("%s: later moves ask %d times, want none", name, lists)
		}
		if v := a.Known()[secrets]; v != server.now {
			t.Errorf("%s: version %d is known, want %d", name, v, server.now)
		}
	}
}

// A list shows what had ended when it began, and nothing else.
func TestRecorder_AListCoversWhatCameBefore_M31(t *testing.T) {
	for name, row := range map[string]struct {
		before, during, after func(*desk)
		want                  kube.Version // 0: not known
	}{
		"a deletion during the list": {
			before: func(d *desk) { d.send(200, "DELETE", "/Secret/x"); d.effectOn(kube.Removed, "x", 0) },
			during: func(d *desk) { d.send(200, "DELETE", "/Secret/y"); d.effectOn(kube.Removed, "y", 0) },
		},
		"a write that has not ended when it begins": {
			before: func(d *desk) { d.begin("/Secret/x") },
			during: func(d *desk) { d.end() },
		},
		"one that is seen later": {
			before: func(d *desk) { d.send(0, "PUT", "/Secret/y"); d.begin("/Secret/x") },
			after:  func(d *desk) { d.end(); d.effectOn(kube.Stored, "x", 12) },
			want:   12,
		},
		"one whose effect comes after the list": {
			before: func(d *desk) { d.send(200, "PUT", "/Secret/x") },
			after:  func(d *desk) { d.effectOn(kube.Stored, "x", 8) },
			want:   9,
		},
	} {
		d := newDesk(t)
		d.Begin()
		d.inherit(secrets, 5)
		d.inherit(schema.GroupKind{Kind: "Pod"}, 5)
		row.before(d)
		server := &shelf{kinds: d.kinds, now: 9}
		if row.during != nil {
			server.during = func() { row.during(d) }
		}
		if !d.FillGaps(t.Context(), server) {
			t.Errorf("%s: a gap that was there is not filled; there are %v", name, d.Gaps())
		}
		if row.after != nil {
			row.after(d)
		}
		if got := d.Known()[secrets]; got != row.want {
			t.Errorf("%s: version %d is known, want %d", name, got, row.want)
		}
	}
}

func TestRecorder_AGapThatNoListHasShownIsNotFilled_M31(t *testing.T) {
	d := newDesk(t)
	d.Begin()
	if d.FillGaps(t.Context(), &shelf{kinds: []schema.GroupKind{secrets}, now: 9}) {
		t.Errorf("all gaps are filled, but Pods were not listed; there are %v", d.Gaps())
	}
}

// A dry run that the body of a deletion asks for has no effect. It is not remembered for ever.
func TestRecorder_AWriteWithoutAnEffectIsForgotten_M13(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t)
		d.Begin()
		d.inherit(secrets, 5)
		for range 3 {
			d.send(200, "DELETE", "/Secret/x")
			time.Sleep(effectWithin + 1)
		}
		if open := len(d.mu.notes[secrets].open); open != 1 {
			t.Errorf("%d writes are remembered, want the last", open)
		}
		if v, known := d.Known()[secrets]; known {
			t.Errorf("version %d is known, though the effect of a write is not", v)
		}
	})
}
