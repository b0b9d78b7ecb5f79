// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/flyball-dev/flyball/internal/textlog"
)

// reflectorStatus is what a Reflector shows of itself. Its methods are safe
// for concurrent use.
type reflectorStatus struct {
	log       logr.Logger
	contact   atomic.Int64 // LastContact, nanoseconds since 1970
	version   atomic.Uint64
	bookmarks atomic.Bool  // the server has sent some
	byLists   atomic.Bool  // lists stand in for watches
	objects   atomic.Int64 // of the list that is under way
	mu        struct {
		sync.Mutex
		state      ScopeState
		why        string         // a list is under way or due; empty: it is the first one
		watching   bool           // a watch is open that has yet to show that it is of use
		nags       map[State]*nag // of states that say what is wrong
		complained bool           // of what is wrong now, or was last
	}
}

// unreadables are the objects of a list whose metadata cannot be read.
type unreadables struct {
	n   int
	err error // of the first
}

func (u *unreadables) add(n int, err error) {
	u.n += n
	if u.err == nil {
		u.err = err
	}
}

func (s *reflectorStatus) begin(scope WatchScope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.state = ScopeState{Scope: scope, State: StateWaiting, Since: time.Now(), Relists: map[string]int{}}
}

// logTo sets the logger. Run calls it before anything is logged.
func (s *reflectorStatus) logTo(log logr.Logger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = log.WithValues("scope", s.mu.state.Scope.String())
}

func (s *reflectorStatus) snapshot() ScopeState {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.mu.state
	state.Relists = maps.Clone(state.Relists)
	state.Version = Version(s.version.Load())
	if !state.PagedUntil.After(time.Now()) {
		state.PagedUntil = time.Time{}
	}
	if at := s.contact.Load(); at != 0 {
		state.LastContact = time.Unix(0, at)
	}
	if n := s.objects.Load(); n > 0 && state.State.listing() {
		state.Reason += fmt.Sprintf(", %d objects so far", n)
	}
	return state
}

// trying: a step of phase begins. A state that says what is wrong stays until
// the server has answered.
func (s *reflectorStatus) trying(phase phase) {
	s.mu.Lock()
	s.mu.state.NextTry = time.Time{}
	state := s.mu.state.State
	s.mu.Unlock()
	s.objects.Store(0)
	if state == StateWaiting || state == StateLive || state.listing() {
		s.enter(phase)
	}
}

// enter shows that a list is under way.
func (s *reflectorStatus) enter(phase phase) {
	s.mu.Lock()
	why := cmp.Or(s.mu.why, "the first list is read")
	s.mu.Unlock()
	switch phase {
	case phaseList:
		s.set(StateListing, why)
	case phaseStream:
		s.set(StateStreaming, why)
	}
}

// read: so many objects of a list have arrived.
func (s *reflectorStatus) read(objects int) { s.objects.Store(int64(objects)) }

// follows: another informer's watch feeds the scope.
func (s *reflectorStatus) follows(lender string) {
	s.log.V(1).Info("Sharing the watch of another informer", "of", lender)
}

// demanded: a list is wanted, where phase would have been next.
func (s *reflectorStatus) demanded(reason string, phase phase) {
	if phase != phaseWatch {
		return // one is under way
	}
	s.mu.Lock()
	s.mu.state.Relists[reason]++
	s.mu.why = whyListed(reason)
	s.mu.Unlock()
	s.log.V(1).Info("Listing again", "reason", reason)
}

// lastContact is when the server last sent anything.
func (s *reflectorStatus) lastContact() time.Time { return time.Unix(0, s.contact.Load()) }

// heard: the server has sent something.
func (s *reflectorStatus) heard() { s.contact.Store(time.Now().UnixNano()) }

// reached: the watch has brought the scope to v.
func (s *reflectorStatus) reached(v Version) {
	s.contact.Store(time.Now().UnixNano())
	s.version.Store(uint64(v))
}

func (s *reflectorStatus) sawBookmark()       { s.bookmarks.Store(true) }
func (s *reflectorStatus) hasBookmarks() bool { return s.bookmarks.Load() }

