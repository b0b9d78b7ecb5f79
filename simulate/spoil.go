// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"bytes"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// Spoilage is how an answer is damaged on its way.
type Spoilage string

const (
	// Truncated: the answer breaks off in its middle, with the connection.
	Truncated Spoilage = "truncated"
	// Garbage: bytes that mean nothing, in an answer that looks right.
	Garbage Spoilage = "garbage"
	// OtherPage: 200 with a page of HTML, as a proxy's log-in page.
	OtherPage Spoilage = "other page"
	// Huge: far more bytes than any object has. Where the form says before how
	// long it is, only the length is sent.
	Huge Spoilage = "huge"
)

// hugeBody is what Huge sends of JSON, hugeFrame what it announces otherwise.
const (
	hugeBody  = 160 << 20
	hugeFrame = 1 << 30
)

// Spoil damages the next list of a kind, or for OtherPage also the answer to
// its next watch.
func (s *Server) Spoil(r schema.GroupResource, how Spoilage) {
	s.fault(func(f *faults) { f.spoil[r] = how })
}

// SpoilEvent damages the next event of a kind on a watch.
func (s *Server) SpoilEvent(r schema.GroupResource, how Spoilage) {
	s.fault(func(f *faults) { f.spoilFrame[r] = how })
}

// spoilage takes what is to be done to the answer to a list or a watch.
func (s *Server) spoilage(c *call) Spoilage {
	if c.sound() {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := c.kind.GroupResource()
	how := s.mu.faults.spoil[r]
	delete(s.mu.faults.spoil, r)
	return how
}

// frameSpoilage takes what is to be done to f.
func (s *Server) frameSpoilage(r schema.GroupResource, f revisions.Event) Spoilage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Type == revisions.Bookmark || f.Type == revisions.Failed {
		return ""
	}
	how := s.mu.faults.spoilFrame[r]
	delete(s.mu.faults.spoilFrame, r)
	return how
}

func spoilBody(w http.ResponseWriter, e encode.Encoder, how Spoilage, body []byte) {
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

// spoilFrame writes raw damaged, and reports whether the stream goes on.
func spoilFrame(w http.ResponseWriter, e encode.Encoder, how Spoilage, raw []byte) bool {
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

// pour writes a JSON text that does not end.
func pour(w http.ResponseWriter) {
	_, _ = w.Write([]byte(`{"object":{"kind":"`))
	block := bytes.Repeat([]byte{'x'}, 1<<20)
	for range hugeBody / len(block) {
		if _, err := w.Write(block); err != nil {
			return
		}
	}
}
