// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/flyball-dev/flyball/kube"
)

// settings are what users set on a core, and what must not change after that. They cannot be
// set once the run has begun and a scope is or was watched. Safe for concurrent use; its lock
// is a leaf.
type settings struct {
	options Options
	log     logr.Logger
	errorf  func(format string, args ...any) error // with the kind
	mu      struct {
		sync.Mutex
		transform func(kube.Object) (kube.Object, error)
		lent      bool // a metadata informer shares the objects
		projected bool // a handle keeps some fields only
		onError   func(context.Context, error)
		started   bool // Run has begun
		opened    bool // a scope is or was watched
		managed   bool // keep managedFields
		kindless  bool // objects of Go types have no apiVersion and kind
		compact   Compact
		onBatch   []func(BatchReport)
		err       error // the first misuse, returned by Run
	}
}

// BatchReport describes a stored batch, for metrics.
type BatchReport struct {
	Deltas  int           // stored
	Took    time.Duration // from popping them to the backlogs of the handlers
	Waiting int           // deltas still waiting
}

// setDefaults sets what the Options say, before anything else is set.
func (s *settings) setDefaults(opts Options, log logr.Logger, errorf func(string, ...any) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.options, s.log, s.errorf = opts, log, errorf
	s.mu.managed, s.mu.compact = opts.KeepManagedFields, opts.Compact
}

// recordMisuse records misuse before the run. Misuse during the run affects only its own
// handle.
func (s *settings) recordMisuse(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.err == nil && !s.mu.started {
		s.mu.err = err
	}
}

// compact returns how to hold objects packed; zero: they are held decoded.
func (s *settings) compact() Compact {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.compact
}

// misuse returns the error of run.
func (s *settings) misuse() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.err
}

func (s *settings) setStarted() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.started = true
}

func (s *settings) setOpened() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.opened = true
}

func (s *settings) hasBegun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.started
}

// transform returns the transform of the kind, or nil. It does not change after
// the run has begun, so lists and watches read it once.
func (s *settings) transform() func(kube.Object) (kube.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.transform
}

func (s *settings) setTransform(f func(kube.Object) (kube.Object, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.started && s.mu.opened {
		return s.errorf("set transform: the informer has started, and objects are stored already; set it before the run, or on a handle whose Scope is Deferred")
	}
	if s.mu.projected && f != nil {
		return s.errorf("set transform: a handle keeps only the Fields of its Scope, and the transform would see objects without the others; drop fields with one of both")
	}
	if s.mu.lent {
		return s.errorf("set transform: a metadata informer shares the objects already; set it before the run")
	}
	s.mu.transform = f
	return nil
}

// decodesAll reports whether the objects are all that their bytes have, and
// always were. What a projection leaves out must not come back with an object
// that is opened after another handle has asked for everything.
func (s *settings) decodesAll() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.transform == nil && !s.mu.projected
}

// mayLend reports whether the objects are unmodified, and keeps them so.
func (s *settings) mayLend() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.lent = s.mu.lent || s.mu.transform == nil
	return s.mu.transform == nil
}

// dropFields records that fields are dropped. It is an error with a transform,
// which would not see them.
func (s *settings) dropFields() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.transform != nil {
		return s.errorf("scope with Fields: the kind has a transform, which would see objects without the other fields; drop fields with one of both")
	}
	s.mu.projected = true
	return nil
}

func (s *settings) keepManagedFields(projected bool) error {
	if projected {
		return s.errorf("keep managedFields: the Scope of the handle has Fields, and managedFields are kept with all fields only; leave the Fields out")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.started && s.mu.opened && !s.mu.managed {
		return s.errorf("keep managedFields: the informer has started, and objects are stored without them already; call it before the run or on a handle whose Scope is Deferred, or set Options.KeepManagedFields")
	}
	s.mu.managed = true
	return nil
}

// keepsManagedFields does not change after the run has begun.
func (s *settings) keepsManagedFields() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.managed
}

// omitKind is OmitKind of the informer.
func (s *settings) omitKind() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.started && s.mu.opened && !s.mu.kindless {
		return s.errorf("omit the kind: the informer has started, and objects are stored with it already; call it before the run, or on a handle whose Scope is Deferred")
	}
	s.mu.kindless = true
	return nil
}

// omitsKind does not change after the run has begun.
func (s *settings) omitsKind() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.kindless
}

func (s *settings) makeCompact(how Compact) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch was := s.mu.compact; {
	case how.Codec == nil:
		return s.errorf("make it compact: nothing says how; give compact.New(compact.Options{}) of package informer/compact")
	case reflect.DeepEqual(was, how):
		return nil
	case s.mu.started && s.mu.opened:
		return s.errorf("make it compact: the informer has started, and objects are stored already; call it before the run or on a handle whose Scope is Deferred, or set Options.Compact")
	case was.Codec != nil && !reflect.DeepEqual(was, s.options.Compact):
		return s.errorf("make it compact: another handle has made it compact with other options; use the same for all handles of a kind")
	}
	s.mu.compact = how
	return nil
}

func (s *settings) reportError(ctx context.Context, err error) {
	s.mu.Lock()
	f := s.mu.onError
	s.mu.Unlock()
	if f == nil || ctx.Err() != nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			s.log.Error(fmt.Errorf("panic: %v", p), "Error handler panicked", "stack", string(debug.Stack()))
		}
	}()
	f(ctx, err)
}

// setErrorHandler is SetErrorHandler of the informer.
func (s *settings) setErrorHandler(f func(context.Context, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.started && s.mu.opened {
		return s.errorf("set error handler: the informer has started; set it before the run, or on a handle whose Scope is Deferred")
	}
	s.mu.onError = f
	return nil
}

// addBatchObserver is OnBatch of the informer.
func (s *settings) addBatchObserver(f func(BatchReport)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.onBatch = append(slices.Clone(s.mu.onBatch), f)
}

func (s *settings) batchObservers() []func(BatchReport) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.onBatch
}
