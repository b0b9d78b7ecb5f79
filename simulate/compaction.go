// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import "time"

// compactUsually is how often a real server has its store compacted.
const compactUsually = 5 * time.Minute

// compaction is when the history of the store is forgotten: in each round what
// was there before the round before. No goroutine does it, as nobody sees
// whether it was done before somebody writes or reads.
type compaction struct {
	every    time.Duration // negative: never
	last     time.Time     // when the last round was
	revision int64         // that there was then
}

// due are the rounds that have come since the last one, and the revision that
// they compact to. A round is due before the first write after it, so what is
// there now was there in all of them.
func (c *compaction) due(now time.Time, revision int64) (to int64, due bool) {
	if c.every < 0 || now.Sub(c.last) < c.every {
		return 0, false
	}
	rounds := now.Sub(c.last) / c.every
	if to = c.revision; rounds > 1 {
		to = revision
	}
	c.last, c.revision = c.last.Add(rounds*c.every), revision
	return to, true
}

// historyAtMost is how many changes are kept between two rounds, for a program that
// writes in a hot loop. A real server keeps them on its disk.
const historyAtMost = 200_000

// compactLocked carries out the rounds that are due.
func (s *Server) compactLocked() {
	if to, due := s.mu.compaction.due(time.Now(), s.mu.log.Revision); due {
		s.mu.log.Compact(to)
	}
	if s.mu.compaction.every >= 0 && len(s.mu.log.Changes) > historyAtMost {
		s.mu.log.Compact(s.mu.log.Revision - historyAtMost/2)
	}
}
