// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package textlog is a logr.Logger that writes lines for people: time, level,
// message, and the values as key=value. A stack follows on indented lines;
// everything else is on one line, with control characters escaped.
//
//	2026-01-02T15:04:05.678Z INFO  Started the manager server=https://127.0.0.1:6443
//	2026-01-02T15:04:05.678Z DEBUG Watching kind=Pod scope="in all namespaces"
//	2026-01-02T15:04:05.678Z WARN  Not up to date: forbidden kind=Secret
//	2026-01-02T15:04:05.678Z ERROR reconcile failed key=prod/web err="…"
package textlog

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-logr/logr"
)

const layout = "2006-01-02T15:04:05.000Z"

// stackKey is the key of a value shown on separate lines.
const stackKey = "stack"

// Form configures a logger. The zero value writes text without V(1) and above.
type Form struct {
	// Verbosity shows V(n) for n up to it.
	Verbosity int
	// Least is the lowest level shown. Debug and Trace increase Verbosity.
	Least Level
	// JSON writes one JSON object per entry.
	JSON bool
}

// Logger returns a logger that writes to w, one Write per entry and one at a
// time. Safe for concurrent use.
func (f Form) Logger(w io.Writer) logr.Logger {
	switch f.Least {
	case Debug:
		f.Verbosity = max(f.Verbosity, debugTo)
	case Trace:
		f.Verbosity = math.MaxInt
	case Warning, Error:
		f.Verbosity = -1
	}
	return logr.New(sink{out: &output{w: w}, form: f})
}

// New returns a text logger with that verbosity.
func New(w io.Writer, verbosity int) logr.Logger { return Form{Verbosity: verbosity}.Logger(w) }

type output struct {
	mu sync.Mutex
	w  io.Writer
}

// sink is a value: With… methods modify a copy.
type sink struct {
	out    *output
	form   Form
	name   string
	values []any
}

func (sink) Init(logr.RuntimeInfo) {}

func (s sink) Enabled(level int) bool { return level <= s.form.Verbosity }

func (s sink) Info(level int, msg string, values ...any) { s.write(levelOf(level), msg, values) }

func (s sink) Error(err error, msg string, values ...any) { s.write(Error, msg, with(err, values)) }

// Warn is missing in logr; see the function Warn.
func (s sink) Warn(err error, msg string, values ...any) {
	if s.form.Least <= Warning {
		s.write(Warning, msg, with(err, values))
	}
}

func with(err error, values []any) []any {
	if err == nil {
		return values
	}
	return append(values[:len(values):len(values)], "err", err)
}

func (s sink) WithName(name string) logr.LogSink {
	if s.name != "" {
		name = s.name + "." + name
	}
	s.name = name
	return s
}

func (s sink) WithValues(values ...any) logr.LogSink {
	s.values = append(s.values[:len(s.values):len(s.values)], values...)
	return s
}

func (s sink) write(importance Level, msg string, values []any) {
	line := s.asText
	if s.form.JSON {
		line = s.asJSON
	}
	entry := line(importance, msg, values)
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	_, _ = s.out.w.Write(entry) // there is nowhere to report it
}

func (s sink) asText(importance Level, msg string, values []any) []byte {
	var line, beneath bytes.Buffer
	fmt.Fprintf(&line, "%s %-5s ", time.Now().UTC().Format(layout), importance)
	if s.name != "" {
		line.WriteString(Visible(s.name) + ": ")
	}
	line.WriteString(Visible(strings.ReplaceAll(msg, "\n", " ")))
	for _, pairs := range [][]any{s.values, values} {
		for i := 0; i < len(pairs); i += 2 {
			key, value := fmt.Sprint(pairs[i]), "(missing)"
			if i+1 < len(pairs) {
				value = text(pairs[i+1])
			}
			if key == stackKey && strings.Contains(value, "\n") {
				value = VisibleLines(strings.TrimSpace(value))
				fmt.Fprintf(&beneath, "\t%s:\n\t\t%s\n", key, strings.ReplaceAll(value, "\n", "\n\t\t"))
				continue
			}
			fmt.Fprintf(&line, " %s=%s", quoted(key), quoted(value))
		}
	}
	line.WriteByte('\n')
	line.Write(beneath.Bytes())
	return line.Bytes()
}

// text formats a value. Package fmt recovers panics of Error and String.
func text(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case error, fmt.Stringer:
	case logr.Marshaler:
		value = marshalled(v)
	}
	return fmt.Sprintf("%+v", value)
}

func marshalled(v logr.Marshaler) (value any) {
	defer func() {
		if p := recover(); p != nil {
			value = fmt.Sprintf("(panic: %v)", p)
		}
	}()
	return v.MarshalLog()
}

// quoted quotes a value whose end would not be visible.
func quoted(value string) string {
	odd := func(r rune) bool { return r == '"' || r == ' ' || isHidden(r) }
	if value == "" || !utf8.ValidString(value) || strings.ContainsFunc(value, odd) {
		return strconv.Quote(value)
	}
	return value
}
