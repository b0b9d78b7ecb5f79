// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/textlog"
)

const (
	manyObjects = 1000 // a reconcile that walks over more is recorded
	mostScans   = 16   // lines of code
	scanEvery   = time.Second
	deepest     = 128 // frames of a stack
)

// usage is how a program uses an informer. The zero usage is ready to use. Safe for concurrent use.
type usage struct {
	read atomic.Bool  // since unusedSince was called
	due  atomic.Int64 // when the next scan is recorded, in nanoseconds since 1970
	log  logr.Logger
	mu   struct {
		sync.Mutex
		last   time.Time // when it was known to be used
		joined int64     // handlers by then
		scans  []state.Scan
	}
}

// touch records a read. Readers share the flag, so it is written only if it has to change.
func (u *usage) touch() {
	if u != nil && !u.read.Load() {
		u.read.Store(true)
	}
}

// unusedSince returns since when nothing has used the informer, or about that; zero: something does.
// used: there is a handler, or reads are not possible yet. joined is the number of handlers so far.
func (u *usage) unusedSince(now time.Time, used bool, joined int64) time.Time {
	used = u.read.Swap(false) || used
	u.mu.Lock()
	defer u.mu.Unlock()
	if used || joined != u.mu.joined || u.mu.last.IsZero() {
		u.mu.last, u.mu.joined = now, joined
		return time.Time{}
	}
	return u.mu.last
}

// scanned records that a reader has walked over n objects, if it is a reconcile: some microseconds,
// once a second.
func (u *usage) scanned(n int) {
	if u == nil || n <= manyObjects {
		return
	}
	now := time.Now()
	due := u.due.Load()
	if now.UnixNano() < due || !u.due.CompareAndSwap(due, now.Add(scanEvery).UnixNano()) {
		return
	}
	if caller := reconcileReading(); caller != "" && u.record(caller, n, now) {
		textlog.Warn(u.log, nil, "A reconcile reads all objects of a kind: "+string(state.ExpensiveRead), "caller", caller, "objects", n,
			"hint", "name the namespace, or add an index with AddIndex and list by it")
	}
}

// record records a scan, and reports whether it is the first of its caller.
func (u *usage) record(caller string, objects int, now time.Time) (first bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	i := slices.IndexFunc(u.mu.scans, func(s state.Scan) bool { return s.Caller == caller })
	if first = i < 0; first {
		if i = len(u.mu.scans); i == mostScans {
			return false
		}
		u.mu.scans = append(u.mu.scans, state.Scan{Caller: caller, First: now})
	}
	s := &u.mu.scans[i]
	s.Objects, s.Last = max(s.Objects, objects), now
	s.Count++
	return first
}

func (u *usage) scans() []state.Scan {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.mu.scans)
}

// reconcileReading returns the line of the reconcile that reads, such as
// "example.com/shop/controllers.(*Website).reconcile (website.go:87)"; empty: the reader is none.
func reconcileReading() (caller string) {
	var pcs [deepest]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for more := true; more; {
		var f runtime.Frame
		f, more = frames.Next()
		if callsReconcile(f.Function) {
			return caller
		}
		if caller == "" && !reads(f.Function) {
			caller = fmt.Sprintf("%s (%s:%d)", f.Function, path.Base(f.File), f.Line)
		}
	}
	return ""
}

const module = "github.com/flyball-dev/flyball/"

// callsReconcile reports whether a function is that of a controller which calls the reconciler.
func callsReconcile(function string) bool {
	return strings.HasPrefix(function, module+"reconcile.(*Controller[...]).call") ||
		strings.HasPrefix(function, "sigs.k8s.io/controller-runtime/pkg/internal/controller.(*Controller[")
}

// readers are packages between an informer and whoever reads.
var readers = []string{
	"runtime.", "slices.", "iter.", "maps.", "reflect.", "k8s.io/client-go/", "sigs.k8s.io/controller-runtime/",
	module + "informer.", module + "informer/", module + "bridge/", module + "reconcile.", module + "client.",
}

func reads(function string) bool {
	return slices.ContainsFunc(readers, func(of string) bool { return strings.HasPrefix(function, of) })
}
