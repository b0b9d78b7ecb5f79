// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"testing"
	"time"

	"github.com/flyball-dev/flyball/internal/cputime"
)

// perItem reports wall and processor time per item of a benchmark that began at the
// processor time start.
func perItem(b *testing.B, items int, start time.Duration) {
	n := float64(b.N * items)
	b.ReportMetric(float64((cputime.Used()-start).Nanoseconds())/n, "cpu-ns/item")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/item")
	b.ReportMetric(0, "ns/op")
}
