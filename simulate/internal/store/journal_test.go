// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"testing"

	"github.com/flyball-dev/flyball/simulate/internal/store"
)

// counting is a file that counts what is asked of it.
type counting struct{ written, synced int }

func (c *counting) Write(p []byte) (int, error) { c.written++; return len(p), nil }
func (c *counting) Sync() error                 { c.synced++; return nil }
func (c *counting) Close() error                { return nil }

func TestAppend_WaitsForTheDiskUnlessUnsynced(t *testing.T) {
	for _, unsynced := range []bool{false, true} {
		file := &counting{}
		j := store.NewJournal("journal", file)
		j.Unsynced = unsynced
		if err := j.Append([]store.JournalRecord{{Revision: 1, Resource: "configmaps"}}); err != nil {
			t.Fatal(err)
		}
		want := 1
		if unsynced {
			want = 0
		}
		if file.written != 1 || file.synced != want {
			t.Errorf("unsynced %v: %d writes, %d syncs, want 1 and %d", unsynced, file.written, file.synced, want)
		}
	}
}
