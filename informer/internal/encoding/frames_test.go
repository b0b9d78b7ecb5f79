// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encoding_test

import (
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/flyball-dev/flyball/informer/internal/encoding"
	"github.com/flyball-dev/flyball/kube"
)

// endless is a body without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// A body that exceeds the limit takes twice the limit while it is read, not more: buffers
// double, and the last one ends where the excess shows.
func TestReadBody_TooLargeTakesTwiceTheLimit(t *testing.T) {
	const limit = 16 << 20
	for _, guess := range []int64{0, limit / 3, 2 * limit} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := encoding.ReadBody(endless{}, limit, guess)
		runtime.ReadMemStats(&after)
		if large := (*kube.TooLargeError)(nil); !errors.As(err, &large) || large.Limit != limit {
			t.Errorf("guess %d: %v, want a TooLargeError with the limit", guess, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 5*limit/2 {
			t.Errorf("guess %d: %d bytes were allocated for a limit of %d", guess, took, limit)
		}
	}
	if body, err := encoding.ReadBody(io.LimitReader(endless{}, limit), limit, 0); err != nil || len(body) != limit {
		t.Errorf("a body of the limit: %d bytes, %v", len(body), err)
	}
}
