// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/flyball-dev/flyball/informer/internal/encoding"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

// wireStream reads and decodes the frames of a watch. In the list at its start,
// frames that have arrived together are decoded on all processors.
type wireStream struct {
	ctx     context.Context
	body    io.ReadCloser
	frames  *encoding.FrameReader
	decoder *Decoder
	server  *Server

	together bool           // decode frames that have arrived together
	decoded  []decodedFrame // by the last call of decodeTogether
	taken    int            // of decoded
}

type decodedFrame struct {
	raw []byte // until it is decoded
	listwatch.Frame[kube.Object]
	err error
}

// NewStream returns a stream that reads frames from body until Close. If the
// stream proves dead, server closes its idle connections; it may be nil.
func NewStream(ctx context.Context, body io.ReadCloser, protobuf bool, decoder *Decoder, server *Server) *wireStream {
	return &wireStream{ctx: ctx, body: body, frames: encoding.NewFrameReader(body, protobuf, encoding.MaxFrame), decoder: decoder, server: server}
}

// setTogether makes the stream decode frames that have arrived together on all
// processors, until the bookmark that ends the initial events.
func (s *wireStream) setTogether(together bool) {
	s.together = together
	s.frames.SetAhead(together)
}

// Next blocks for the next frame. io.EOF is a clean end.
func (s *wireStream) Next() (listwatch.Frame[kube.Object], error) {
	if s.taken == len(s.decoded) {
		raw, err := s.frames.Next()
		if err != nil {
			return listwatch.Frame[kube.Object]{}, s.ended(err)
		}
		if !s.together {
			next := s.decode(raw)
			return next.Frame, next.err
		}
		s.decodeTogether(raw)
	}
	next := s.decoded[s.taken]
	s.decoded[s.taken] = decodedFrame{}
	if s.taken++; s.taken == len(s.decoded) {
		s.decoded, s.taken = nil, 0
	}
	if next.InitialEventsEnd {
		s.setTogether(false)
	}
	return next.Frame, next.err
}

func (s *wireStream) decode(raw []byte) decodedFrame {
	frame, err := s.decoder.frame(s.frames.Protobuf, raw)
	if err != nil {
		err = &encoding.GarbledFrame{Err: err} // the start of the next frame is known
	}
	return decodedFrame{Frame: frame, err: err}
}

// decodeTogether decodes first and the frames that have arrived after it. It
// does not read, so that no frame waits for later ones.
func (s *wireStream) decodeTogether(first []byte) {
	s.decoded = append(s.decoded, decodedFrame{raw: first})
	for raw := s.frames.Ready(); raw != nil; raw = s.frames.Ready() {
		s.decoded = append(s.decoded, decodedFrame{raw: raw})
	}
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < len(s.decoded); i = int(next.Add(1)) - 1 {
			s.decoded[i] = s.decode(s.decoded[i].raw)
		}
	}
	var others sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(s.decoded)) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
}

// ended returns the error of a stream whose next frame cannot be read.
func (s *wireStream) ended(err error) error {
	switch {
	case s.ctx.Err() != nil:
		return context.Cause(s.ctx)
	case errors.Is(err, io.EOF):
		return io.EOF
	case errors.Is(err, http.ErrBodyReadAfterClose):
		return errors.New("read watch: the stream is closed")
	}
	wrapped := fmt.Errorf("read watch of %s: %w", s.decoder.kind.Kind, err)
	if _, is := err.(*encoding.GarbledFrame); is {
		wrapped = &encoding.GarbledFrame{Err: wrapped}
	}
	return wrapped
}

// Close ends the stream and frees its connection.
func (s *wireStream) Close() error {
	if s.server != nil {
		s.server.distrust(s.ctx)
	}
	return s.body.Close()
}
