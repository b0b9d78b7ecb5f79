// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/simulate/kit"
)

// The patterns take turns, and each begins with what is most different from what was tried.
func TestOrdered_TheMostDifferentPlansComeFirst(t *testing.T) {
	travel := kit.Plan{kit.TimeTravel(1, 0)}
	plans := []plan{
		{Walk: "create", Pattern: Intermediate, class: "create Pod", Hurry: 1},
		{Walk: "create", Pattern: Intermediate, class: "create Pod", Hurry: 2},
		{Walk: "create", Pattern: Intermediate, class: "update Pod", Hurry: 3},
		{Walk: "again", Pattern: Intermediate, class: "create Pod", Hurry: 4},
		{Walk: "again", Pattern: Intermediate, class: "delete Pod", Hurry: 5},
		{Walk: "create", Pattern: Stale, class: "create Pod", Hurry: 6},
		{Walk: "create", Pattern: Stale, class: "behind created Pod", late: 2, Faults: travel, Hurry: 7},
		{Walk: "again", Pattern: Stale, class: "behind deleted Pod", Faults: travel, Hurry: 8},
		{Walk: "create", Pattern: Conflict, class: "update Pod", Hurry: 9},
	}
	want := "1 8 6 9 | 3 7 | 5 | 2 | 4"
	var got strings.Builder
	turn := 0
	for i, p := range ordered(plans) {
		if p.turn != turn {
			got.WriteString("| ")
		}
		turn = p.turn
		got.WriteString(string(rune('0' + p.Hurry)))
		if i < len(plans)-1 {
			got.WriteString(" ")
		}
	}
	if got.String() != want {
		t.Errorf("the order is %s, want %s: each number is a plan, and each bar ends a turn", got.String(), want)
	}
}
