// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"cmp"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/steps"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/kube"
)

// reflectorStatus is the visible state of a Reflector. Safe for concurrent use.
type reflectorStatus struct {
	log       logr.Logger
	contact   atomic.Int64 // LastContact, nanoseconds since 1970
	Version   atomic.Uint64
	bookmarks atomic.Bool  // the server has sent some
	byLists   atomic.Bool  // lists replace watches
	objects   atomic.Int64 // received of the present list
	Misused   func()       // called when the request turns out to be misuse; set before Run, nil: nobody asks
	mu        struct {
		sync.Mutex
		state      state.Scope
		why        string                       // reason of the present or pending list; empty: the first list
		watching   bool                         // a watch is open that has not proved useful yet
		throttles  map[state.State]*logThrottle // by state, for states of trouble
		complained bool                         // about the present trouble, or the last one
	}
}

// unreadables counts the objects of a list with unreadable metadata.
type unreadables struct {
	n   int
	err error
}

func (u *unreadables) add(n int, err error) {
	u.n += n
	if u.err == nil {
		u.err = err
	}
}

func (s *reflectorStatus) begin(scope listwatch.Scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.state = state.Scope{Scope: scope, State: state.Waiting, Since: time.Now(), Relists: map[string]int{}}
}

// logTo sets the logger. Run calls it before anything is logged.
func (s *reflectorStatus) logTo(log logr.Logger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = log.WithValues("scope", s.mu.state.Scope.String())
}

func (s *reflectorStatus) snapshot() state.Scope {
	s.mu.Lock()
	defer s.mu.Unlock()
	current := s.mu.state
	current.Relists = maps.Clone(current.Relists)
	current.Version = kube.Version(s.Version.Load())
	if !current.PagedUntil.After(time.Now()) {
		current.PagedUntil = time.Time{}
	}
	if at := s.contact.Load(); at != 0 {
		current.LastContact = time.Unix(0, at)
	}
	if n := s.objects.Load(); n > 0 && isListing(current.State) {
		current.Reason += fmt.Sprintf(", %d objects so far", n)
	}
	return current
}

func (s *reflectorStatus) isLive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.state.State == state.Live
}

// trying records that a step of phase begins. A state of trouble stays until
// the server answers.
func (s *reflectorStatus) trying(phase steps.Phase) {
	s.mu.Lock()
	s.mu.state.NextTry = time.Time{}
	current := s.mu.state.State
	s.mu.Unlock()
	s.objects.Store(0)
	if current == state.Waiting || current == state.Live || isListing(current) {
		s.enter(phase)
	}
}

// enter records that a list is in progress.
func (s *reflectorStatus) enter(phase steps.Phase) {
	s.mu.Lock()
	why := cmp.Or(s.mu.why, "the first list is read")
	doubtful := s.mu.state.State == state.DoesNotFit // until the list is complete
	s.mu.Unlock()
	if doubtful {
		return
	}
	switch phase {
	case steps.PhaseList:
		s.set(state.Listing, why)
	case steps.PhaseStream:
		s.set(state.Streaming, why)
	}
}

func (s *reflectorStatus) read(objects int) { s.objects.Store(int64(objects)) }

// follows records that another informer's watch feeds the scope.
func (s *reflectorStatus) follows(lender string) {
	s.log.V(1).Info("Sharing the watch of another informer", "of", lender)
}

// demanded records a demanded list where phase would have been next.
func (s *reflectorStatus) demanded(reason string, phase steps.Phase) {
	if phase != steps.PhaseWatch {
		return
	}
	s.mu.Lock()
	s.mu.state.Relists[reason]++
	s.mu.why = whyListed(reason)
	s.mu.Unlock()
	s.log.V(1).Info("Relisting", "reason", reason)
}

func (s *reflectorStatus) lastContact() time.Time { return time.Unix(0, s.contact.Load()) }

func (s *reflectorStatus) recordContact() { s.contact.Store(time.Now().UnixNano()) }

// reached records that the watch has brought the scope to v.
func (s *reflectorStatus) reached(v kube.Version) {
	s.contact.Store(time.Now().UnixNano())
	s.Version.Store(uint64(v))
}

func (s *reflectorStatus) recordBookmark()    { s.bookmarks.Store(true) }
func (s *reflectorStatus) hasBookmarks() bool { return s.bookmarks.Load() }

