// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"maps"
	"net/url"
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
	now func() time.Time
	mu  struct {
		sync.Mutex
		server    *simulate.Server
		trial     *trial
		start     time.Time
		step      int
		moved     time.Time
		gap       time.Duration          // the longest without movement in a step that then went on
		moves     map[string]int         // of this step, by what moves
		open      map[int]int            // asks by the number of their request
		asked     map[string]bool        // requests of this process
		counts    map[string]int         // of the program's requests in this window
		window    time.Duration          // its number
		polls     map[string]int         // of the program's requests since the last movement, by sort and path
		polled    time.Time              // the last of them
		watched   map[string]bool        // kinds that this process watches
		seen      map[ref]map[string]any // objects, as they were after their last write
		revisions []int64                // of the trial's changes
	}
}

func newRecorder(t *trial, now func() time.Time) *recorder {
	r := &recorder{now: now}
	r.mu.trial, r.mu.start, r.mu.moved = t, r.now(), r.now()
	r.mu.open, r.mu.seen, r.mu.moves = map[int]int{}, map[ref]map[string]any{}, map[string]int{}
	r.mu.asked, r.mu.watched, r.mu.counts, r.mu.polls = map[string]bool{}, map[string]bool{}, map[string]int{}, map[string]int{}
	return r
}

func (r *recorder) begin(s *simulate.Server) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.server = s
}

// next begins a step of the user.
func (r *recorder) next(step int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if step == 0 {
		r.mu.gap = 0 // the program has started
	}
	r.mu.step, r.mu.moved = step, r.now()
	clear(r.mu.moves)
}

// touch counts as a movement that is not one of the program.
func (r *recorder) touch() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.moved = r.now()
	clear(r.mu.polls)
}

// polls returns what the program has asked for since the last movement, and how long ago it last did.
func (r *recorder) polls() (all map[string]int, last time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.mu.polls), r.now().Sub(r.mu.polled)
}

// started begins another process, which asks and watches anew.
func (r *recorder) started() {
	r.happen(ofLives, "the process starts")
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.mu.asked)
	clear(r.mu.watched)
}

// still returns how long nothing has moved, and the longest time after which it did again.
func (r *recorder) still() (since, gap time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now().Sub(r.mu.moved), r.mu.gap
}

// asking reports whether the program waits for the answer to a write.
func (r *recorder) asking() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.mu.open) > 0
}

// watching returns the kinds that this process watches, and watches reports whether it watches all of some.
func (r *recorder) watching() (kinds []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for kind := range r.mu.watched {
		kinds = append(kinds, kind)
	}
	return kinds
}

func (r *recorder) watches(kinds []string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !slices.ContainsFunc(kinds, func(kind string) bool { return !r.mu.watched[kind] })
}

// busiest says what has moved most in this step.
func (r *recorder) busiest() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	most := mostOf(r.mu.moves)
	return fmt.Sprintf("%s, %d times in this step, the last movement %s ago", most, r.mu.moves[most], r.now().Sub(r.mu.moved).Round(time.Millisecond))
}

func (r *recorder) moveLocked(what string) {
	now := r.now()
	r.mu.gap = max(r.mu.gap, now.Sub(r.mu.moved))
	r.mu.moved = now
	r.mu.moves[what]++
	clear(r.mu.polls)
}

// happen records what happened besides changes.
func (r *recorder) happen(to func(*trial) *[]happening, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := to(r.mu.trial)
	*all = append(*all, happening{r.now().Sub(r.mu.start), text})
	r.moveLocked(text)
}

func ofLives(t *trial) *[]happening  { return &t.lives }
func ofFaults(t *trial) *[]happening { return &t.faults }

func clientOf(r simulate.Request) string {
	if r.Client == user {
		return user
	}
	return operator
}

// window is the time in which requests are counted: the more of them a poll has, the longer the run is.
const window = 10 * time.Second

