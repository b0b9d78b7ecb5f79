// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/simulate/doctor"
	"github.com/flyball-dev/flyball/simulate/kit"
)

func shopOperator(bug string) doctor.Operator {
	return doctor.Operator{
		Setup: setUpShops(bug), CRDs: []string{"testdata/crd.yaml"}, Samples: []string{"testdata/sample.yaml"},
		Cluster: kit.Config{Scheme: shopScheme()}, Budget: time.Hour, MostPlans: 25,
	}
}

func TestExamine_ARightOperatorHasNoFinding(t *testing.T) {
	r := doctor.Examine(t, shopOperator(""))
	for _, f := range r.Findings {
		t.Errorf("%s [%s] %s\n%s\n%s", f.Class, f.ID, f.Text, f.Plan, strings.Join(f.Story, "\n"))
	}
	if r.Ran == 0 || len(r.Skipped) > 0 {
		t.Errorf("%d plans were run, and these were not judged: %v", r.Ran, r.Skipped)
	}
	t.Logf("%d plans, %d missed, %v; %v", r.Ran, r.Missed, r.Took, r.Patterns)
}

func TestExamine_ReportsAProgramThatNeverRests(t *testing.T) {
	op := shopOperator("never rests")
	op.Cluster.MaxEvents, op.RestWithin = 4000, 20*time.Second
	r := doctor.Examine(t, op)
	for _, f := range r.Findings {
		if f.Class != doctor.Restless || !strings.Contains(f.Text, "after 'create the samples'") || !strings.Contains(f.Text, "operator updated Shop.doctor.example.dev default/corner (status.ready)") {
			t.Errorf("%s: %s", f.Class, f.Text)
		}
	}
	if len(r.Findings) != 1 {
		t.Errorf("there are %d findings, want one", len(r.Findings))
	}
}

func TestExamine_FindsPlantedBugs(t *testing.T) {
	for bug, want := range map[string]struct {
		class   doctor.Class
		pattern doctor.Pattern
		line    string
	}{
		"second with the first":   {doctor.OtherEnd, doctor.Intermediate, ""},
		"a revision for each try": {doctor.OtherEnd, doctor.Intermediate, ""},
		"never removed":           {doctor.NotUndone, doctor.Declarative, ""},
		"never smaller":           {doctor.NotUndone, doctor.Declarative, ""},
		"panic":                   {doctor.Panicked, doctor.Declarative, ""},
	} {
		t.Run(strings.ReplaceAll(bug, " ", "-"), func(t *testing.T) {
			op := shopOperator(bug)
			op.First = true
			r := doctor.Examine(t, op)
			found := false
			for _, f := range r.Findings {
				t.Logf("%s [%s] %s: %s\n%s\n%s\n%s", f.Class, f.ID, f.Pattern, f.Text, f.Plan, f.Line, f.Replay)
				found = found || f.Class == want.class && slices.Contains(f.Patterns, want.pattern)
			}
			if !found {
				t.Errorf("there is no finding %s by %s among %d", want.class, want.pattern, len(r.Findings))
			}
			t.Logf("%d plans; %v", r.Ran, r.Took)
		})
	}
}