// listed: a whole list of version v is in the DeltaFIFO.
func (s *reflectorStatus) listed(v Version, unreadable unreadables) {
	s.version.Store(uint64(v))
	s.mu.Lock()
	s.mu.state.Synced = true
	s.mu.why = ""
	s.mu.state.Unreadable, s.mu.state.UnreadableReason = unreadable.n, text(unreadable.err)
	s.mu.Unlock()
	if unreadable.n > 0 {
		s.log.Error(unreadable.err, "Objects of the list have no readable name; nothing is taken for deleted until a list can be read in full", "objects", unreadable.n)
	}
}

// unreadable: a frame of the watch carries an object without a readable name.
func (s *reflectorStatus) unreadable(err error) {
	s.mu.Lock()
	s.mu.state.Unreadable++
	first := s.mu.state.UnreadableReason == ""
	if first {
		s.mu.state.UnreadableReason = text(err)
	}
	s.mu.Unlock()
	if first {
		s.log.Error(err, "An event of the watch has no readable object name and is passed over")
	}
}

// anomaly: an event of the watch came where none should, after last. The first
// of each kind is logged.
func (s *reflectorStatus) anomaly(kind anomaly, e shown, last string) {
	s.mu.Lock()
	first := s.mu.state.Anomalies.count(kind)
	s.mu.Unlock()
	if first {
		textlog.Warn(s.log, nil, "An event of the watch is "+kind.String()+"; such events are harmless, and are only counted from now on",
			"key", e.key.String(), "version", e.version.String(), "shown", last)
	}
}

// stranger: a list or watch has brought an object that is not of the scope. The
// first of each count is logged.
func (s *reflectorStatus) stranger(kind anomaly, key Key, err error) {
	s.mu.Lock()
	first := s.mu.state.Anomalies.count(kind)
	s.mu.Unlock()
	if first {
		s.log.Error(err, "The server has sent an object "+kind.String()+", which was not asked for; such objects are not taken, and are only counted from now on",
			"key", key.String())
	}
}

// older: so many lists were refused, since they were older than they had to be.
// The first is logged.
func (s *reflectorStatus) older(n int) {
	s.mu.Lock()
	first := s.mu.state.Anomalies.Older == 0
	s.mu.state.Anomalies.Older += n
	s.mu.Unlock()
	if first {
		s.log.Info("A list is older than what was asked for and is refused; look at the server and at what is in front of it. From now on such lists are only counted")
	}
}

// audited: an audit found that keys differ, or could not be done.
func (s *reflectorStatus) audited(d finding, err error) {
	keys := d.keys
	s.mu.Lock()
	audits := &s.mu.state.Audits
	if err != nil {
		audits.Abandoned++
	} else {
		audits.Done++
		audits.Last = time.Now()
		audits.Differences += len(keys)
		if len(d.rewound) > 0 {
			audits.Rewinds++
		}
	}
	s.mu.Unlock()
	switch {
	case err != nil:
		s.log.V(1).Info("The scope could not be compared with the server", "cause", err.Error())
	case len(keys) > 0:
		what := "Objects differ from the server's though the watch has passed their versions: events were lost; the scope is listed anew"
		if len(d.rewound) > 0 {
			what = "The server has objects in older versions than were seen, in a list that is newer: its versions went back and have passed the watch again; the scope is listed anew"
		}
		textlog.Warn(s.log, nil, what, "objects", len(keys), "keys", namesOf(keys))
	}
}

// undone: a list had keys in older versions than were seen. proved: it is the
// second one in a row.
func (s *reflectorStatus) undone(keys []Key, proved bool) {
	if !proved {
		textlog.Warn(s.log, nil, "A list has objects in older versions than were seen, although it is newer; the scope is listed again to see whether the server's versions went back",
			"objects", len(keys), "keys", namesOf(keys))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.state.Audits.Rewinds++
}

// namesOf the first of keys, for the log.
func namesOf(keys []Key) []string {
	names := make([]string, 0, auditNames)
	for _, key := range keys[:min(len(keys), auditNames)] {
		names = append(names, key.String())
	}
	return names
}

// repaired: a list has made the differences good that were found.
func (s *reflectorStatus) repaired() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.state.Audits.Repaired = s.mu.state.Audits.Differences
}

