// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/flyball-dev/flyball/informer/internal/pacing"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/internal/textlog"
)

// relistSpread is the time over which the lists after a change are spread,
// since a change ends the watches of every client at once.
const relistSpread = 3 * time.Second

// Watch observes the schemas of a factory's kinds. When watches broke early it
// compares the hashes in the server's index of OpenAPI documents, with one
// request for all kinds and no permissions beyond those of discovery. It
// relists each scope whose objects may have an older schema. Safe for
// concurrent use.
type Watch struct {
	server *restclient.Server
	log    logr.Logger
	sim    simhook.Hooks // of the run; nil: none
	woken  chan struct{} // has one token if there is something new to wait for
	mu     struct {
		sync.Mutex
		scopes  map[*Scope]struct{}    // watched now
		hashes  map[string]fingerprint // by the path of the group-version
		version fingerprint
		limit   checkLimit
		first   time.Time // of the first check; zero: nothing is listed yet
		looked  bool
		refused bool // already logged
	}
}

// Scope is one scope of a kind. Its methods accept nil and then do nothing.
type Scope struct {
	of     *Watch
	path   string
	name   string
	relist func()
	// blind: no list shows the schema, so that only the call of relist answers a suspicion.
	blind bool
	// The fields below are guarded by of.mu.
	suspicion
	broken bool      // suspicion applies
	at     time.Time // of the pending list; zero: none
}

func NewWatch(server *restclient.Server, log logr.Logger) *Watch {
	w := &Watch{server: server, log: textlog.Throttled(log), woken: make(chan struct{}, 1)}
	w.mu.scopes = make(map[*Scope]struct{})
	w.mu.hashes = make(map[string]fingerprint)
	return w
}

// Scope returns the scope of that name, of a kind of gv. relist relists it.
func (w *Watch) Scope(gv schema.GroupVersion, name string, relist func()) *Scope {
	return &Scope{of: w, path: restclient.GroupPath(gv), name: name, relist: relist}
}

// BlindScope is Scope for metadata, in which a changed schema does not show. again tells those who
// act on the objects.
func (w *Watch) BlindScope(gv schema.GroupVersion, name string, again func()) *Scope {
	s := w.Scope(gv, name, nil)
	s.blind, s.relist = true, func() {
		again()
		s.update(func() { s.suspicion, s.broken = suspicion{listed: time.Now()}, false })
	}
	return s
}

func (s *Scope) update(f func()) {
	if s == nil {
		return
	}
	s.of.mu.Lock()
	f()
	s.of.mu.Unlock()
	select {
	case s.of.woken <- struct{}{}:
	default:
	}
}

// Join begins to observe the scope, Leave ends it.
func (s *Scope) Join()  { s.update(func() { s.of.joinLocked(s) }) }
func (s *Scope) Leave() { s.update(func() { s.of.leaveLocked(s) }) }

func (w *Watch) joinLocked(s *Scope)  { w.mu.scopes[s] = struct{}{} }
func (w *Watch) leaveLocked(s *Scope) { delete(w.mu.scopes, s) }

// Complete records that a list that began at that time is stored. Only the
// first list, or one compared by content, proves that the objects have the
// present schema.
func (s *Scope) Complete(began time.Time, byContent bool) {
	s.update(func() {
		if byContent && !s.blind || s.listed.IsZero() {
			s.suspicion, s.broken, s.at = suspicion{listed: began}, false, time.Time{}
		} else if s.broken && s.opened.IsZero() {
			s.opened = time.Now() // a streaming list continues as a watch
		}
		s.of.planLocked()
	})
}

func (w *Watch) planLocked() {
	if w.mu.first.IsZero() {
		w.mu.first = time.Now().Add(lookFirst)
	}
}

// Broke records that the watch broke; it worked until alive. cut: the server
// did not end it.
func (s *Scope) Broke(alive time.Time, cut bool) {
	s.update(func() {
		if !s.broken { // later failures say nothing about the time before the first
			s.alive, s.broken, s.cut = alive, true, cut
		}
		s.opened, s.looks = time.Time{}, 0
	})
}

// Open records that the scope is watched again.
func (s *Scope) Open() {
	s.update(func() {
		if s.broken && s.opened.IsZero() {
			s.opened = time.Now()
		}
	})
}

// Run checks whenever a check is due, until ctx ends.
func (w *Watch) Run(ctx context.Context) error {
	w.sim = simhook.Of(ctx)
	for {
		if !w.sleep(ctx) {
			return nil
		}
		if w.lookDue(time.Now()) {
			hashes, server, err := w.look(ctx)
			if ctx.Err() != nil {
				return nil
			}
			w.learn(time.Now(), hashes, server, err)
		}
		for _, relist := range w.listsDue(time.Now()) {
			relist()
		}
	}
}

// sleep waits until something is due, and reports whether ctx is alive.
func (w *Watch) sleep(ctx context.Context) bool {
	for ctx.Err() == nil {
		at, ok := w.next()
		if ok && !at.After(time.Now()) {
			return true
		}
		w.wait(ctx, at, ok)
	}
	return false
}

