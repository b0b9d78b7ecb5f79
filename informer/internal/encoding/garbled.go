// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encoding

import (
	"bytes"
	"fmt"
	"time"

	"github.com/flyball-dev/flyball/internal/jsonspan"
)

const (
	// A watch ends after MostGarbled consecutive garbled frames, or
	// GarbledWithin after one without a valid frame.
	MostGarbled   = 16
	GarbledWithin = time.Second
	// GarbledLists is the time between lists that make up for garbled frames.
	GarbledLists = time.Minute
	// mostSkipped is how many bytes are searched for the end of a garbled line.
	mostSkipped = 1 << 20
)

// GarbledFrame is a frame that is not an event. Later frames may be valid.
type GarbledFrame struct{ Err error }

func (g *GarbledFrame) Error() string { return g.Err.Error() }
func (g *GarbledFrame) Unwrap() error { return g.Err }

// garbled starts to skip the rest of a line that does not begin an event.
func (f *FrameReader) garbled() error {
	f.skipping = true
	return &GarbledFrame{fmt.Errorf("not a watch event: %w", jsonspan.ErrNotJSON)}
}

// skip skips the rest of a garbled line.
func (f *FrameReader) skip() error {
	for skipped := 0; ; {
		if end := bytes.IndexByte(f.Buf[f.r:f.w], '\n'); end >= 0 {
			f.r += end + 1
			f.skipping = false
			return nil
		}
		skipped += f.w - f.r
		f.r = f.w
		if skipped > mostSkipped {
			return fmt.Errorf("%d bytes without a watch event: %w", skipped, jsonspan.ErrNotJSON)
		}
		if err := f.need(1); err != nil {
			return err
		}
	}
}

// nextEvent returns where a line of text begins an event although the object
// before it has not ended, or -1. An API server writes each event on one line,
// and no JSON string has a line break.
func nextEvent(text []byte) int {
	if i := bytes.Index(text, []byte("\n"+compactStart)); i >= 0 {
		return i + 1
	}
	return -1
}
