// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package textlog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"github.com/flyball-dev/flyball/internal/textlog"
)

func TestThrottled_RepeatedPanicsAreShownOnceInFullThenCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		user := textlog.Guard(textlog.New(&out, 0)).WithValues("controller", "website")
		log := textlog.Throttled(user)
		for i := range 5_000 {
			log.WithValues("key", fmt.Sprintf("prod/web-%d", i%1000)).Error(errors.New("boom"), "reconcile panicked", "stack", string(debug.Stack()))
		}
		got := out.String()
		if n := strings.Count(got, "reconcile panicked"); n != 10 {
			t.Errorf("%d lines at once, want 10", n)
		}
		if n := strings.Count(got, "guard_test.go"); n != 1 {
			t.Errorf("%d stacks, want 1", n)
		}
		if len(got) > 20_000 {
			t.Errorf("%d bytes, want at most 20,000", len(got))
		}
		out.Reset()
		time.Sleep(10 * time.Second)
		log.WithValues("key", "prod/web-1").Error(errors.New("boom"), "reconcile panicked")
		if got := out.String(); !strings.Contains(got, " omitted=4990 err=boom") {
			t.Errorf("the next line is %q, want it to count what was left out", got)
		}
		out.Reset()
		for range 100 {
			user.Error(errors.New("boom"), "reconcile panicked")
			log.V(1).Info("detail") // not shown
		}
		if n := strings.Count(out.String(), "\n"); n != 100 {
			t.Errorf("%d lines of a user's own logger, want all 100", n)
		}
	})
}

func TestThrottled_LongTextsAreCut(t *testing.T) {
	var out bytes.Buffer
	log := textlog.Throttled(textlog.New(&out, 0))
	log.Error(errors.New(strings.Repeat("é", 1<<20)), "long", "v", strings.Repeat("v", 1<<20))
	if n := out.Len(); n > 20_000 {
		t.Errorf("a line has %d bytes", n)
	}
	if !strings.Contains(out.String(), "… (2097152 bytes in all)") {
		t.Errorf("the line does not say how long the text was: %.100q", out.String())
	}
}

func TestGuard_ShowsNoBodies(t *testing.T) {
	loggers := func(out *bytes.Buffer) map[string]logr.Logger {
		return map[string]logr.Logger{
			"text":  textlog.New(out, 10),
			"funcr": funcr.New(func(_, args string) { out.WriteString(args) }, funcr.Options{Verbosity: 10}),
			"slog":  logr.FromSlogHandler(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.Level(-10)})),
		}
	}
	var out bytes.Buffer
	for name, log := range loggers(&out) {
		out.Reset()
		log = textlog.Throttled(log)
		log.WithValues("a", 1).V(8).Info("Request Body", "body", "canary")
		log.WithName("n").WithCallDepth(2).V(8).Info("Response Body", "body", "canary")
		log.V(9).Info("Request", "verb", "GET")
		if got := out.String(); strings.Contains(got, "canary") || !strings.Contains(got, "GET") {
			t.Errorf("%s: got %q; want all but the bodies", name, got)
		}
	}
}

// client-go logs as an error what it returns as one: the answer to a request that was
// cancelled, as at a stop.
func TestGuard_CancelledReadIsNoError(t *testing.T) {
	const msg = "Unexpected error when reading response body"
	for _, row := range []struct {
		verbosity int
		err       error
		msg       string
		want      string // level; empty: nothing is logged
	}{
		{0, context.Canceled, msg, ""},
		{0, fmt.Errorf("read: %w", context.Canceled), msg, ""},
		{2, context.Canceled, msg, "DEBUG"},
		{0, context.DeadlineExceeded, msg, "ERROR"},
		{0, io.ErrUnexpectedEOF, msg, "ERROR"},
		{0, context.Canceled, "Cannot clean up", "ERROR"},
	} {
		for name, of := range map[string]func(logr.Logger) logr.Logger{"guarded": textlog.Guard, "throttled": textlog.Throttled} {
			var out bytes.Buffer
			of(textlog.New(&out, row.verbosity)).WithValues("a", 1).Error(row.err, row.msg)
			want := row.want
			if want != "" {
				want = fmt.Sprintf("%-5s %s a=1 err=", want, row.msg)
			}
			if got := out.String(); !strings.Contains(got, want) || (got == "") != (want == "") {
				t.Errorf("%s, V(%d): %q with %v is logged as %q, want %q", name, row.verbosity, row.msg, row.err, got, want)
			}
		}
	}
}

// A program whose logger is based on log/slog keeps its levels.
func TestGuard_LeavesSlogWhatItIs(t *testing.T) {
	var out bytes.Buffer
	log := textlog.Throttled(logr.FromSlogHandler(slog.NewTextHandler(&out, nil))).WithValues("k", "v")
	slog.New(logr.ToSlogHandler(log)).With("a", 1).WithGroup("g").Warn("careful", "b", 2)
	textlog.Warn(log, errors.New("no"), "odd")
	for _, want := range []string{"level=WARN msg=careful k=v a=1 g.b=2", "level=WARN msg=odd k=v err=no"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got %q, want %q in it", out.String(), want)
		}
	}
}

func TestGuard_NamesTheCaller(t *testing.T) {
	var out bytes.Buffer
	log := textlog.Throttled(funcr.New(func(_, args string) { out.WriteString(args) }, funcr.Options{LogCaller: funcr.All}))
	log.Info("x")
	log.Error(nil, "y")
	if n := strings.Count(out.String(), `"file"="guard_test.go"`); n != 2 {
		t.Errorf("got %s, want this file twice", out.String())
	}
}

func TestGuard_OnceIsEnough(t *testing.T) {
	var out bytes.Buffer
	log := textlog.Throttled(textlog.New(&out, 0))
	for range 3 {
		textlog.Throttled(textlog.Guard(log)).Info("x")
	}
	if n := strings.Count(out.String(), "\n"); n != 1 {
		t.Errorf("%d lines, want one: guarding again must keep the throttle", n)
	}
	textlog.Throttled(logr.Logger{}).Info("nobody listens")
	textlog.Throttled(logr.Discard()).Info("nobody listens")
}
