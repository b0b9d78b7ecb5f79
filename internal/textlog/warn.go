// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package textlog

import (
	"context"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
)

// warner is a logr.LogSink with warnings, which logr lacks.
type warner interface {
	Warn(err error, msg string, values ...any)
}

// Warn logs a problem that may disappear without action: as WARN to a logger of
// this package or one based on log/slog, as an error to any other. Filters by
// level find it either way. err may be nil.
func Warn(log logr.Logger, err error, msg string, values ...any) {
	if log.GetSink() != nil {
		warn(log.GetSink(), err, msg, values)
	}
}

func warn(sink logr.LogSink, err error, msg string, values []any) {
	switch sink := sink.(type) {
	case warner:
		sink.Warn(err, msg, values...)
	case logr.Underlier:
		handler, ctx := sink.GetUnderlying(), context.Background()
		if !handler.Enabled(ctx, slog.LevelWarn) {
			return
		}
		record := slog.NewRecord(time.Now(), slog.LevelWarn, msg, 0)
		record.Add(values...)
		if err != nil {
			record.Add("err", err)
		}
		_ = handler.Handle(ctx, record) // there is nowhere to report it
	default:
		sink.Error(err, msg, values...)
	}
}