// countLocked counts a request of the program. The trial has the highest number of its sort in any window.
func (r *recorder) countLocked(sort string) {
	if now := r.now().Sub(r.mu.start) / window; now != r.mu.window {
		r.mu.window = now
		clear(r.mu.counts)
	}
	r.mu.counts[sort]++
	r.mu.trial.requests[sort] = max(r.mu.trial.requests[sort], r.mu.counts[sort])
}

// pollOf names a request that asks for the same as others. mostPolls reads it.
func pollOf(verb, kind, path string) string { return verb + " " + kind + "\n" + path }

// mostPolls returns the highest numbers of requests of each sort that ask for the same.
func mostPolls(polls map[string]int) map[string]int {
	most := map[string]int{}
	for poll, n := range polls {
		sort, _, _ := strings.Cut(poll, "\n")
		most[sort] = max(most[sort], n)
	}
	return most
}

// Asked records a request. The first of each sort of a process is a movement: it starts.
func (r *recorder) Asked(q simulate.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, kind := r.mu.trial, q.Kind.String()
	if clientOf(q) == operator {
		if r.mu.server != nil && !excused(kind) { // of a trace the specs' are counted too
			r.countLocked(q.Verb + " " + kind)
			r.mu.polls[pollOf(q.Verb, kind, q.Path)]++
			r.mu.polled = r.now()
		}
		if sort := q.Verb + " " + q.Path; kind != "" && !r.mu.asked[sort] && !excused(kind) {
			r.mu.asked[sort] = true
			r.moveLocked("the program asks to " + sort)
		}
		if q.Verb == "watch" {
			r.mu.watched[kind] = true
			if !slices.Contains(t.watched, kind) {
				t.watched = append(t.watched, kind)
			}
		}
	}
	if !q.Writes() || ignored(kind) {
		return
	}
	write := q.Verb + " " + kind
	if q.Subresource != "" {
		write += "/" + q.Subresource
	}
	r.mu.open[q.Number] = len(t.asks)
	t.asks = append(t.asks, ask{At: r.now().Sub(r.mu.start), Step: r.mu.step, Who: clientOf(q), Write: write, Of: refOf(kind, q.Key), path: q.Path, Line: senderOf(q)})
}

// senderOf says who has sent a request, as far as the request tells: the stack is that of another process.
func senderOf(q simulate.Request) string {
	if clientOf(q) == user {
		return ""
	}
	// client-go writes program/version (platform) kubernetes/commit, and a program may add /controller.
	name, rest, _ := strings.Cut(q.Agent, "/")
	if _, after, found := strings.Cut(rest, " kubernetes/"); found {
		if _, controller, more := strings.Cut(after, "/"); more {
			name += "/" + controller
		}
	}
	query, _ := url.ParseQuery(q.Query) // what cannot be read says nothing
	if manager := query.Get("fieldManager"); manager != "" && manager != name {
		name += " as " + manager
	}
	return name
}

// Stored records a change.
func (r *recorder) Stored(c simulate.Change) {
	of, verb := refOf(c.Kind.String(), c.Key), "updated"
	switch {
	case c.Deleted:
		verb = "deleted"
	case c.Created:
		verb = "created"
	}
	if of.given() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.mu.trial
	t.changes = append(t.changes, change{At: r.now().Sub(r.mu.start), Step: r.mu.step, Who: cluster, Verb: verb, Of: of, UID: string(c.UID)})
	r.mu.revisions = append(r.mu.revisions, c.Revision)
	for _, i := range r.mu.open {
		if verb == "updated" && t.asks[i].Of == of {
			return // Answering knows whether it is more than a time
		}
	}
	if !excused(of.Kind) {
		r.moveLocked(fmt.Sprintf("%s is %s", of, verb))
	}
}

// Answering gives the changes of a write to who asked for it.
func (r *recorder) Answering(q simulate.Request) {
	for _, i := range r.own(q) {
		r.mu.Lock()
		of, s := r.mu.trial.changes[i].Of, r.mu.server
		r.mu.Unlock()
		if s == nil { // a trace has no objects
			continue
		}
		now, _ := s.Object(q.Resource, keyOf(of)).(*unstructured.Unstructured)
		r.learn(i, now)
	}
}

