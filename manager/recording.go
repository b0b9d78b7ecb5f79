// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"

	"github.com/flyball-dev/flyball/internal/effects"
	"github.com/flyball-dev/flyball/internal/recording"
	"github.com/flyball-dev/flyball/manager/internal/inspect"
)

// recordingPath is where a recording of the next seconds can be had.
const recordingPath = inspect.Path + "recording"

// Record keeps recordings of what the program does in a directory, one after another, so that the
// last of them can be replayed after a failure: see docs/recordings.md. Values of Secrets, tokens
// and texts that look like a credential are left out. Each recording begins with all cached objects.
type Record struct {
	// Dir is the directory, which is created. Empty: no recordings are kept.
	Dir string
	// Every is how long one lasts. 0: 10 minutes.
	Every time.Duration
	// Keep is how many there are. 0: 6.
	Keep int
	// Limit is the size of one, in bytes before compression; when it is reached, the next
	// begins. 0: 64 MiB.
	Limit int64
	// Redact are further fields to leave out, as "Kind.group:path.to.field", such as
	// "ConfigMap:data" or "Website.web.example.com:spec.password".
	Redact []string
}

func (r Record) ring() recording.Ring {
	return recording.Ring{Dir: r.Dir, Every: r.Every, Keep: r.Keep, Options: recording.Options{Limit: r.Limit, Redact: r.Redact}}
}

// misuse returns an error if r is invalid.
func (r Record) misuse() error {
	if r.Dir == "" && r.Every == 0 && r.Keep == 0 && r.Limit == 0 { // Redact holds for other recordings, too
		r.Dir = "."
	}
	if err := r.ring().Misuse(); err != nil {
		return fmt.Errorf("Record: %w", err)
	}
	return nil
}

// recordingOptions returns what all recordings of m have in common.
func (m *Manager) recordingOptions(r Record) recording.Options {
	return recording.Options{Redact: r.Redact, Decode: func(contentType string, body []byte) (any, error) {
		return effects.Tree(m.scheme, contentType, body)
	}}
}

// record adds the recordings of opts.
func (m *Manager) record(r Record) error {
	if r.Dir == "" {
		return nil
	}
	ring := r.ring()
	ring.Decode = m.recordingOptions(r).Decode
	return m.AddTo(StageInformers, recordings{ring, &m.windows, m.log})
}

// recordings is a Ring as a Runnable.
type recordings struct {
	ring recording.Ring
	to   *recording.Recorder
	log  logr.Logger
}

func (recordings) Name() string { return "recordings" }

// Run implements Runnable.
func (r recordings) Run(ctx context.Context) error { return r.ring.Run(ctx, r.to, r.log) }
