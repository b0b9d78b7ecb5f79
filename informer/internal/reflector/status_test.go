// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/gate"
	"github.com/flyball-dev/flyball/informer/internal/steps"
)

// A program with more kinds than may be listed at once starts without a warning.
func TestReflectorStatus_WaitingForATurnIsNoWarning_A30(t *testing.T) {
	var lines []string
	s := &reflectorStatus{}
	s.begin(base.WatchScope{})
	s.logTo(funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	s.held(gate.Hold{Why: "waits for its turn: 4 other lists are under way"}, steps.PhaseStream)
	if state := s.snapshot(); len(lines) != 0 || state.State != base.StateWaiting || !strings.Contains(state.Reason, "its turn") {
		t.Errorf("a first list that waits behind others: got %s and %d lines of log, want the reason in the state and no line:\n%s", state, len(lines), strings.Join(lines, "\n"))
	}
	s.held(gate.Hold{Until: time.Now().Add(time.Minute), Why: "waits for the server's Retry-After"}, steps.PhaseStream)
	if len(lines) != 1 || !strings.Contains(lines[0], "Retry-After") {
		t.Errorf("a first list that the server has asked to wait: got %d lines of log, want a warning:\n%s", len(lines), strings.Join(lines, "\n"))
	}
}

// Scopes of one kind complain together: a few one by one, and with their count.
func TestReflectorStatus_ScopesOfAKindComplainTogether(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	var nags Nags
	scopes := make([]*reflectorStatus, 20)
	for i := range scopes {
		scopes[i] = &reflectorStatus{nags: &nags}
		scopes[i].begin(base.WatchScope{Namespace: fmt.Sprintf("ns-%d", i)})
		scopes[i].logTo(log)
		scopes[i].set(base.StateForbidden, fmt.Sprintf("may not list in ns-%d", i))
		scopes[i].set(base.StateForbidden, fmt.Sprintf("may still not list in ns-%d", i))
	}
	if len(lines) != namedScopes || !strings.Contains(lines[len(lines)-1], `"scopes"=5`) {
		t.Errorf("got %d lines of log, want %d, and the last with how many complain:\n%s", len(lines), namedScopes, strings.Join(lines, "\n"))
	}
	lines = nil
	for _, s := range scopes {
		s.set(base.StateLive, "")
	}
	if len(lines) != namedScopes+1 || !strings.Contains(lines[0], `"scopes"=19`) || strings.Contains(lines[namedScopes], `"scopes"`) {
		t.Errorf("got %d lines of log, want %d, of those that complained with how many are left, and of the last:\n%s", len(lines), namedScopes+1, strings.Join(lines, "\n"))
	}
}