// own returns the changes of a write, which are from now on of its client.
func (r *recorder) own(q simulate.Request) (changes []int) {
	kind := q.Kind.String()
	r.mu.Lock()
	defer r.mu.Unlock()
	i, known := r.mu.open[q.Number]
	if !known {
		return nil
	}
	asked := r.mu.trial.asks[i]
	all := r.mu.trial.changes
	const near = 50
	for i := max(len(all)-near, 0); i < len(all); i++ {
		c := &all[i]
		if c.At < asked.At || c.Who != cluster || c.Of.Kind != kind || q.Key.Name != "" && c.Of != asked.Of {
			continue
		}
		c.Who, c.Line = asked.Who, asked.Line
		if changes = append(changes, i); q.Verb != "deletecollection" {
			break
		}
	}
	return changes
}

// learn takes note of what a change has made of its object; nil: it is gone.
func (r *recorder) learn(i int, now *unstructured.Unstructured) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &r.mu.trial.changes[i]
	if now == nil {
		delete(r.mu.seen, c.Of)
		return
	}
	r.mu.trial.raise(now)
	was := r.mu.seen[c.Of]
	r.mu.seen[c.Of] = now.Object
	if was != nil {
		c.Fields = fieldsBetween(was, now.Object)
	}
	if c.Verb == "updated" && (was == nil || c.Fields != "") {
		r.moveLocked(c.Of.String() + " is updated: " + c.Fields)
	}
}

// fieldsBetween names fields in which two states of an object differ.
func fieldsBetween(was, is map[string]any) string {
	const most = 6
	var names []string
	same := func(text string) string { return text }
	for _, d := range differ(flatten(was, same), flatten(is, same), func(string) bool { return false }) {
		if name := anywhere(d.Path); !slices.Contains(names, name) && len(names) < most {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

func keyOf(of ref) types.NamespacedName {
	namespace, name, both := strings.Cut(of.Key, "/")
	if !both {
		namespace, name = "", namespace
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// sameWrites is how many writes that change nothing, or are refused, count as movements if they are alike.
const sameWrites = 3

// Answered records how a request ended.
func (r *recorder) Answered(q simulate.Request, code int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i, ok := r.mu.open[q.Number]
	if !ok {
		return
	}
	delete(r.mu.open, q.Number)
	a := &r.mu.trial.asks[i]
	a.Code, a.Done = code, r.now().Sub(r.mu.start)
	if what := fmt.Sprintf("%s asks to %s %s, which is answered with %d", a.Who, a.Write, a.Of.Key, code); r.mu.moves[what] < sameWrites {
		r.moveLocked(what)
	}
}

// end numbers the changes as plans count them: creations, deletions and what the user does, but not how often the
// program has updated something.
func (r *recorder) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := uint64(0)
	for i := range r.mu.trial.changes {
		if c := &r.mu.trial.changes[i]; c.counts() {
			n++
		}
		r.mu.trial.changes[i].Version = n
	}
}

func (c change) counts() bool { return !excused(c.Of.Kind) && (c.Who == user || c.Verb != "updated") }

// revisions returns how many revisions ago it was before the last n changes that count.
func (r *recorder) revisions(n int64) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.mu.revisions
	for i, c := range slices.Backward(r.mu.trial.changes) {
		if c.counts() {
			if n--; n <= 0 {
				return all[len(all)-1] - all[i] + 1
			}
		}
	}
	return int64(len(all))
}

// Panicked fails the run.
func (r *recorder) Panicked(q simulate.Request, value any, _ []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.trial.addWrong(wrong{"server", "the simulated server panicked at " + q.Path})
}

// Sending does nothing.
func (r *recorder) Sending(simulate.Request, simulate.Event) {}
