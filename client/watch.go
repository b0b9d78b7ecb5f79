// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/flyball-dev/flyball/internal/bodylimit"
	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/kube"
)

// Since starts a watch after a resourceVersion, that of a list or of an earlier watch.
// Without it a watch starts with the existing objects, each as Added. Fits watch.
type Since string

func (Since) fits() verb                   { return verbWatch }
func (s Since) set(all *callOptions) error { all.since = string(s); return nil }

// Event is one change of an object.
type Event[T kube.Object] struct {
	// Type is watch.Added, watch.Modified or watch.Deleted.
	Type watch.EventType
	// Object is the object after the change; a deleted one as it was before. It belongs
	// to the caller.
	Object T
}

// WatchEndedError reports that the server closed a watch normally, as it does after
// about half an hour. Since(Version) resumes it.
type WatchEndedError struct{ Version string }

func (e *WatchEndedError) Error() string {
	return fmt.Sprintf("the server has ended the watch at version %q", e.Version)
}

// Watch yields the changes of the objects of T's kind that the options select. It is
// one request, without a cache and without restarts. Use it to wait a short time for
// something to happen. To follow the current state use an informer, which survives the
// end of a watch and whose reads cost nothing.
//
//	for event, err := range client.Watch[*batchv1.Job](ctx, c, client.InNamespace("prod")) {
//		if err != nil { return err }
//		if done(event.Object) { break }
//	}
//
// Watch blocks between events until the loop ends or ctx ends; Options.Timeout does not
// apply. Except when the loop itself ends, the watch ends with an error and the zero
// Event: the context's error, a *WatchEndedError, a broken connection, or one for which
// apierrors.IsResourceExpired holds, after which Since cannot resume: start again
// without it. A *kube.UndecodableError concerns one object, and the loop may
// continue. For *unstructured.Unstructured and *metav1.PartialObjectMetadata pass the
// kind with OfKind.
func Watch[T kube.Object](ctx context.Context, c *Client, opts ...Option) iter.Seq2[Event[T], error] {
	return func(yield func(Event[T], error) bool) {
		var none Event[T]
		like, at, err := newCallOnAll[T](ctx, c, verbWatch, opts)
		if err != nil {
			yield(none, err)
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := c.openWatch(ctx, at, like)
		if err != nil {
			yield(none, c.fault(ctx, at, err))
			return
		}
		defer stream.Close()
		frame := &frameBound{Reader: stream, what: at.String(), limit: bodylimit.LimitOf(ctx)}
		s := watchStream{bound: frame, frames: json.NewDecoder(frame), version: at.since}
		for {
			kind, item, err := s.next()
			if err != nil {
				if ctx.Err() != nil {
					err = context.Cause(ctx)
				}
				err = at.answered(err)
				yield(none, at.wrap(err))
				return
			}
			item.Discreet = at.discreet()
			event := Event[T]{Type: kind, Object: empty(like)}
			if err := item.Into(event.Object, at.kind); err != nil {
				if !yield(none, at.wrap(undecodable(at, item, err))) {
					return
				}
				continue
			}
			s.version = event.Object.GetResourceVersion()
			if !yield(event, nil) {
				return
			}
		}
	}
}

func (c *Client) openWatch(ctx context.Context, at *call, like kube.Object) (io.ReadCloser, error) {
	req, err := c.request(at, http.MethodGet)
	if err != nil {
		return nil, err
	}
	req = selectParams(req, at).Param("watch", "true").Param("allowWatchBookmarks", strconv.FormatBool(true))
	if at.since != "" {
		req = req.Param("resourceVersion", at.since)
	}
	accept := acceptJSON
	if metadataOnly(like) {
		accept = acceptMetadata
	}
	req = req.SetHeader("Accept", accept).MaxRetries(0)
	var stream io.ReadCloser
	err = c.send(ctx, at, 0, func(ctx context.Context) (err error) {
		stream, err = req.Stream(textlog.Quiet(ctx))
		return at.answered(err)
	})
	return stream, err
}

// frameBound limits each frame of a stream to the size limit of an answer.
type frameBound struct {
	io.Reader
	what  string
	limit int64
	read  int64 // of the current frame
}

func (f *frameBound) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if f.read += int64(n); f.read > f.limit {
		return 0, &TooLargeError{Limit: f.limit, Request: "a frame of " + f.what}
	}
	return n, err
}

// watchStream reads frames and tracks the last resourceVersion.
type watchStream struct {
	bound   *frameBound
	frames  *json.Decoder
	version string
}

// next returns the next event that concerns an object.
func (s *watchStream) next() (watch.EventType, response, error) {
	for {
		var frame struct {
			Type   watch.EventType `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		s.bound.read = 0
		if err := s.frames.Decode(&frame); errors.Is(err, io.EOF) {
			return "", response{}, &WatchEndedError{Version: s.version}
		} else if err != nil {
			return "", response{}, fmt.Errorf("read the stream: %w", err)
		}
		switch frame.Type {
		case watch.Added, watch.Modified, watch.Deleted:
			return frame.Type, response{Data: frame.Object}, nil
		case watch.Bookmark:
			var mark metav1.PartialObjectMetadata
			if err := (response{Data: frame.Object}).Decode(&mark); err != nil {
				return "", response{}, fmt.Errorf("read a bookmark: %w", err)
			}
			s.version = mark.ResourceVersion
		case watch.Error:
			var status metav1.Status
			if err := (response{Data: frame.Object}).Decode(&status); err != nil {
				return "", response{}, fmt.Errorf("read the server's error: %w", err)
			}
			return "", response{}, apierrors.FromObject(&status)
		default:
			return "", response{}, fmt.Errorf("the server sent an event of type %q", frame.Type)
		}
	}
}
