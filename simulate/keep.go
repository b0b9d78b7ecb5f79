// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/simulate/internal/allot"
	"github.com/flyball-dev/flyball/simulate/internal/journal"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/models"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// What a server with a journal does more than others. A change is in the file
// before anybody hears of it: it is queued in the order of revisions, the
// keeping goroutine writes all that is queued at once, and only then watches are
// told and answers sent.

// keeping is what is to go into the journal. The server's lock guards it.
type keeping struct {
	to      *journal.Journal // nil: nothing is kept
	queue   []journal.Change
	reached int64 // the last revision in the file
	failed  error // why nothing gets there any more
}

// keepIn has the server go on from what is in a journal, or begin an empty one.
// Nobody uses the server yet.
func (s *Server) keepIn(j *journal.Journal, content *journal.Content) (err error) {
	var defined []*object.Object
	if content == nil {
		err = j.Rewrite(s.snapshot())
	} else {
		defined, err = definitionsIn(content.Log)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if content != nil {
		s.mu.log = content.Log
		s.mu.told, s.mu.compaction.revision = content.Log.Revision, content.Log.Revision
		// Each object that has drawn its name has a revision.
		s.allotter.Resume(allot.Counters(content.Given), int(content.Log.Revision))
	}
	s.mu.keeping = keeping{to: j, reached: s.mu.log.Revision}
	s.observeLocked(func(c revisions.Change) {
		s.mu.keeping.queue = append(s.mu.keeping.queue, journal.ChangeOf(c, s.countersLocked()))
	})
	for _, crd := range defined {
		s.definitions.Changed(s.storeLocked(), revisions.Change{Resource: kinds.Definitions, Key: crd.Key(), After: crd})
	}
	if namespaces, _ := s.mu.log.List(object.Namespaces, s.mu.log.Revision); len(namespaces) == 0 {
		s.installNamespacesLocked() // an older journal has none; in others some may have been deleted
	}
	s.installServiceLocked()
	return nil
}

// definitionsIn are the CRDs of a store that was read, with what they define.
func definitionsIn(l *revisions.Log) ([]*object.Object, error) {
	crds, _ := l.List(kinds.Definitions, l.Revision)
	kind := &kinds.Kind{GroupVersionKind: models.DefinitionKind, Resource: kinds.Definitions.Resource}
	for _, crd := range crds {
		if err := kind.Define(crd); err != nil {
			return nil, fmt.Errorf("read the CRD %s: %w", crd.Key().Name, err)
		}
	}
	return crds, nil
}

func (s *Server) snapshot() journal.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return journal.SnapshotOf(s.mu.log, s.countersLocked())
}

func (s *Server) countersLocked() journal.Counters {
	return journal.Counters(s.allotter.Counters())
}

// keep writes what changes into the journal until ctx ends and nothing waits.
// An error is the end: what comes after it is never kept, and never told.
func (s *Server) keep(ctx context.Context) error {
	for {
		records := s.queued(ctx)
		if len(records) == 0 {
			return nil
		}
		if err := s.journal().Append(records); err != nil {
			return s.keepNoMore(err)
		}
		s.reached(records[len(records)-1].Revision)
	}
}

// queued waits for something to write. None: ctx has ended.
func (s *Server) queued(ctx context.Context) (records []journal.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.mu.keeping.queue) == 0 && ctx.Err() == nil {
		s.waitLocked(ctx, time.Hour, func() bool { return len(s.mu.keeping.queue) > 0 })
	}
	records, s.mu.keeping.queue = s.mu.keeping.queue, nil
	return records
}

func (s *Server) journal() *journal.Journal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.keeping.to
}

// reached tells of what is in the file.
func (s *Server) reached(revision int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.keeping.reached = revision
	s.tellLocked()
}

// keepNoMore ends all that waits for the journal.
func (s *Server) keepNoMore(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.keeping.failed = fmt.Errorf("write %s: %w; what was acknowledged is in it, so make it writable and start again", s.mu.keeping.to.Path(), err)
	s.eachWatchLocked(func(w *watch) { w.over = true })
	return s.mu.keeping.failed
}

// kept waits until all that is stored by now is in the journal. Nothing of it
// may be told before.
func (s *Server) kept(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, at := &s.mu.keeping, s.mu.log.Revision
	if k.to == nil {
		return nil
	}
	for k.failed == nil && k.reached < at {
		if err := ctx.Err(); err != nil {
			return apierrors.NewTimeoutError("the request was given up", 0)
		}
		s.waitLocked(ctx, time.Hour, func() bool { return k.failed != nil || k.reached >= at })
	}
	if k.failed != nil {
		return apierrors.NewInternalError(k.failed)
	}
	return nil
}
