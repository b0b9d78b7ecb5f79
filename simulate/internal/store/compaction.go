// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import "time"

// compactUsually is how often a real server compacts its store.
const compactUsually = 5 * time.Minute

// compaction decides when history is dropped: each round drops what is older than the round
// before. No goroutine does it, since only reads and writes can observe whether it has happened.
type compaction struct {
	every    time.Duration // negative: never
	last     time.Time     // when the last round was
	revision int64         // the revision at that time
}

// due carries out the rounds since the last one and returns the revision that they compact to.
// A round is due before the first write after it, so the current objects were current in all of
// them.
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

// historyAtMost is the number of changes that are kept between two rounds, for a program that
// writes in a hot loop. A real server has them on its disk.
const historyAtMost = 200_000

// CompactIfDue drops the history whose time has come.
func (tx *Tx) CompactIfDue() {
	if to, due := tx.mu.compaction.due(time.Now(), tx.mu.log.Revision); due {
		tx.mu.log.Compact(to)
	}
	if tx.mu.compaction.every >= 0 && len(tx.mu.log.Changes) > historyAtMost {
		tx.mu.log.Compact(tx.mu.log.Revision - historyAtMost/2)
	}
}
