// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate"
)

// recorder records a run in real time. It is a simulate.Tracer.
type recorder struct {
	start time.Time
	mu    struct {
		sync.Mutex
		server *simulate.Server
		trial  *trial
		step   int
		moved  time.Time
		gap    time.Duration // the longest without movement in a step that then went on
		open   map[int]int   // asks by the number of their request
		last   map[ref]map[string]any
	}
}

func newRecorder(t *trial) *recorder {
	r := &recorder{start: time.Now()}
	r.mu.trial, r.mu.moved = t, time.Now()
	r.mu.open, r.mu.last = map[int]int{}, map[ref]map[string]any{}
	return r
}

func (r *recorder) begin(s *simulate.Server) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.server = s
}

// restart begins to count the time anew.
func (r *recorder) restart() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.start = time.Now()
}

// next begins a step of the user.
func (r *recorder) next(step int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.step, r.mu.moved = step, time.Now()
}

// still returns how long nothing has moved, and the longest time after which it did again.
func (r *recorder) still() (since, gap time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.mu.moved), r.mu.gap
}

func (r *recorder) moveLocked() {
	now := time.Now()
	r.mu.gap = max(r.mu.gap, now.Sub(r.mu.moved))
	r.mu.moved = now
}

// happen records what happened besides changes.
func (r *recorder) happen(to func(*trial) *[]happening, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := to(r.mu.trial)
	*all = append(*all, happening{time.Since(r.start), text})
	r.moveLocked()
}

func ofLives(t *trial) *[]happening  { return &t.lives }
func ofFaults(t *trial) *[]happening { return &t.faults }

func clientOf(r simulate.Request) string {
	if r.Client == user {
		return user
	}
	return operator
}

func refOf(kind string, key types.NamespacedName) ref {
	return ref{kind, keyText(key.Namespace, key.Name)}
}

// Asked records a request.
func (r *recorder) Asked(q simulate.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, kind := r.mu.trial, q.Kind.String()
	if q.Verb == "watch" && clientOf(q) == operator && !slices.Contains(t.watched, kind) {
		t.watched = append(t.watched, kind)
	}
	if !q.Writes() || excused(kind) {
		return
	}
	write := q.Verb + " " + kind
	if q.Subresource != "" {
		write += "/" + q.Subresource
	}
	r.mu.open[q.Number] = len(t.asks)
	t.asks = append(t.asks, ask{At: time.Since(r.start), Step: r.mu.step, Who: clientOf(q), Write: write, Of: refOf(kind, q.Key), path: q.Path})
	r.moveLocked()
}

// Stored records a change.
func (r *recorder) Stored(c simulate.Change) {
	kind := c.Kind.String()
	verb := "updated"
	switch {
	case c.Deleted:
		verb = "deleted"
	case c.Created:
		verb = "created"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.trial.changes = append(r.mu.trial.changes, change{
		At: time.Since(r.start), Step: r.mu.step, Who: cluster, Verb: verb, Of: refOf(kind, c.Key), UID: string(c.UID), Version: uint64(c.Revision),
	})
	if !excused(kind) {
		r.moveLocked()
	}
}

// Answering gives the changes of a write to who asked for it.
func (r *recorder) Answering(q simulate.Request) {
	kind := q.Kind.String()
	r.mu.Lock()
	defer r.mu.Unlock()
	all, asked := r.mu.trial.changes, time.Duration(0)
	if i, ok := r.mu.open[q.Number]; ok {
		asked = r.mu.trial.asks[i].At
	}
	const near = 50
	for i := max(len(all)-near, 0); i < len(all); i++ {
		c := &all[i]
		if c.At < asked || c.Who != cluster || c.Of.Kind != kind || q.Key.Name != "" && c.Of != refOf(kind, q.Key) {
			continue
		}
		c.Who = clientOf(q)
		c.Fields = r.fieldsLocked(c.Of, q)
		return
	}
}

// fieldsLocked returns the fields that a write has changed.
func (r *recorder) fieldsLocked(of ref, q simulate.Request) string {
	if r.mu.server == nil {
		return ""
	}
	namespace, name, both := strings.Cut(of.Key, "/")
	if !both {
		namespace, name = "", namespace
	}
	u, _ := r.mu.server.Object(q.Resource, types.NamespacedName{Namespace: namespace, Name: name}).(*unstructured.Unstructured)
	if u == nil {
		delete(r.mu.last, of)
		return ""
	}
	was := r.mu.last[of]
	r.mu.last[of] = u.Object
	if was == nil {
		return ""
	}
	const most = 6
	var names []string
	same := func(text string) string { return text }
	for _, d := range differ(flatten(was, same), flatten(u.Object, same), func(string) bool { return false }) {
		if name := anywhere(d.Path); !slices.Contains(names, name) && len(names) < most {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// Answered records how a request ended.
func (r *recorder) Answered(q simulate.Request, code int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i, ok := r.mu.open[q.Number]; ok {
		r.mu.trial.asks[i].Code = code
		delete(r.mu.open, q.Number)
	}
}

// Panicked fails the run.
func (r *recorder) Panicked(q simulate.Request, value any, _ []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.trial.addWrong(wrong{"server", "the simulated server panicked at " + q.Path})
}

// Sending does nothing.
func (r *recorder) Sending(simulate.Request, simulate.Event) {}
