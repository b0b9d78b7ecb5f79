// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"slices"
	"testing"
)

// A Job is work: creating it once more than without faults does the work again, although there is never more than one.
func TestReference_AJobThatIsCreatedAgainIsRunAgain(t *testing.T) {
	of := ref{"Job.batch", "default/load"}
	made := func(who, uid string) change { return change{Who: who, Verb: "created", Of: of, UID: uid} }
	gone := func(who, uid string) change { return change{Who: who, Verb: "deleted", Of: of, UID: uid} }
	for name, c := range map[string]struct {
		changes []change
		want    []Class
	}{
		"once":                     {[]change{made(operator, "1"), gone(cluster, "1")}, nil},
		"again":                    {[]change{made(operator, "1"), gone(cluster, "1"), made(operator, "2"), gone(cluster, "2")}, []Class{TooMany}},
		"again by another":         {[]change{made(operator, "1"), gone(cluster, "1"), made(cluster, "2")}, nil},
		"deleted and so run again": {[]change{made(operator, "1"), gone(operator, "1"), made(operator, "2")}, []Class{LosesState}},
	} {
		t.Run(name, func(t *testing.T) {
			runs := []*trial{{changes: []change{made(operator, "1"), gone(cluster, "1")}}}
			r := &reference{walk: walk{name: "create"}, runs: runs, view: learn(runs)}
			var got []Class
			for _, v := range r.judge(&trial{changes: c.changes}) {
				t.Log(v.text)
				got = append(got, v.class)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("the classes are %q, want %q", got, c.want)
			}
		})
	}
}
