// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package textlog

import (
	"context"
	"log/slog"
	"time"

	"github.com/go-logr/logr"
)

// warner is a logr.LogSink that has warnings, which logr itself has not.
type warner interface {
	Warn(err error, msg string, values ...any)
}

// Warn logs what somebody should look at and what may pass without anybody: as WARN
// to a logger of this package and to one that stands on log/slog, as an error to any
// other. A filter by level finds it either way. err may be nil.
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
		_ = handler.Handle(ctx, record) // there is nobody to tell
	default:
		sink.Error(err, msg, values...)
	}
}
