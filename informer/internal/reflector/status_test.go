// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/flyball-dev/flyball/informer/internal/pacing"
	"github.com/flyball-dev/flyball/informer/internal/steps"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/state"
)

// A program with more kinds than may be listed at once starts without warnings.
func TestReflectorStatus_WaitingForATurnIsNoWarning_A30(t *testing.T) {
	var lines []string
	s := &reflectorStatus{}
	s.begin(listwatch.Scope{})
	s.logTo(funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	s.held(pacing.Hold{Why: "waits for its turn: 4 other lists are under way"}, steps.PhaseStream)
	if current := s.snapshot(); len(lines) != 0 || current.State != state.Waiting || !strings.Contains(current.Reason, "its turn") {
		t.Errorf("a first list that waits behind others: got %s and %d lines of log, want the reason in the state and no line:\n%s", current, len(lines), strings.Join(lines, "\n"))
	}
	s.held(pacing.Hold{Until: time.Now().Add(time.Minute), Why: "waits for the server's Retry-After"}, steps.PhaseStream)
	if len(lines) != 1 || !strings.Contains(lines[0], "Retry-After") {
		t.Errorf("a first list that the server has asked to wait: got %d lines of log, want a warning:\n%s", len(lines), strings.Join(lines, "\n"))
	}
}