// wait waits until at, if given, for news, or for the end of ctx.
func (w *Watch) wait(ctx context.Context, at time.Time, given bool) {
	var alarm <-chan time.Time
	if given {
		timer := time.NewTimer(time.Until(at))
		defer timer.Stop()
		alarm = timer.C
	}
	select {
	case <-alarm:
	case <-w.woken:
	case <-ctx.Done():
	}
}

// next returns when the next check or list is due.
func (w *Watch) next() (at time.Time, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok = w.nextLookLocked()
	for s := range w.mu.scopes {
		if !s.at.IsZero() && (!ok || s.at.Before(at)) {
			at, ok = s.at, true
		}
	}
	return at, ok
}

func (w *Watch) nextLookLocked() (at time.Time, ok bool) {
	if len(w.mu.scopes) == 0 {
		return at, false
	}
	if !w.mu.looked && !w.mu.first.IsZero() {
		at, ok = w.mu.first, true
	}
	for s := range w.mu.scopes {
		if due, wanted := s.due(); s.broken && wanted && (!ok || due.Before(at)) {
			at, ok = due, true
		}
	}
	return w.mu.limit.allow(at), ok
}

// lookDue reports whether a check is due, and records that it runs.
func (w *Watch) lookDue(now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.nextLookLocked()
	if !ok || at.After(now) {
		return false
	}
	w.mu.looked = true
	w.mu.limit.record(now)
	for s := range w.mu.scopes {
		for due, wanted := s.due(); s.broken && wanted && due.Before(now.Add(lookSlack)); due, wanted = s.due() {
			s.looks++
		}
	}
	return true
}

// look fetches the server's version and the hash of each schema.
func (w *Watch) look(ctx context.Context) (hashes map[string]string, server string, err error) {
	ctx, cancel := context.WithTimeout(ctx, restclient.DiscoveryTimeout)
	defer cancel()
	var index struct {
		Paths map[string]struct {
			URL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if err := w.server.GetJSON(ctx, restclient.Request{Verb: "get", Path: "openapi/v3"}, "the answer", &index); err != nil {
		return nil, "", fmt.Errorf("get /openapi/v3: %w", err)
	}
	hashes = make(map[string]string, len(index.Paths))
	for path, document := range index.Paths {
		_, hashes[path], _ = strings.Cut(document.URL, "hash=")
	}
	var info version.Info
	if err := w.server.GetJSON(ctx, restclient.Request{Verb: "get", Path: "version"}, "the answer", &info); err != nil {
		return nil, "", fmt.Errorf("get /version: %w", err)
	}
	return hashes, info.GitVersion + " " + info.EmulationMajor + "." + info.EmulationMinor, nil
}

// learn evaluates the result of a check and plans the lists that it requires.
func (w *Watch) learn(now time.Time, hashes map[string]string, server string, err error) {
	if err != nil {
		w.blind(now, err)
		return
	}
	w.mu.Lock()
	w.mu.version = w.mu.version.seen(server, now)
	for path, hash := range hashes {
		w.mu.hashes[path] = w.mu.hashes[path].seen(hash, now)
	}
	upgraded := !w.mu.version.first && w.mu.version.since.Equal(now)
	scopes := make(map[string]int)
	for s := range w.mu.scopes {
		h := w.mu.hashes[s.path]
		if !s.broken && !upgraded || s.listed.IsZero() || !s.at.IsZero() || !s.outdated(h, w.mu.version) {
			continue
		}
		s.at = now.Add(simhook.Duration(w.sim, "relist "+s.name, relistSpread))
		scopes[s.path]++
	}
	w.mu.Unlock()
	for path, n := range scopes {
		w.log.Info("A schema may have changed; relisting its objects to compare their content", "groupVersion", path, "scopes", n)
	}
}

// blind records a failed check.
func (w *Watch) blind(now time.Time, err error) {
	refused := refusesForGood(err)
	w.mu.Lock()
	first := refused && !w.mu.refused
	if refused {
		w.mu.refused = true
		w.mu.limit.paused = now.Add(lookPause)
	} else if after := pacing.AskedToWait(err); after > 0 {
		w.mu.limit.paused = now.Add(min(after, pacing.LongestRetryAfter))
	}
	w.mu.Unlock()
	switch {
	case first:
		w.log.V(1).Info("The server does not publish its schemas; after a schema change objects are outdated until their next versions", "cause", err.Error())
	case !refused:
		w.log.V(1).Info("Cannot check for changed schemas", "cause", err.Error())
	}
}

// refusesForGood reports whether the answer will stay the same for a while.
func refusesForGood(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	switch status.Status().Code {
	case http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusNotImplemented:
		return true
	}
	return false
}

// listsDue returns the functions that relist the scopes due now.
func (w *Watch) listsDue(now time.Time) (relist []func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := range w.mu.scopes {
		if !s.at.IsZero() && !s.at.After(now) {
			s.at = time.Time{}
			relist = append(relist, s.relist)
		}
	}
	return relist
}