// listed records that a whole list of version v is in the DeltaFIFO.
func (s *reflectorStatus) listed(v kube.Version, unreadable unreadables) {
	s.Version.Store(uint64(v))
	s.mu.Lock()
	s.mu.state.Synced = true
	s.mu.why = ""
	s.mu.state.Unreadable, s.mu.state.UnreadableReason = unreadable.n, base.TextOf(unreadable.err)
	s.mu.Unlock()
	if unreadable.n > 0 {
		s.log.Error(unreadable.err, "The list has objects without a readable name; no object counts as deleted until a list can be read in full", "objects", unreadable.n)
	}
}

// unreadable records a frame of the watch with an object without a readable
// name.
func (s *reflectorStatus) unreadable(err error) {
	s.mu.Lock()
	s.mu.state.Unreadable++
	first := s.mu.state.UnreadableReason == ""
	if first {
		s.mu.state.UnreadableReason = base.TextOf(err)
	}
	s.mu.Unlock()
	if first {
		s.log.Error(err, "Ignoring a watch event whose object name cannot be read")
	}
}

// anomaly records an event out of order, after version last. The first of each
// kind is logged.
func (s *reflectorStatus) anomaly(kind base.Anomaly, e shown, last string) {
	s.mu.Lock()
	first := countAnomaly(&s.mu.state.Anomalies, kind)
	s.mu.Unlock()
	if first {
		textlog.Warn(s.log, nil, "An event of the watch is "+kind.String()+"; such events are harmless; further ones are only counted",
			"key", e.key.String(), "version", e.version.String(), "shown", last)
	}
}

// stranger records an object that is not of the scope. The first of each kind
// is logged.
func (s *reflectorStatus) stranger(kind base.Anomaly, key kube.Key, err error) {
	s.mu.Lock()
	first := countAnomaly(&s.mu.state.Anomalies, kind)
	s.mu.Unlock()
	if first {
		s.log.Error(err, "Ignoring an object "+kind.String()+" that the server should not have sent; further ones are only counted",
			"key", key.String())
	}
}

// older records n lists that were refused as too old. The first is logged.
func (s *reflectorStatus) older(n int) {
	s.mu.Lock()
	first := s.mu.state.Anomalies.Older == 0
	s.mu.state.Anomalies.Older += n
	s.mu.Unlock()
	if first {
		s.log.Info("Refused a list that is older than the version asked for; check the server and any proxy in front of it. Further ones are only counted")
	}
}

// Audited records the result of an audit.
func (s *reflectorStatus) Audited(d Finding, err error) {
	keys := d.Keys
	s.mu.Lock()
	audits := &s.mu.state.Audits
	if err != nil {
		audits.Abandoned++
	} else {
		audits.Done++
		audits.Last = time.Now()
		audits.Differences += len(keys)
		if len(d.Rewound) > 0 {
			audits.Rewinds++
		}
	}
	s.mu.Unlock()
	switch {
	case err != nil:
		s.log.V(1).Info("Cannot audit the scope", "cause", err.Error())
	case len(keys) > 0:
		what := "Objects differ from the server's though the watch has passed their versions: events were lost; relisting the scope"
		if len(d.Rewound) > 0 {
			what = "The server has objects in older versions than were seen, in a newer list: its versions went back and have since passed those of the watch; relisting the scope"
		}
		textlog.Warn(s.log, nil, what, "objects", len(keys), "keys", namesOf(keys))
	}
}

// undone records that a list had keys in older versions than seen. proved: it
// is the second one in a row.
func (s *reflectorStatus) undone(keys []kube.Key, proved bool) {
	if !proved {
		textlog.Warn(s.log, nil, "A list has objects in older versions than the cache, although it is newer; relisting to see whether the server's versions went back",
			"objects", len(keys), "keys", namesOf(keys))
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.state.Audits.Rewinds++
}

func namesOf(keys []kube.Key) []string {
	names := make([]string, 0, auditNames)
	for _, key := range keys[:min(len(keys), auditNames)] {
		names = append(names, key.String())
	}
	return names
}

func (s *reflectorStatus) repaired() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.state.Audits.Repaired = s.mu.state.Audits.Differences
}

