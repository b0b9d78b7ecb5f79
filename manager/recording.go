// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/internal/effects"
	"github.com/flyball-dev/flyball/internal/recording"
	"github.com/flyball-dev/flyball/manager/internal/inspect"
)

// recordingPath is where a recording of the next seconds can be had.
const recordingPath = inspect.Path + "recording"

// Record keeps recordings of what the program does in a directory, one after another, so that the
// last of them can be replayed after a failure: see docs/recordings.md. Values of Secrets, tokens
// and texts that look like a credential are left out. Each recording begins with all cached objects.
// One that is asked for at the metrics server interrupts them while it is made.
type Record struct {
	// Dir is the directory, which is created. Programs on several hosts can share it: the names of files
	// have that of the host. Empty: no recordings are kept.
	Dir string
	// Every is how long one lasts, from a minute; a day is the most. 0: 10 minutes.
	Every time.Duration
	// Keep is how many there are for each host, besides the one that is being made. 0: 6.
	Keep int
	// Limit is the size of one, in bytes before compression; when it is reached, the next
	// begins, at most one in a minute. 0: 64 MiB.
	Limit int64
	// Redact are further fields to leave out, as "Kind.group:path.to.field", such as
	// "ConfigMap:data" or "Website.web.example.com:spec.password". If the name of the resource is not
	// a regular plural of the kind, name the field again with the resource.
	Redact []string
}

func (r Record) ring(scheme *runtime.Scheme) recording.Ring {
	return recording.Ring{Dir: r.Dir, Every: r.Every, Keep: r.Keep, Options: r.options(scheme)}
}

// misuse returns an error if r is invalid.
func (r Record) misuse() error {
	if r.Dir == "" && r.Every == 0 && r.Keep == 0 && r.Limit == 0 { // Redact holds for other recordings, too
		r.Dir = "."
	}
	if err := r.ring(nil).Misuse(); err != nil {
		return fmt.Errorf("Record: %w", err)
	}
	return nil
}

// options returns what all recordings of a manager have in common.
func (r Record) options(scheme *runtime.Scheme) recording.Options {
	return recording.Options{Limit: r.Limit, Redact: r.Redact, Decode: func(contentType string, body []byte) (any, error) {
		return effects.Tree(scheme, contentType, body)
	}}
}

// kept keeps recordings, as a Runnable.
type kept struct {
	ring recording.Ring
	to   *recording.Recorder
	log  logr.Logger
}

func (kept) Name() string { return "recordings" }

// Run implements Runnable.
func (k kept) Run(ctx context.Context) error { return k.ring.Run(ctx, k.to, k.log) }
