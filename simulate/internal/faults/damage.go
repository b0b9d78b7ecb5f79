// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"net/http"

	"github.com/flyball-dev/flyball/simulate/internal/encode"
)

// Damage is how an answer is damaged.
type Damage string

const (
	Truncated Damage = "truncated"  // the connection breaks in the middle of the answer
	Garbage   Damage = "garbage"    // random bytes
	OtherPage Damage = "other page" // 200 with HTML
	Huge      Damage = "huge"       // more bytes than any object has
)

// hugeBody is how many bytes of JSON Huge sends, hugeFrame the length that it announces
// otherwise.
const (
	hugeBody  = 160 << 20
	hugeFrame = 1 << 30
)

// Answer sends a damaged body.
func (how Damage) Answer(w http.ResponseWriter, e encode.Encoder, body []byte) {
	switch how {
	case Truncated:
		w.Header().Set("Content-Type", e.ContentType())
		_, _ = w.Write(body[:len(body)/2])
		flush(w)
		panic(http.ErrAbortHandler)
	case Garbage:
		encode.Respond(w, e, http.StatusOK, bytes.Repeat([]byte{0xff, '{'}, 100))
	case OtherPage:
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html><body>Please log in.</body></html>"))
	case Huge:
		w.Header().Set("Content-Type", e.ContentType())
		pour(w)
	}
}

// Event sends a damaged event, and reports whether the watch continues.
func (how Damage) Event(w http.ResponseWriter, e encode.Encoder, raw []byte) bool {
	switch how {
	case Truncated:
		_, _ = w.Write(raw[:len(raw)/2])
		flush(w)
		panic(http.ErrAbortHandler)
	case Huge:
		if !e.Protobuf {
			pour(w)
			return false
		}
		_, err := w.Write([]byte{hugeFrame >> 24, 0, 0, 0})
		flush(w)
		return err == nil
	default:
		_, err := w.Write(append(bytes.Repeat([]byte{'x'}, 64), '\n'))
		flush(w)
		return err == nil
	}
}

// pour writes JSON that does not end.
func pour(w http.ResponseWriter) {
	_, _ = w.Write([]byte(`{"object":{"kind":"`))
	block := bytes.Repeat([]byte{'x'}, 1<<20)
	for range hugeBody / len(block) {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}

func flush(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }
