// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/internal/fielddiff"
	"github.com/flyball-dev/flyball/kube"
)

// sending records the requests of a run in progress. The zero sending records nothing. Safe for
// concurrent use: a run may send several at once, and some may outlive it.
type sending struct {
	mu struct {
		sync.Mutex
		to     *record // nil: the run has ended, or is not recorded
		began  time.Time
		writes []write             // whose effect is not known yet
		cache  contextvalues.Cache // that the last write can be seen in; nil: none
	}
}

// write is a request whose effect may become known.
type write struct {
	number  int
	version schema.GroupVersion
	kind    string // empty: not known
	key     kube.Key
	cache   contextvalues.Cache // nil: no informer has the kind
	before  kube.Object         // in the cache; nil: none
}

// begin records in to.
func (s *sending) begin(to *record, began time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.to, s.mu.began = to, began
}

// end returns the record, and the cache of its writes; nil: there is none. Later requests are not
// recorded.
func (s *sending) end() (*record, contextvalues.Cache) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to, cache := s.mu.to, s.mu.cache
	s.mu.to, s.mu.writes, s.mu.cache = nil, nil, nil
	return to, cache
}

// sent implements contextvalues.Task.
func (s *sending) sent(q contextvalues.Request) (number int) {
	w := write{version: q.Version, kind: q.Kind, key: q.Key, cache: q.Cache}
	if w.number = s.add(q); w.number < 0 || !writes(q.Verb) {
		return w.number
	}
	if q.Cache != nil && q.Key.Name != "" {
		w.before = q.Cache.Cached(q.Version.WithKind(q.Kind), q.Key, nil)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.to != nil {
		s.mu.writes = append(s.mu.writes, w)
		if q.Cache != nil {
			s.mu.cache = q.Cache
		}
	}
	return w.number
}

// add records a request, and returns its number; negative: it is not recorded.
func (s *sending) add(q contextvalues.Request) (number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.to == nil {
		return -1
	}
	return s.mu.to.add(q, time.Since(s.mu.began))
}

func writes(verb string) bool {
	switch verb {
	case "create", "update", "patch", "apply", "delete":
		return true
	}
	return false
}

// answered implements contextvalues.Task.
func (s *sending) answered(number int, a contextvalues.Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.to != nil && number >= 0 {
		s.mu.to.answer(number, a, time.Since(s.mu.began))
	}
}

// effected implements contextvalues.Task.
func (s *sending) effected(did kube.Written, from kube.Version) {
	w, code := s.takeWrite(did)
	if w.number < 0 {
		return
	}
	effect, changed := w.effect(did, from, code)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.to != nil {
		s.mu.to.affect(w.number, did, effect, changed)
	}
}

// takeWrite returns the last write to the object that has no effect yet, and the status of its
// answer. A negative number: there is none.
func (s *sending) takeWrite(did kube.Written) (w write, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.mu.writes) - 1; i >= 0; i-- {
		if w = s.mu.writes[i]; w.of(did) {
			s.mu.writes = append(s.mu.writes[:i], s.mu.writes[i+1:]...)
			return w, int(s.mu.to.requests[w.number].code)
		}
	}
	return write{number: -1}, 0
}

// of reports whether w may have had the effect.
func (w write) of(did kube.Written) bool {
	return w.version == did.Kind.GroupVersion() && (w.kind == "" || w.kind == did.Kind.Kind) && w.key.Namespace == did.Key.Namespace && (w.key.Name == did.Key.Name || w.key.Name == "")
}

// effect returns what w did, which the cache has by now. from is the version that it named; 0:
// none. code is the status of the answer.
func (w write) effect(did kube.Written, from kube.Version, code int) (string, fielddiff.Fields) {
	none := fielddiff.Fields{}
	was := versionOf(w.before)
	switch {
	case did.Effect == kube.Removed:
		return effectDeleted, none
	case did.Effect == kube.Touched || did.Version == 0:
		return "", none
	case code == 201:
		return effectCreated, none
	case did.Version == was || did.Version == from:
		return effectNothing, none
	case was == 0 && from == 0:
		return "", none
	}
	if was == 0 || from != 0 && from != was { // the cache has not had the version before
		return effectChanged, none
	}
	is := w.cache.Cached(did.Kind, did.Key, nil)
	if versionOf(is) != did.Version || reflect.TypeOf(is) != reflect.TypeOf(w.before) {
		return effectChanged, none
	}
	return effectChanged, fielddiff.Between(w.before, is)
}

func versionOf(obj kube.Object) kube.Version {
	if obj == nil {
		return 0
	}
	return kube.ParseVersion(obj.GetResourceVersion())
}
