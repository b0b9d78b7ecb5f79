// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stream is an open watch. It queues its frames.
type stream struct {
	frames chan any // closed at the end of the stream
}

// read sends each frame of body until the body or ctx ends.
func (s *stream) read(ctx context.Context, body io.ReadCloser, contentType string) {
	defer close(s.frames)
	defer body.Close()
	next := jsonFrames(body)
	if strings.HasPrefix(contentType, protobufType) {
		next = protobufFrames(body)
	}
	for {
		f, err := next()
		if err != nil {
			return
		}
		select {
		case s.frames <- f:
		case <-ctx.Done():
			return
		}
	}
}

func jsonFrames(body io.Reader) func() (any, error) {
	decoder := json.NewDecoder(body)
	return func() (f any, err error) {
		err = decoder.Decode(&f)
		return f, err
	}
}

// protobufFrames returns a reader of length-prefixed events.
func protobufFrames(body io.Reader) func() (any, error) {
	return func() (any, error) {
		var length uint32
		if err := binary.Read(body, binary.BigEndian, &length); err != nil {
			return nil, err
		}
		raw := make([]byte, min(length, 16<<20))
		if _, err := io.ReadFull(body, raw); err != nil {
			return nil, err
		}
		var event metav1.WatchEvent
		if err := event.Unmarshal(raw); err != nil {
			return nil, err
		}
		obj, err := decodeProtobuf(event.Object.Raw)
		if err != nil {
			obj = fmt.Sprint(err)
		}
		return map[string]any{"type": event.Type, "object": obj}, nil
	}
}

// await takes frames until want is met: a number of frames, a bookmark, an object of the
// name marker, or the end. The time of bookmarks is up to the server, so a number does not
// count them, and only the word bookmark returns the one that it ends with. A frame of its
// own reports what did not arrive in time.
func (s *stream) await(ctx context.Context, want string, limit time.Duration) (frames []any) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var count int
	if _, err := fmt.Sscan(want, &count); err != nil {
		count = -1
	}
	for len(frames) != count {
		select {
		case <-ctx.Done():
			return frames
		case <-timer.C:
			return append(frames, "nothing more came")
		case f, ok := <-s.frames:
			if !ok {
				return append(frames, "the stream ended")
			}
			isBookmark := field(f, ".type") == "BOOKMARK"
			if !isBookmark || want == "bookmark" {
				frames = append(frames, f)
			}
			if isBookmark && want == "bookmark" || want == "marker" && field(f, ".object.metadata.name") == want {
				return frames
			}
		}
	}
	return frames
}
