// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"bytes"
	"runtime"
	"time"
)

// watchdog reports the reconciles of one worker that overrun the soft deadline.
type watchdog struct {
	limit     time.Duration // negative: none
	goroutine []byte        // the worker's, such as "goroutine 12 "
}

// newWatchdog is called by the worker that it watches.
func newWatchdog(limit time.Duration) *watchdog {
	return &watchdog{limit: limit, goroutine: goroutineHeader()}
}

// begin has report called, once, if stop has not been called when the limit has
// passed. stop returns after a report that has begun.
func (w *watchdog) begin(report func(stack string)) (stop func()) {
	if w.limit < 0 {
		return func() {}
	}
	return afterFunc(w.limit, func() { report(stackOf(w.goroutine, allStacks())) })
}

// afterFunc calls f when d has passed. stop prevents that, or waits until f has
// returned.
func afterFunc(d time.Duration, f func()) (stop func()) {
	done := make(chan struct{})
	timer := time.AfterFunc(d, func() {
		defer close(done)
		f()
	})
	return func() {
		if !timer.Stop() {
			<-done
		}
	}
}

// goroutineHeader is how the stack of this goroutine begins, with the space behind
// its number.
func goroutineHeader() []byte {
	var buf [64]byte
	first := buf[:runtime.Stack(buf[:], false)]
	word := bytes.IndexByte(first, ' ') + 1
	return bytes.Clone(first[:word+bytes.IndexByte(first[word:], ' ')+1])
}

// allStacks is the stacks of all goroutines, of at most 64 MiB.
func allStacks() []byte {
	const most = 64 << 20
	for size := 256 << 10; ; size *= 4 {
		buf := make([]byte, size)
		if n := runtime.Stack(buf, true); n < size || size >= most {
			return buf[:n]
		}
	}
}

// stackOf is the part of all that begins with header.
func stackOf(header, all []byte) string {
	for stack := range bytes.SplitSeq(all, []byte("\n\n")) {
		if len(header) > 0 && bytes.HasPrefix(stack, header) {
			return string(stack)
		}
	}
	return "the stack was not found among those of all goroutines"
}
