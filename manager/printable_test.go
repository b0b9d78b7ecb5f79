// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/manager"
)

// clears has sequences that a terminal would execute: it clears the screen, sets the
// title and reverses the text direction.
const clears = "\x1b[2J\x1b]0;owned\x07\u009b1m\u202edesrever\r"

func raw(text string) bool { return strings.ContainsAny(text, "\x1b\x07\u009b\u202e\r") }

func TestPrintable_EscapesWhatATerminalActsOn(t *testing.T) {
	got := manager.Printable(errors.New("one" + clears + "\n\ttwo"))
	if raw(got) || !strings.HasPrefix(got, "one") || !strings.HasSuffix(got, "\n\ttwo") {
		t.Errorf("got %q, want its lines and nothing that a terminal acts on", got)
	}
	if got := manager.Printable(nil); got != "" {
		t.Errorf("no error is %q", got)
	}
}

func TestProbe_AnswersReachTheTerminalEscaped(t *testing.T) {
	m := newManager(t, manager.Options{})
	must(t, m.AddReadyCheck("database", func(context.Context) error { return errors.New("no" + clears) }))
	if code, text := probe(m, "/readyz"); code != http.StatusServiceUnavailable || raw(text) {
		t.Errorf("/readyz = %d %q, want it escaped", code, text)
	}
}

func TestEvents_NotesReachTheTerminalEscaped(t *testing.T) {
	posting(t, func(t *testing.T, p *postbox, tell func(object, reason string), _ func()) {
		tell("a", "Failed"+clears)
		time.Sleep(time.Second)
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(p.events) != 1 {
			t.Fatalf("%d events were sent, want one", len(p.events))
		}
		for _, e := range p.events {
			if raw(e.Note) || !strings.HasPrefix(e.Note, "a is Failed") {
				t.Errorf("the note is %q, want it escaped", e.Note)
			}
		}
	})
}
