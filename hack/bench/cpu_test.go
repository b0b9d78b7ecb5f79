// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"syscall"
	"testing"
	"time"
)

// cpuTime is the processor time this process has used. It tells what a workload costs on a machine that does other work too.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// perItem reports wall and processor time per item, of a benchmark that began at the processor time start.
func perItem(b *testing.B, items int, start time.Duration) {
	n := float64(b.N * items)
	b.ReportMetric(float64((cpuTime()-start).Nanoseconds())/n, "cpu-ns/item")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/item")
	b.ReportMetric(0, "ns/op")
}