// wentBack: the server's newest version is before one that was seen.
// overtaken: it is newer again, and its objects are older than those that were seen.
func (s *reflectorStatus) wentBack(last, version string, overtaken bool) {
	s.log.Error(nil, "The server's resource versions went back, as after a restore from a backup; its objects are taken as they are now",
		"seen", last, "newest", version, "overtaken", overtaken)
}

// show takes over what was decided after o.
func (s *reflectorStatus) show(d decision, o outcome, wait time.Duration) {
	s.mu.Lock()
	if o.result == resultOpened || o.result == resultCompleted && d.state == StateLive {
		s.mu.state.Watches++ // a streaming list goes on as a watch
	}
	if d.relist != "" {
		s.mu.state.Relists[d.relist]++
		s.mu.why = whyListed(d.relist)
	}
	if wait > 0 {
		s.mu.state.NextTry = o.now.Add(wait)
	}
	s.mu.Unlock()
	if d.relist != "" {
		s.log.V(1).Info("Listing again", "reason", d.relist, "after", wait, "cause", text(o.err))
	}
	s.byLists.Store(d.next.instead)
	if d.state != "" {
		s.set(d.state, cmp.Or(d.why, text(o.err)))
	}
}

// whyListed is why a scope that was listed is listed again.
func whyListed(reason string) string { return "listed again: " + reason }

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// set changes the state, and logs when it is another one. What is wrong is a warning:
// at once, and again at a falling rate while it lasts or comes back.
func (s *reflectorStatus) set(state State, reason string) {
	s.setIf(func() bool { return true }, state, reason)
}

// setIf is set if holdsLocked, which is called with the lock.
func (s *reflectorStatus) setIf(holdsLocked func() bool, state State, reason string) {
	if state == StateLive {
		reason = ""
	}
	now := time.Now()
	s.mu.Lock()
	if !holdsLocked() {
		s.mu.Unlock()
		return
	}
	was, since := s.mu.state.State, s.mu.state.Since
	s.mu.state.Reason = reason
	if was != state {
		s.mu.state.State, s.mu.state.Since = state, now
	}
	warned := false
	if state.isTrouble() && !s.queuesLocked(state) {
		warned = s.nagLocked(state).due(now)
		s.mu.complained = s.mu.complained || warned
	}
	complained := s.mu.complained
	if state == StateLive {
		s.mu.complained = false
	}
	s.mu.Unlock()
	log := s.log
	if hint := state.hint(); hint != "" {
		log = log.WithValues("hint", hint)
	}
	switch {
	case warned && was != state:
		textlog.Warn(log, nil, "Not up to date: "+reason, "state", state)
	case warned:
		textlog.Warn(log, nil, "Still not up to date: "+reason, "state", state, "for", now.Sub(since).Round(time.Second))
	case was == state, state == StateStopped:
	case state == StateLive && complained:
		log.Info("Up to date again", "was", was, "for", now.Sub(since).Round(time.Millisecond))
	case state == StateLive:
		log.V(1).Info("Watching")
	default:
		log.V(1).Info("Listing", "state", state, "reason", reason)
	}
}

// isTrouble reports whether a state says that something is wrong.
func (s State) isTrouble() bool {
	switch s {
	case StateLive, StateListing, StateStreaming, StateStopped:
		return false
	}
	return true
}

// queuesLocked reports whether the first list only waits for its turn behind other
// lists, and not because the server has asked for it.
func (s *reflectorStatus) queuesLocked(state State) bool {
	return state == StateWaiting && s.mu.state.NextTry.IsZero()
}

func (s *reflectorStatus) nagLocked(state State) *nag {
	if s.mu.nags == nil {
		s.mu.nags = map[State]*nag{}
	}
	if s.mu.nags[state] == nil {
		s.mu.nags[state] = &nag{}
	}
	return s.mu.nags[state]
}

// stopped: Run has ended.
func (s *reflectorStatus) stopped() {
	s.mu.Lock()
	s.mu.state.NextTry = time.Time{}
	reason := s.mu.state.Reason
	s.mu.Unlock()
	s.set(StateStopped, reason)
}
