// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package histogram_test

import (
	"maps"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/internal/histogram"
)

func TestRecorder_CountsUpToEachBound(t *testing.T) {
	r := histogram.Recorder{Bounds: []time.Duration{time.Millisecond, time.Second}}
	for _, d := range []time.Duration{0, time.Millisecond, 2 * time.Millisecond, time.Second, time.Minute} {
		r.Observe(d)
	}
	h := r.Histogram()
	if want := time.Minute + time.Second + 3*time.Millisecond; h.Count != 5 || h.Sum != want {
		t.Errorf("%d durations of %v, want 5 of %v", h.Count, h.Sum, want)
	}
	want := map[time.Duration]uint64{time.Millisecond: 2, time.Second: 4}
	if got := maps.Collect(h.Buckets()); !maps.Equal(got, want) {
		t.Errorf("buckets %v, want %v: bounds are inclusive, and counts rise", got, want)
	}
	if zero := maps.Collect(histogram.Histogram{}.Buckets()); len(zero) != 0 {
		t.Errorf("the zero Histogram has buckets %v", zero)
	}
}
