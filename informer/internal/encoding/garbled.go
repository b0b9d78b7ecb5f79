// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package encoding

import (
	"bytes"
	"fmt"
	"time"
)

const (
	// MostGarbled frames in a row, and the time without a sound one after one of
	// them, end a watch.
	MostGarbled   = 16
	GarbledWithin = time.Second
	// GarbledLists is the time between lists that make up for garbled frames.
	GarbledLists = time.Minute
	// mostSkipped bytes are looked at for the line after a garbled one.
	mostSkipped = 1 << 20
)

// GarbledFrame is a frame that is no event. The stream can be read on: what follows is
// perhaps sound.
type GarbledFrame struct{ Err error }

func (g *GarbledFrame) Error() string { return g.Err.Error() }
func (g *GarbledFrame) Unwrap() error { return g.Err }

// garbled passes over a text that does not begin an event. The rest of its line is
// passed over when it is there.
func (f *FrameReader) garbled() error {
	f.skipping = true
	return &GarbledFrame{fmt.Errorf("not a watch event: %w", errNotJSON)}
}

// skip passes over the rest of a garbled line.
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
			return fmt.Errorf("%d bytes without a watch event: %w", skipped, errNotJSON)
		}
		if err := f.need(1); err != nil {
			return err
		}
	}
}

// nextEvent is where a line of text begins an event, though the object before it has not
// ended; -1: none does. An API server writes each event on one line, and no string of JSON
// has a line break.
func nextEvent(text []byte) int {
	if i := bytes.Index(text, []byte("\n"+compactStart)); i >= 0 {
		return i + 1
	}
	return -1
}
