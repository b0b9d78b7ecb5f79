// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package textlog

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

const (
	mostText  = 8 << 10  // of a value in a throttled line, in bytes
	mostStack = 64 << 10 // of a stack, in bytes
	// bodies is the level from which client-go logs bodies.
	bodies = 8
	// unread is what client-go logs when it cannot read an answer to its end.
	unread = "Unexpected error when reading response body"
	// streams is the level at which client-go logs streams that the server cut off.
	streams = 2
)

// partKeys and keyKeys are the keys of the values that identify the subject of
// a line: the part of the program, and the item in it.
var (
	partKeys = []string{"controller", "kind", "server", "webhook", "resource", "type", "lease"}
	keyKeys  = []string{"key", "keys", "scope", "source", "handler", "object", "secret", "target", "dir", "group", "request", "groupVersion"}
)

// Guard returns log without the bodies of requests and answers that client-go
// logs at V(8), which may contain Secrets and tokens. An answer that client-go
// did not read because the request was cancelled, as at a stop, is not an error
// but V(2). Loggers derived from it share one throttle, used by Throttled. A
// guarded logger is returned unchanged.
func Guard(log logr.Logger) logr.Logger {
	switch log.GetSink().(type) {
	case nil, guard, slogGuard:
		return log
	}
	return log.WithSink(guarded(log.GetSink(), &shared{seed: maphash.MakeSeed()}))
}

// Quiet returns ctx with its logger, or klog's, guarded: for requests by
// client-go, which logs bodies at V(8).
func Quiet(ctx context.Context) context.Context {
	log := klog.FromContext(ctx)
	if !log.V(bodies).Enabled() {
		return ctx
	}
	return logr.NewContext(ctx, Guard(log))
}

// Throttled returns a guarded log for the program's own lines: repeated lines
// are counted and shown at growing intervals. V(1) and above is not throttled.
func Throttled(log logr.Logger) logr.Logger { return throttled(log, true) }

// Unthrottled returns log for lines of users' code, which must not be omitted.
// It is the opposite of Throttled.
func Unthrottled(log logr.Logger) logr.Logger { return throttled(log, false) }

func throttled(log logr.Logger, rare bool) logr.Logger {
	log = Guard(log)
	switch sink := log.GetSink().(type) {
	case guard:
		sink.rare = rare
		return log.WithSink(sink)
	case slogGuard:
		sink.rare = rare
		return log.WithSink(sink)
	}
	return log
}

// shared is the common state of all loggers with one origin.
type shared struct {
	seed maphash.Seed
	mu   struct {
		sync.Mutex
		throttle throttle
	}
}

// guard is a value: With… methods modify a copy.
type guard struct {
	next   logr.LogSink
	shared *shared
	rare   bool
	name   string
	part   string // values of partKeys
	key    string // values of keyKeys
}

// slogGuard guards a logger based on log/slog, and supports log/slog itself.
type slogGuard struct {
	guard
	handler slog.Handler
}

// guarded wraps next for calls from this guard's methods.
func guarded(next logr.LogSink, s *shared) logr.LogSink {
	g := guard{shared: s}
	u, isSlog := next.(logr.Underlier)
	if deep, ok := next.(logr.CallDepthLogSink); ok {
		next = deep.WithCallDepth(1)
	}
	if g.next = next; isSlog {
		return slogGuard{g, u.GetUnderlying()}
	}
	return g
}

func (g guard) Init(logr.RuntimeInfo) {} // next was initialized by its own logger

func (g guard) Enabled(level int) bool { return g.next.Enabled(level) }

func (g guard) Info(level int, msg string, values ...any) {
	if level >= bodies && (msg == "Request Body" || msg == "Response Body") {
		values = []any{"body", "not shown, since it may hold a secret"}
	}
	if level <= 0 && g.rare {
		shown, ok := g.admit(nil, msg, values)
		if !ok {
			return
		}
		values = shown.values
	}
	g.next.Info(level, msg, values...)
}

func (g guard) Error(err error, msg string, values ...any) {
	if msg == unread && errors.Is(err, context.Canceled) { // the caller gets err too
		if g.next.Enabled(streams) {
			g.next.Info(streams, msg, append(slices.Clip(values), "err", err)...)
		}
		return
	}
	if g.rare {
		shown, ok := g.admit(err, msg, values)
		if !ok {
			return
		}
		err, values = shown.err, shown.values
	}
	g.next.Error(err, msg, values...)
}

// Warn implements the function Warn for a guarded logger.
func (g guard) Warn(err error, msg string, values ...any) {
	if g.rare {
		shown, ok := g.admit(err, msg, values)
		if !ok {
			return
		}
		err, values = shown.err, shown.values
	}
	warn(g.next, err, msg, values)
}

func (g guard) WithName(name string) logr.LogSink {
	g.next, g.name = g.next.WithName(name), g.name+"."+name
	return g
}