// wentBack records that the server's versions went back. overtaken: its newest
// version is newer again, but its objects are older than seen.
func (s *reflectorStatus) wentBack(last, version string, overtaken bool) {
	s.log.Error(nil, "The server's resource versions went back, as after a restore from a backup; replacing the cached objects",
		"seen", last, "newest", version, "overtaken", overtaken)
}

// show records the decision after o.
func (s *reflectorStatus) show(d steps.Decision, o steps.Outcome, wait time.Duration) {
	s.mu.Lock()
	if o.Result == steps.ResultOpened || o.Result == steps.ResultCompleted && d.State == state.Live {
		s.mu.state.Watches++ // a streaming list continues as a watch
	}
	if d.Relist != "" {
		s.mu.state.Relists[d.Relist]++
		s.mu.why = whyListed(d.Relist)
	}
	if wait > 0 {
		s.mu.state.NextTry = o.Now.Add(wait)
	}
	s.mu.Unlock()
	if d.Relist != "" {
		s.log.V(1).Info("Relisting", "reason", d.Relist, "after", wait, "cause", base.TextOf(o.Err))
	}
	s.byLists.Store(d.Next.Instead)
	if d.State != "" {
		s.set(d.State, cmp.Or(d.Why, base.TextOf(o.Err)))
	}
}

// whyListed is the reason shown for a relist.
func whyListed(reason string) string { return "listed again: " + reason }

// set changes the state and logs a change. Trouble is logged as a warning, at
// once and then at a falling rate while it lasts or recurs.
func (s *reflectorStatus) set(current state.State, reason string) {
	s.setIf(func() bool { return true }, current, reason)
}

// setIf is set if holdsLocked, called with the lock, returns true.
func (s *reflectorStatus) setIf(holdsLocked func() bool, current state.State, reason string) {
	if current == state.Live {
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
	if was != current {
		s.mu.state.State, s.mu.state.Since = current, now
	}
	warned := false
	if isTrouble(current) && !s.queuesLocked(current) {
		warned = s.throttleLocked(current).due(now)
		s.mu.complained = s.mu.complained || warned
	}
	complained, synced := s.mu.complained, s.mu.state.Synced
	if current == state.Live {
		s.mu.complained = false
	}
	s.mu.Unlock()
	if current == state.Misuse && s.Misused != nil {
		s.Misused()
	}
	log := s.log
	if hint := current.Hint(synced); hint != "" {
		log = log.WithValues("hint", hint)
	}
	switch {
	case warned && was != current:
		textlog.Warn(log, nil, "Not up to date: "+reason, "state", current)
	case warned:
		textlog.Warn(log, nil, "Still not up to date: "+reason, "state", current, "for", now.Sub(since).Round(time.Second))
	case was == current, current == state.Stopped:
	case current == state.Live && complained:
		log.Info("Up to date again", "was", was, "for", now.Sub(since).Round(time.Millisecond))
	case current == state.Live:
		log.V(1).Info("Watching")
	default:
		log.V(1).Info("Listing", "state", current, "reason", reason)
	}
}

func isTrouble(s state.State) bool {
	switch s {
	case state.Live, state.Listing, state.Streaming, state.Stopped:
		return false
	}
	return true
}

// queuesLocked reports whether the first list waits only behind other lists,
// not because the server asked for it.
func (s *reflectorStatus) queuesLocked(current state.State) bool {
	return current == state.Waiting && s.mu.state.NextTry.IsZero()
}

func (s *reflectorStatus) throttleLocked(current state.State) *logThrottle {
	if s.mu.throttles == nil {
		s.mu.throttles = map[state.State]*logThrottle{}
	}
	if s.mu.throttles[current] == nil {
		s.mu.throttles[current] = &logThrottle{}
	}
	return s.mu.throttles[current]
}

// Stopped records that Run has ended.
func (s *reflectorStatus) Stopped() {
	s.mu.Lock()
	s.mu.state.NextTry = time.Time{}
	reason := s.mu.state.Reason
	s.mu.Unlock()
	s.set(state.Stopped, reason)
}

// auditNames is how many differing keys are logged.
const auditNames = 5

// Finding is the difference between a scope and a list.
type Finding struct {
	Keys []kube.Key
	// Rewound are those keys that the server has in an older version than the
	// scope, in a list that is not older than that version: changes were
	// undone.
	Rewound []kube.Key
}

func isListing(s state.State) bool { return s == state.Listing || s == state.Streaming }
