// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/internal/textlog"
)

// maxWarnings bounds the texts that are remembered; when it is reached, all are
// dropped, so that texts that contain names cannot fill the memory.
const maxWarnings = 1000

// warningLog logs each warning of the server once.
type warningLog struct {
	fallback logr.Logger

	mu struct {
		sync.Mutex
		seen map[string]struct{}
	}
}

// NewWarningLog returns a handler that logs each distinct warning of the server once,
// to the logger of the call's context, or else to fallback. A Client has its own unless
// its REST configuration sets one; several clients of a program can share one.
func NewWarningLog(fallback logr.Logger) rest.WarningHandlerWithContext {
	w := &warningLog{fallback: fallback}
	w.mu.seen = map[string]struct{}{}
	return w
}

// HandleWarningHeaderWithContext is called by the RESTClient for each Warning header.
// Code 299 is the only one to which Kubernetes gives a meaning.
func (w *warningLog) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	if code != 299 || text == "" || !w.first(text) {
		return
	}
	log, err := logr.FromContext(ctx)
	if err != nil {
		log = w.fallback
	}
	textlog.Warn(textlog.Throttled(log), nil, "Warning from the API server", "warning", text)
}

func (w *warningLog) first(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, seen := w.mu.seen[text]; seen {
		return false
	}
	if len(w.mu.seen) >= maxWarnings {
		clear(w.mu.seen)
	}
	w.mu.seen[text] = struct{}{}
	return true
}