func (g guard) WithValues(values ...any) logr.LogSink {
	g.next = g.next.WithValues(values...)
	g.part, g.key = g.about(values)
	return g
}

// WithCallDepth implements logr.CallDepthLogSink.
func (g guard) WithCallDepth(depth int) logr.LogSink {
	if deep, ok := g.next.(logr.CallDepthLogSink); ok {
		g.next = deep.WithCallDepth(depth)
	}
	return g
}

func (g slogGuard) WithName(name string) logr.LogSink {
	return g.with(g.guard.WithName(name).(guard))
}

func (g slogGuard) WithValues(values ...any) logr.LogSink {
	return g.with(g.guard.WithValues(values...).(guard))
}

func (g slogGuard) WithCallDepth(depth int) logr.LogSink {
	return g.with(g.guard.WithCallDepth(depth).(guard))
}

func (g slogGuard) with(changed guard) logr.LogSink {
	if u, ok := changed.next.(logr.Underlier); ok {
		g.handler = u.GetUnderlying()
	}
	g.guard = changed
	return g
}

// Handle implements logr.SlogSink, like the next two.
func (g slogGuard) Handle(ctx context.Context, record slog.Record) error {
	return g.handler.Handle(ctx, record)
}

func (g slogGuard) WithAttrs(attrs []slog.Attr) logr.SlogSink {
	return g.on(g.handler.WithAttrs(attrs))
}

func (g slogGuard) WithGroup(name string) logr.SlogSink { return g.on(g.handler.WithGroup(name)) }

func (g slogGuard) on(handler slog.Handler) logr.SlogSink {
	again := guarded(logr.FromSlogHandler(handler).GetSink(), g.shared).(slogGuard)
	again.rare, again.name, again.part, again.key = g.rare, g.name, g.part, g.key
	return again
}

// about returns the subject of a line with values, in addition to those of g.
func (g guard) about(values []any) (part, key string) {
	part, key = g.part, g.key
	for i := 0; i+1 < len(values); i += 2 {
		name, ok := values[i].(string)
		switch {
		case !ok:
		case slices.Contains(partKeys, name):
			part += "\x00" + cut(text(values[i+1]), 256)
		case slices.Contains(keyKeys, name):
			key += "\x00" + cut(text(values[i+1]), 1024)
		}
	}
	return part, key
}

// details are the parts of a line besides its message.
type details struct {
	err    error
	values []any
}

// admit reports whether a line is shown now, and with which details.
func (g guard) admit(err error, msg string, values []any) (shown details, ok bool) {
	part, key := g.about(values)
	why := ""
	if err != nil {
		why = text(err)
	}
	s := subject{
		text:  g.shared.hash("text", g.name, msg),
		part:  g.shared.hash("part", g.name, msg, part),
		key:   g.shared.hash("key", g.name, msg, part, key),
		cause: g.shared.hash("cause", why),
	}
	now := time.Now()
	g.shared.mu.Lock()
	defer g.shared.mu.Unlock() // the next line shown has the number of lines before it
	show, omitted, forgotten := g.shared.mu.throttle.admit(now, s)
	if !show {
		return details{}, false
	}
	if len(why) > mostText {
		err = errors.New(cut(why, mostText))
	}
	values = slices.Clone(values)
	for i := 0; i+1 < len(values); i += 2 {
		value, ok := values[i+1].(string)
		switch {
		case !ok:
		case values[i] != stackKey:
			values[i+1] = cut(value, mostText)
		case g.shared.mu.throttle.stack(now, g.shared.hash("stack", frames(value))):
			values[i+1] = cut(value, mostStack)
		default:
			values[i+1] = "as logged before"
		}
	}
	if omitted > 0 {
		values = append(values, "omitted", omitted)
	}
	if forgotten > 0 {
		values = append(values, "omittedOfOthers", forgotten)
	}
	return details{err, values}, true
}

func (s *shared) hash(parts ...string) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	for _, part := range parts {
		_, _ = h.WriteString(part)
		_ = h.WriteByte(0)
	}
	return h.Sum64()
}

// frames returns a stack without what differs between goroutines and calls.
func frames(stack string) string {
	var b strings.Builder
	for line := range strings.Lines(stack) {
		switch {
		case strings.HasPrefix(line, "goroutine "), strings.HasPrefix(line, "created by "):
			continue
		case strings.HasPrefix(line, "\t"):
			line, _, _ = strings.Cut(line, " ")
		default:
			if i := strings.LastIndexByte(line, '('); i > 0 {
				line = line[:i]
			}
		}
		b.WriteString(line)
	}
	return b.String()
}

// cut shortens a text and appends its full length.
func cut(value string, most int) string {
	if len(value) <= most {
		return value
	}
	return strings.ToValidUTF8(value[:most], "") + fmt.Sprintf("… (%d bytes in all)", len(value))
}
