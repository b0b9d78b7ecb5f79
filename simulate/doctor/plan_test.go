// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"strings"
	"testing"
	"time"

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

// A write that changes nothing leaves the state in which a crash, or what is hidden from then on, has a plan already.
func TestPlansOf_OnePlanForAState(t *testing.T) {
	for _, kind := range []string{"Pod", "ReplicaSet.apps"} { // a program may own what is a workload's history
		of := ref{kind, "default/a"}
		write := func(at time.Duration) ask {
			return ask{At: at, Done: at + time.Second/2, Who: operator, Write: "update " + kind, Of: of, Code: 200}
		}
		run := &trial{
			took: []time.Duration{time.Minute}, watched: []string{kind}, asks: []ask{write(time.Second), write(2 * time.Second), write(5 * time.Second)},
			changes: []change{{At: time.Second, Who: operator, Verb: "created", Of: of}},
		}
		count := func(only string) map[Pattern]int {
			all := map[Pattern]int{}
			for _, p := range (&examination{pace: virtual, only: only}).plansFor(walk{name: "create"}, run) {
				if len(p.Faults) > 0 && !p.travels() {
					all[p.Pattern]++
				}
			}
			return all
		}
		if got := count(""); got[Intermediate] != 1 || got[Stale] != 1 || got[LostAnswer] != 3 {
			t.Errorf("%s: of three writes of which one changes something there are the plans %v", kind, got)
		}
		if got := count("5d1c0e77"); got[Intermediate] != 3 || got[Stale] != 3 { // which one is left depends on times
			t.Errorf("%s: for the only plan of three writes there are the plans %v", kind, got)
		}
		run.changes = append(run.changes, change{At: 2 * time.Second, Who: operator, Verb: "updated", Of: of})
		if got := count(""); got[Intermediate] != 2 || got[Stale] != 2 {
			t.Errorf("%s: of three writes of which two change something there are the plans %v", kind, got)
		}
		run.changes = append(run.changes, change{At: 6 * time.Second, Who: cluster, Verb: "updated", Of: of})
		more := 1
		if isHistory(kind) { // what the cluster does to it says nothing
			more = 0
		}
		if got := count(""); got[Intermediate] != 2+more || got[Stale] != 2+2*more { // one hides what the cluster does
			t.Errorf("%s: if the cluster changes something after the third one there are the plans %v", kind, got)
		}
	}
}
