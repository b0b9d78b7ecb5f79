// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// With a journal, a change is in the file before a watch or an answer shows it. Changes are
// queued in the order of revisions. Keep writes all that is queued at once, and only then
// watches are told and requests answered.

// keeping is what goes into the journal.
type keeping struct {
	to           *Journal // nil: there is none
	queue        []JournalRecord
	queued, kept uint64 // changes ever queued, and those of them that are in the file
	reached      int64  // no change up to this revision is missing in the file
	failed       error  // why the file cannot be written any more
}

// Resume continues from the content of a journal, or begins an empty one if content is nil, and
// keeps all later changes in it. Nothing else uses the store yet.
func (tx *Tx) Resume(j *Journal, content *JournalContent) error {
	s := (*Store)(tx)
	if content == nil {
		if err := j.Rewrite(JournalSnapshotOf(s.mu.log, s.given())); err != nil {
			return err
		}
	} else {
		s.mu.log = content.Log
		s.mu.told, s.mu.compaction.revision = content.Log.Revision, content.Log.Revision
	}
	s.mu.keeping = keeping{to: j, reached: s.mu.log.Revision}
	return nil
}

// Keep writes changes into the journal until ctx ends and none is queued. After an error no
// later change is kept or shown.
func (s *Store) Keep(ctx context.Context) error {
	for {
		to, records := s.queued(ctx)
		if len(records) == 0 {
			return nil
		}
		if err := to.Append(records); err != nil {
			return s.keepNoMore(err)
		}
		s.reached(len(records))
	}
}

// queued waits for changes to write. It returns none when ctx has ended.
func (s *Store) queued(ctx context.Context) (to *Journal, records []JournalRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.mu.keeping.queue) == 0 && ctx.Err() == nil {
		s.waitLocked(ctx, s.changed, time.Hour, func() bool { return len(s.mu.keeping.queue) > 0 })
	}
	records, s.mu.keeping.queue = s.mu.keeping.queue, nil
	return s.mu.keeping.to, records
}

// reached shows watches and requests the next changes, which are in the file now.
func (s *Store) reached(changes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := &s.mu.keeping
	k.kept += uint64(changes)
	at := s.mu.log.Revision
	for _, c := range k.queue { // a rewind queues lower revisions after higher ones
		at = min(at, c.Revision-1)
	}
	k.reached = max(k.reached, at)
	s.deliverLocked()
}

// keepNoMore fails everything that waits for the journal.
func (s *Store) keepNoMore(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.keeping.failed = fmt.Errorf("write %s: %w; what was acknowledged is in it, so make it writable and start again", s.mu.keeping.to.Path(), err)
	s.eachWatchLocked((*Watch).endLocked)
	return s.mu.keeping.failed
}

// Kept waits until all that is stored now is in the journal. A request must not show any of it
// before.
func (s *Store) Kept(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, all := &s.mu.keeping, s.mu.keeping.queued
	if k.to == nil {
		return nil
	}
	for k.failed == nil && k.kept < all {
		if err := ctx.Err(); err != nil {
			return apierrors.NewTimeoutError("the request was given up", 0)
		}
		s.waitLocked(ctx, s.changed, time.Hour, func() bool { return k.failed != nil || k.kept >= all })
	}
	if k.failed != nil {
		return apierrors.NewInternalError(k.failed)
	}
	return nil
}
