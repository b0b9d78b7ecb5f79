// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/state"
)

// An informer counts as unused while the program works: not on a standby, and not before its
// controllers have ended many reconciles without reading it.
func TestUnread_ExcusesWhatIsAtRest_I13(t *testing.T) {
	start := time.Now()
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	type look struct {
		workload
		unused time.Time // of the informer
		want   time.Time
	}
	for name, looks := range map[string][]look{
		"it is used":                {{workload{false, 0, false, time.Time{}}, time.Time{}, time.Time{}}},
		"no controllers":            {{workload{false, 0, false, time.Time{}}, at(1), at(1)}},
		"a standby":                 {{workload{false, 500, true, time.Time{}}, at(1), time.Time{}}},
		"a new leader":              {{workload{false, 0, false, at(7)}, at(1), at(7)}},
		"a leader":                  {{workload{false, 0, false, at(1)}, at(7), at(7)}},
		"many reconciles, none new": {{workload{true, 500, false, time.Time{}}, at(1), time.Time{}}, {workload{true, 500, false, time.Time{}}, at(1), time.Time{}}},
		"99, then 100 reconciles": {
			{workload{true, 500, false, time.Time{}}, at(1), time.Time{}}, {workload{true, 599, false, time.Time{}}, at(1), time.Time{}},
			{workload{true, 600, false, time.Time{}}, at(1), at(1)},
		},
		"it was used meanwhile": {
			{workload{true, 500, false, time.Time{}}, at(1), time.Time{}}, {workload{true, 590, false, time.Time{}}, time.Time{}, time.Time{}},
			{workload{true, 600, false, time.Time{}}, at(2), time.Time{}}, {workload{true, 700, false, time.Time{}}, at(2), at(2)},
		},
	} {
		var u unread
		for i, l := range looks {
			all := []state.Informer{{Kind: schema.GroupVersionKind{Kind: "Pod"}}, {Kind: schema.GroupVersionKind{Kind: "Secret"}, UnusedSince: l.unused}}
			u.excuse(all, l.workload)
			if got := all[1].UnusedSince; !got.Equal(l.want) || !all[0].UnusedSince.IsZero() {
				t.Errorf("%s, look %d: unused since %v, want %v", name, i, got.Sub(start), l.want.Sub(start))
			}
		}
	}
}
