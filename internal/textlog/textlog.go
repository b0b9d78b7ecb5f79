// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package textlog is a logr.Logger that writes lines for people: when, how
// important, what, and the values as key=value. A value of several lines, as a
// stack, follows beneath, indented.
//
//	2026-01-02T15:04:05.678Z INFO  manager runs server=https://127.0.0.1:6443
//	2026-01-02T15:04:05.678Z V1    Watching kind=Pod scope="in all namespaces"
//	2026-01-02T15:04:05.678Z ERROR reconcile failed key=prod/web err="…"
package textlog

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/go-logr/logr"
)

const layout = "2006-01-02T15:04:05.000Z"

// New returns a logger that writes to w, one Write per entry and one at a time.
// V(n) is shown for n up to verbosity. Safe for concurrent use.
func New(w io.Writer, verbosity int) logr.Logger {
	return logr.New(sink{out: &output{w: w}, verbosity: verbosity})
}

type output struct {
	mu sync.Mutex
	w  io.Writer
}

// sink is a value: what With… adds, the copy has.
type sink struct {
	out       *output
	verbosity int
	name      string
	values    []any
}

func (sink) Init(logr.RuntimeInfo) {}

func (s sink) Enabled(level int) bool { return level <= s.verbosity }

func (s sink) Info(level int, msg string, values ...any) {
	importance := "INFO"
	if level > 0 {
		importance = "V" + strconv.Itoa(level)
	}
	s.write(importance, msg, values)
}

func (s sink) Error(err error, msg string, values ...any) {
	if err != nil {
		values = append(values[:len(values):len(values)], "err", err)
	}
	s.write("ERROR", msg, values)
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

func (s sink) write(importance, msg string, values []any) {
	var line, beneath bytes.Buffer
	fmt.Fprintf(&line, "%s %-5s ", time.Now().UTC().Format(layout), importance)
	if s.name != "" {
		line.WriteString(s.name + ": ")
	}
	line.WriteString(strings.ReplaceAll(msg, "\n", " "))
	for _, pairs := range [][]any{s.values, values} {
		for i := 0; i < len(pairs); i += 2 {
			key, value := fmt.Sprint(pairs[i]), "(missing)"
			if i+1 < len(pairs) {
				value = text(pairs[i+1])
			}
			if strings.Contains(value, "\n") {
				fmt.Fprintf(&beneath, "\t%s:\n\t\t%s\n", key, strings.ReplaceAll(strings.TrimSpace(value), "\n", "\n\t\t"))
				continue
			}
			fmt.Fprintf(&line, " %s=%s", key, quoted(value))
		}
	}
	line.WriteByte('\n')
	line.Write(beneath.Bytes())
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	_, _ = s.out.w.Write(line.Bytes()) // there is nobody to tell
}

// text of a value. Package fmt catches panics of Error and String.
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

// quoted where the value's end would not be seen.
func quoted(value string) string {
	odd := func(r rune) bool { return r == '"' || unicode.IsSpace(r) || !unicode.IsPrint(r) }
	if value == "" || strings.ContainsFunc(value, odd) {
		return strconv.Quote(value)
	}
	return value
}
