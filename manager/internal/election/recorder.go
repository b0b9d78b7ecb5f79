// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package election

import (
	"cmp"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/effects"
	"github.com/flyball-dev/flyball/kube"
)

// Receiver is told the effects of writes. client.Observer is one.
type Receiver interface {
	Observe(w kube.Written)
	WhenPassed(kind schema.GroupVersionKind, key kube.Key, than kube.Version, do func()) (stop func())
}

// Writes tells which requests are writes of watched kinds. *effects.Observer does.
type Writes interface {
	Writes(req *http.Request) (kind schema.GroupVersionKind, key kube.Key, ok bool)
}

// Recorder notes the newest version of each kind that the guarded clients have written, and
// passes the effects on. Make it with NewRecorder.
type Recorder struct {
	next   Receiver
	kinds  func() []schema.GroupKind // that are watched
	writes Writes
	mu     struct {
		sync.Mutex
		notes map[schema.GroupKind]*note
		// inherited is what this leader has passed of its predecessor's writes, for kinds
		// that were watched all the time since it won the lease.
		inherited map[schema.GroupKind]passed
	}
}

// note is what is known about the writes to one kind.
type note struct {
	version kube.Version // the newest
	open    map[*write]struct{}
	// blank counts the writes that may have been carried out and whose versions will not be known,
	// such as deletions and those without an answer. A list has shown the effects of the first
	// covered.
	blank, covered uint64
}

// write is one that has begun, and was neither refused nor seen in its effect.
type write struct {
	key   kube.Key  // without a name for a create
	ended time.Time // the server has carried it out, and the answer was read; zero: not yet
}

// effectWithin is how soon after its answer was read a write has its effect. One that has none by
// then, such as a dry run that the body of a deletion asks for, is not remembered.
const effectWithin = time.Minute

// begin adds a write, and removes those that will have no effect any more.
func (n *note) begin(w *write, now time.Time) {
	for other := range n.open {
		if !other.ended.IsZero() && now.Sub(other.ended) > effectWithin {
			n.end(other)
		}
	}
	n.open[w] = struct{}{}
}

// end removes a write whose version will not be known.
func (n *note) end(w *write) {
	if _, open := n.open[w]; open {
		delete(n.open, w)
		n.blank++
	}
}

// of returns the open write that has an effect on key; nil: there is none.
func (n *note) of(key kube.Key) (found *write) {
	for w := range n.open {
		switch w.key {
		case key:
			return w
		case kube.Key{Namespace: key.Namespace}:
			found = w
		}
	}
	return found
}

// known reports whether the version of each write is known, or a list has shown its effect.
func (n *note) known() bool { return len(n.open) == 0 && n.blank == n.covered }

type passed struct {
	version kube.Version
	known   bool
}

// NewRecorder returns a Recorder that passes effects on to next. kinds returns the watched kinds.
func NewRecorder(next Receiver, kinds func() []schema.GroupKind) *Recorder {
	r := &Recorder{next: next, kinds: kinds}
	r.mu.notes = map[schema.GroupKind]*note{}
	return r
}

// Recognize sets what tells writes apart, before the first request.
func (r *Recorder) Recognize(w Writes) { r.writes = w }

// Observe notes the effect of a write, and passes it on.
func (r *Recorder) Observe(w kube.Written) {
	r.change(w.Kind.GroupKind(), func(n *note) {
		// A server may answer a deletion with the version of the last state.
		of, versioned := n.of(w.Key), w.Effect != kube.Removed && w.Version != 0
		if versioned {
			n.version = max(n.version, w.Version)
			delete(n.open, of)
		} else {
			n.end(of)
		}
	})
	r.next.Observe(w)
}

func (r *Recorder) change(kind schema.GroupKind, f func(*note)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.mu.notes[kind]
	if n == nil {
		n = &note{open: map[*write]struct{}{}}
		r.mu.notes[kind] = n
	}
	f(n)
}

// WhenPassed passes the call on.
func (r *Recorder) WhenPassed(kind schema.GroupVersionKind, key kube.Key, than kube.Version, do func()) (stop func()) {
	return r.next.WhenPassed(kind, key, than, do)
}

// Shares passes the call on if the receiver has the method.
func (r *Recorder) Shares(obj kube.Object) bool {
	s, ok := r.next.(interface{ Shares(kube.Object) bool })
	return ok && s.Shares(obj)
}

// Cached passes the call on if the receiver has the method.
func (r *Recorder) Cached(kind schema.GroupVersionKind, key kube.Key, like kube.Object) kube.Object {
	if c, ok := r.next.(interface {
		Cached(schema.GroupVersionKind, kube.Key, kube.Object) kube.Object
	}); ok {
		return c.Cached(kind, key, like)
	}
	return nil
}

// WatchedKind passes the call on if the receiver has the method.
func (r *Recorder) WatchedKind(resource schema.GroupVersionResource) (kind schema.GroupVersionKind, watched bool) {
	if c, ok := r.next.(interface {
		WatchedKind(schema.GroupVersionResource) (schema.GroupVersionKind, bool)
	}); ok {
		return c.WatchedKind(resource)
	}
	return kind, false
}

// Wrap counts the writes that pass next. It is inside the gate of leader election.
func (r *Recorder) Wrap(next http.RoundTripper) http.RoundTripper { return counted{next, r} }

