// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	largestBundle = 1 << 30  // bytes, uncompressed
	largestFile   = 64 << 20 // of the log

	longest  = 25 * time.Hour // that a recording lasts
	mostBack = time.Second    // from one entry to the next
)

// Bundle is a recording that was read.
type Bundle struct {
	Head
	Entries []Entry
	// End is why the recording ended. Without it, the recording was cut off: what was written
	// before is in Entries.
	End *End
}

// Read reads a bundle, compressed by gzip or not at all. It returns an error if it is not a
// recording, or of another Format.
func Read(from io.Reader) (*Bundle, error) {
	in := bufio.NewReader(from)
	var unpacked io.Reader = in
	if magic, _ := in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		zip, err := gzip.NewReader(in)
		if err != nil {
			return nil, fmt.Errorf("read a recording: %w", err)
		}
		unpacked = zip
	}
	b, err := readTar(tar.NewReader(io.LimitReader(unpacked, largestBundle)))
	if err != nil {
		return nil, fmt.Errorf("read a recording: %w", err)
	}
	return b, nil
}

func readTar(files *tar.Reader) (*Bundle, error) {
	b := &Bundle{}
	for b.End == nil {
		header, err := files.Next()
		if err != nil {
			return b.cutOff(err)
		}
		if header.Size > largestFile {
			return nil, fmt.Errorf("its file %s has %d bytes, more than %d", header.Name, header.Size, largestFile)
		}
		text, err := io.ReadAll(files)
		if err != nil {
			return b.cutOff(err)
		}
		switch {
		case b.Format == "" && header.Name != "bundle.json":
			return nil, fmt.Errorf("it begins with %q and not with bundle.json: it is not a recording of Flyball", header.Name)
		case header.Name == "bundle.json":
			err = json.Unmarshal(text, &b.Head)
			if err == nil && b.Format != Format {
				err = fmt.Errorf("its format is %q, and this version of Flyball reads %q; replay it with the version that made it", b.Format, Format)
			}
		case strings.HasPrefix(header.Name, "log/"):
			err = b.readLog(text)
		case header.Name == "end.json":
			b.End = &End{}
			err = json.Unmarshal(text, b.End)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", header.Name, err)
		}
	}
	if b.End.Entries != len(b.Entries) {
		return nil, fmt.Errorf("it has %d entries, and says that it has %d", len(b.Entries), b.End.Entries)
	}
	return b, nil
}

// cutOff returns what was read before the end of the file.
func (b *Bundle) cutOff(err error) (*Bundle, error) {
	ends := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	switch {
	case b.Format == "" && ends:
		return nil, errors.New("it ends before its head: it is empty, cut off, or not a recording of Flyball")
	case b.Format == "":
		return nil, fmt.Errorf("it is not a recording of Flyball: %w", err)
	case !ends:
		return nil, err
	}
	return b, nil
}

func (b *Bundle) readLog(text []byte) error {
	for line := range bytes.Lines(text) {
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("entry %d: %w", len(b.Entries)+1, err)
		}
		if err := b.check(&e); err != nil {
			return fmt.Errorf("entry %d: %w", len(b.Entries)+1, err)
		}
		b.Entries = append(b.Entries, e)
	}
	return nil
}

// check returns an error if e cannot follow the entries before it.
func (b *Bundle) check(e *Entry) error {
	var before time.Duration
	if n := len(b.Entries); n > 0 {
		before = b.Entries[n-1].At
	}
	switch {
	case e.At < 0 || e.At > longest:
		return fmt.Errorf("its time is %v after the beginning; it must be between 0 and %v", e.At, longest)
	case e.At < before-mostBack:
		return fmt.Errorf("its time is %v after the beginning, and that of the entry before it %v", e.At, before)
	case e.What == Object && len(e.Object) == 0:
		return errors.New("it has no object")
	}
	return nil
}
