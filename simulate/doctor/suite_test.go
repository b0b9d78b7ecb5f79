// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"context"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/simulate/doctor"
)

// A suite that passes, and fails when the answer to a create is lost, because its operator makes a second object.
func TestCommand_ExaminesASuite(t *testing.T) {
	assets := t.TempDir()
	if said, err := exec.CommandContext(t.Context(), "go", "run", "../cmd/apiserver", "install", assets).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	examine := func(plan string, env ...string) *doctor.Report {
		t.Helper()
		r, err := doctor.Command{
			Suite: true, Assets: assets, Args: []string{"go", "test", "./testdata/suite"}, Env: env, Plan: plan, Budget: time.Hour,
		}.Examine(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		t.Log(r.Text())
		if r.Ran == 0 || slices.ContainsFunc(r.Skipped, func(s string) bool { return strings.Contains(s, "without faults too") }) {
			t.Errorf("%d plans were run, and these were not judged: %v", r.Ran, r.Skipped)
		}
		return r
	}
	if r := examine(""); len(r.Findings) > 0 {
		t.Errorf("the right operator has %d findings", len(r.Findings))
	}
	r := examine("", "TICKETS_RANDOM=1")
	found := slices.IndexFunc(r.Findings, func(f *doctor.Finding) bool {
		return f.Class == doctor.SpecFails && slices.Contains(f.Patterns, doctor.LostAnswer) && strings.Contains(f.Text, "TestTickets/tea")
	})
	if found < 0 {
		t.Fatal("no finding is that a spec fails when an answer is lost")
	}
	if story := strings.Join(r.Findings[found].Story, "\n"); !strings.Contains(story, "suite/tickets.go:") || !strings.Contains(story, "user created ConfigMap default/tea") {
		t.Errorf("the story does not tell the operator's lines from the specs' writes:\n%s", story)
	}
	again := examine(r.Findings[found].PlanID, "TICKETS_RANDOM=1")
	if again.Ran != 1 || len(again.Findings) != 1 || again.Findings[0].ID != r.Findings[found].ID {
		t.Errorf("its plan alone has %d findings in %d runs, want the same one", len(again.Findings), again.Ran)
	}
}