type counted struct {
	next http.RoundTripper
	*Recorder
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (t counted) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t counted) RoundTrip(req *http.Request) (*http.Response, error) {
	kind, key, ok := t.writes.Writes(req)
	if !ok || strings.Contains(req.URL.RawQuery, "dryRun=") {
		return t.next.RoundTrip(req)
	}
	w := &write{key: key}
	t.change(kind.GroupKind(), func(n *note) { n.begin(w, time.Now()) })
	resp, err := t.next.RoundTrip(req)
	code := 0
	if err == nil {
		code = resp.StatusCode
	}
	switch outcome := effects.OutcomeOf(code, err); {
	case outcome == effects.Refused:
		t.change(kind.GroupKind(), func(n *note) { delete(n.open, w) })
	case outcome == effects.Unknown:
		t.change(kind.GroupKind(), func(n *note) { n.end(w) })
	case resp.Body != nil:
		collection := req.Method == http.MethodDelete && key.Name == "" // has effects on many keys, or none
		resp.Body = &answer{ReadCloser: resp.Body, end: func() {
			t.change(kind.GroupKind(), func(n *note) {
				if w.ended = time.Now(); collection {
					n.end(w)
				}
			})
		}}
	}
	return resp, err
}

// answer is the body of the answer to a write. It calls end once, when it has been read.
type answer struct {
	io.ReadCloser
	once sync.Once
	end  func()
}

// Read implements io.Reader.
func (a *answer) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err != nil {
		a.once.Do(a.end)
	}
	return n, err
}

// Close implements io.Closer.
func (a *answer) Close() error {
	a.once.Do(a.end)
	return a.ReadCloser.Close()
}

// Sign writes the record into a Lease that is about to be written. The first record of a
// leader says nothing about any kind.
func (r *Recorder) Sign(l *coordinationv1.Lease, holder string, what LeaseWrite) {
	watched := r.kinds()
	said := about(l, holder, what == Release)
	said.Written = r.written(watched, what == Claim)
	text := said.encode()
	metav1.SetMetaDataAnnotation(&l.ObjectMeta, Annotation, text)
	if text == "" {
		delete(l.Annotations, Annotation)
	}
}

// written returns the newest version of each kind about which all is known.
func (r *Recorder) written(watched []schema.GroupKind, claim bool) map[string]kube.Version {
	r.mu.Lock()
	defer r.mu.Unlock()
	if claim {
		r.mu.inherited = make(map[schema.GroupKind]passed, len(watched))
		for _, kind := range watched {
			r.mu.inherited[kind] = passed{}
		}
	}
	maps.DeleteFunc(r.mu.inherited, func(kind schema.GroupKind, _ passed) bool { return !slices.Contains(watched, kind) })
	out := map[string]kube.Version{}
	for kind, before := range r.mu.inherited {
		if n := cmp.Or(r.mu.notes[kind], &note{}); before.known && n.known() {
			out[kind.String()] = max(before.version, n.version)
		}
	}
	return out
}

// Begin begins the record of a process that shares the work with others: of the kinds that are watched
// now.
func (r *Recorder) Begin() { r.written(r.kinds(), true) }

// Known returns the newest version that this process, and those whose work it has taken over, have
// written, of each kind of which all is known.
func (r *Recorder) Known() map[schema.GroupKind]kube.Version {
	known := map[schema.GroupKind]kube.Version{}
	for kind, version := range r.written(r.kinds(), false) {
		known[schema.ParseGroupKind(kind)] = version
	}
	return known
}

// mark is what was written to a kind when a list begins, which will show it.
type mark struct {
	blank uint64
	ended []*write
}

func (n *note) mark() (m mark) {
	for w := range n.open {
		if !w.ended.IsZero() {
			m.ended = append(m.ended, w)
		}
	}
	m.blank = n.blank
	return m
}

func (r *Recorder) marks() map[schema.GroupKind]mark {
	r.mu.Lock()
	defer r.mu.Unlock()
	marks := map[schema.GroupKind]mark{}
	for kind, n := range r.mu.notes {
		marks[kind] = n.mark()
	}
	return marks
}

// Gaps returns the kinds of which a list can make known what was written.
func (r *Recorder) Gaps() (gaps []schema.GroupKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for kind, before := range r.mu.inherited {
		n := cmp.Or(r.mu.notes[kind], &note{})
		if !before.known || n.blank != n.covered || len(n.mark().ended) > 0 {
			gaps = append(gaps, kind)
		}
	}
	return gaps
}

// cover notes that a list, which began after m, has shown what was written to kind before.
func (r *Recorder) cover(kind schema.GroupKind, m mark) {
	r.change(kind, func(n *note) {
		n.covered = max(n.covered, m.blank)
		for _, w := range m.ended {
			delete(n.open, w)
		}
	})
}

// disinherit notes that it is not known what those before have written to kind.
func (r *Recorder) disinherit(kind schema.GroupKind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.mu.inherited[kind]; ok {
		r.mu.inherited[kind] = passed{}
	}
}

// inherit notes that this leader has passed version of kind.
func (r *Recorder) inherit(kind schema.GroupKind, version kube.Version) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.mu.inherited[kind]; ok {
		r.mu.inherited[kind] = passed{max(version, r.mu.inherited[kind].version), true}
	}
}
