// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/internal/ration"
)

// frame decodes one frame of a watch. The objects share nothing with raw. An
// error means that the stream cannot be trusted any further.
func (d *decoder[T]) frame(protobuf bool, raw []byte) (frame Frame[T], err error) {
	var typ, object []byte
	if protobuf {
		typ, object, err = splitProtobufEvent(raw)
	} else {
		var ok bool
		if typ, object, ok = splitCompactEvent(raw); !ok {
			typ, object, err = splitJSONEvent(raw)
		}
	}
	if err != nil {
		return frame, err
	}
	switch FrameType(typ) {
	case FrameAdded:
		frame.Type = FrameAdded
	case FrameModified:
		frame.Type = FrameModified
	case FrameDeleted:
		frame.Type = FrameDeleted
	case FrameBookmark:
		frame.Type = FrameBookmark
		return d.bookmark(protobuf, object)
	case FrameError:
		return Frame[T]{Type: FrameError, Err: discreet(d.kind, statusError(object))}, nil
	default:
		return frame, fmt.Errorf("read watch event: type %q is not known", shorten(typ))
	}
	if !protobuf {
		frame.Item = d.jsonItem(object, false, ration.Alone())
		return frame, nil
	}
	e, err := openEnvelope(object)
	if err != nil {
		return frame, err
	}
	if apiVersion, kind := string(e.apiVersion), string(e.kind); !d.isKind(apiVersion, kind) {
		id, idErr := protobufIdentity(e.raw)
		frame.Item = d.stranger(id, apiVersion, kind, idErr)
		return frame, nil
	}
	frame.Item = d.protobufItem(e.raw, ration.Alone())
	return frame, nil
}

// bookmark reads the metadata of a bookmark's object.
func (d *decoder[T]) bookmark(protobuf bool, object []byte) (frame Frame[T], err error) {
	var meta metav1.ObjectMeta
	if err := metadataFits(protobuf, object); err != nil {
		return frame, fmt.Errorf("read bookmark: %w", err)
	}
	if protobuf {
		e, err := openEnvelope(object)
		if err != nil {
			return frame, err
		}
		_, metadata, _, err := cutField(e.raw, objectMetadata)
		if err != nil {
			return frame, fmt.Errorf("read bookmark: %w", err)
		}
		if err := guard(func() error { return meta.Unmarshal(metadata) }); err != nil {
			return frame, fmt.Errorf("read bookmark: %w", err)
		}
	} else {
		into := struct {
			Metadata *metav1.ObjectMeta `json:"metadata"`
		}{&meta}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(object, &into); err != nil {
			return frame, fmt.Errorf("read bookmark: %w", err)
		}
	}
	if meta.ResourceVersion == "" {
		return frame, errors.New("read bookmark: it has no resourceVersion")
	}
	return Frame[T]{
		Type:             FrameBookmark,
		Item:             Item[T]{ResourceVersion: meta.ResourceVersion},
		InitialEventsEnd: meta.Annotations[metav1.InitialEventsAnnotationKey] == "true",
	}, nil
}

// restStream is a watch over HTTP.
type restStream[T Object] struct {
	ctx     context.Context
	body    io.ReadCloser
	frames  *frameReader
	decoder *decoder[T]
	server  *apiServer
}

// Next blocks for the next frame. io.EOF is a clean end.
func (s *restStream[T]) Next() (Frame[T], error) {
	raw, err := s.frames.next()
	switch {
	case err == nil:
		frame, err := s.decoder.frame(s.frames.protobuf, raw)
		if err != nil {
			err = &garbledFrame{err} // where the next one begins is known
		}
		return frame, err
	case s.ctx.Err() != nil:
		return Frame[T]{}, context.Cause(s.ctx)
	case errors.Is(err, io.EOF):
		return Frame[T]{}, io.EOF
	case errors.Is(err, http.ErrBodyReadAfterClose):
		return Frame[T]{}, errors.New("read watch: the stream is closed")
	}
	wrapped := fmt.Errorf("read watch of %s: %w", s.decoder.kind.Kind, err)
	if _, is := err.(*garbledFrame); is {
		wrapped = &garbledFrame{wrapped}
	}
	return Frame[T]{}, wrapped
}

// Close ends the stream and frees its connection.
func (s *restStream[T]) Close() error {
	s.server.distrust(s.ctx)
	return s.body.Close()
}
