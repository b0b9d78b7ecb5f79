// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"time"
)

var goroutineID = regexp.MustCompile(`^goroutine (\d+) `)

// goroutines returns the stacks of all goroutines, by number.
func goroutines() map[string]string {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	out := map[string]string{}
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		if id := goroutineID.FindStringSubmatch(stack); id != nil {
			out[id[1]] = stack
		}
	}
	return out
}

// nothingLeft waits until no goroutine runs that is not in before.
func nothingLeft(before map[string]string) error {
	var left []string
	for deadline := time.Now().Add(endWithin); ; {
		left = nil
		for id, stack := range goroutines() {
			if before[id] == "" {
				left = append(left, stack)
			}
		}
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d goroutines are left, the first of them:\n%s", len(left), left[0])
		}
		<-time.After(20 * time.Millisecond)
	}
}

// liveHeap returns the heap that is in use after a collection, in bytes.
func liveHeap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
