// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/histogram"
	"github.com/flyball-dev/flyball/internal/textlog"
)

const (
	// transferTime bounds reading a body, and writing one.
	transferTime = 10 * time.Second
	// longestAnswer bounds a function if the request has no timeout. Admission requests
	// have one, of at most 30 seconds; conversion requests have none.
	longestAnswer = 30 * time.Second
)

// served is one path with its hook and its counters.
type served struct {
	path    string
	purpose Purpose
	kind    schema.GroupVersionKind
	answer  hook

	inFlight atomic.Int64
	ended    [outcomes]atomic.Int64
	panics   atomic.Int64
	took     histogram.Recorder

	mu struct {
		sync.Mutex
		codes map[int]int64
	}
}

// sends counts an answer by HTTP status.
func (h *served) sends(code int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.codes[code]++
}

func (h *served) codes() map[int]int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.mu.codes)
}

// ServeHTTP answers one review. Tests can call it without a network; Run serves it over
// TLS.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// net/http reads the rest of the body after any answer: bound that.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(transferTime))
	h := s.find(r.URL.Path)
	if h == nil {
		send(w, http.StatusNotFound, (&httpError{
			code: http.StatusNotFound, reason: metav1.StatusReasonNotFound,
			cause: fmt.Errorf("there is no webhook at %q; correct the path in the webhook configuration", r.URL.Path),
		}).body())
		return
	}
	h.inFlight.Add(1)
	defer h.inFlight.Add(-1)
	begun := time.Now()
	ctx, cancel := context.WithTimeout(r.Context(), patienceOf(r))
	defer cancel()
	answer, end, err := s.respond(ctx, w, r, h)
	h.took.Observe(time.Since(begun))
	h.ended[end].Add(1)
	s.report(h, err)

	var fault *httpError
	if answer == nil && !errors.As(err, &fault) {
		fault = internal(err)
	}
	if answer == nil {
		h.sends(fault.code)
		if fault.code == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1")
		}
		send(w, fault.code, fault.body())
		return
	}
	h.sends(http.StatusOK)
	send(w, http.StatusOK, answer)
}

// respond reads the body within its limits and answers it.
func (s *Server) respond(ctx context.Context, w http.ResponseWriter, r *http.Request, h *served) ([]byte, outcome, error) {
	if err := s.callers().check(h.purpose, r.TLS); err != nil {
		return nil, failed, err
	}
	if err := acceptable(r); err != nil {
		return nil, failed, err
	}
	if r.ContentLength > s.opts.MaxBody {
		return nil, failed, tooLarge(s.opts.MaxBody)
	}
	room := &share{budget: s.budget, limit: s.opts.MaxBody}
	defer room.end()
	body, err := s.read(ctx, w, r, room)
	if err != nil {
		return nil, failed, err
	}
	return h.answer(ctx, body, s.room)
}

// acceptable returns an error if the request cannot be from an API server.
func acceptable(r *http.Request) error {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case r.Method != http.MethodPost:
		return &httpError{http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, fmt.Errorf("method %s: a review is a POST", r.Method), nil}
	case err != nil || media != "application/json":
		return &httpError{
			http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
			fmt.Errorf("content type %q: a review is application/json", r.Header.Get("Content-Type")), nil,
		}
	case r.Header.Get("Content-Encoding") != "":
		return &httpError{
			http.StatusUnsupportedMediaType, metav1.StatusReasonUnsupportedMediaType,
			fmt.Errorf("content encoding %q: a review is not encoded", r.Header.Get("Content-Encoding")), nil,
		}
	}
	return nil
}

func tooLarge(limit int64) error {
	return &httpError{
		http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge,
		fmt.Errorf("the review is larger than %d bytes; webhook.Options.MaxBody says how much is read", limit), nil,
	}
}

// read reads the body within the byte budget. Slow clients time out.
func (s *Server) read(ctx context.Context, w http.ResponseWriter, r *http.Request, room *share) ([]byte, error) {
	control := http.NewResponseController(w)
	// A writer without deadlines, such as a test recorder, has no slow client either.
	_ = control.SetReadDeadline(time.Now().Add(transferTime))
	in := http.MaxBytesReader(w, r.Body, s.opts.MaxBody)
	body := make([]byte, firstBytes)
	n, err := io.ReadAtLeast(in, body, 1)
	if err == nil {
		if err := room.claim(ctx, r.ContentLength); err != nil {
			return nil, err
		}
		_ = control.SetReadDeadline(time.Now().Add(transferTime)) // the client may have waited
		ctx, cancel := context.WithTimeout(ctx, transferTime)
		defer cancel()
		body, err = room.readAll(ctx, body[:n], in, r.ContentLength)
	} else if errors.Is(err, io.EOF) {
		body, err = nil, nil // an empty body is not a review
	}
	var fault *httpError
	large := (*http.MaxBytesError)(nil)
	switch {
	case errors.As(err, &fault):
		return nil, fault
	case errors.As(err, &large):
		return nil, tooLarge(s.opts.MaxBody)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &httpError{http.StatusRequestTimeout, metav1.StatusReasonTimeout, fmt.Errorf("the body did not arrive within %v", transferTime), nil}
	case err != nil:
		return nil, badRequest("read the body: %w", err)
	}
	// The connection stays open, and the function may take its time.
	_ = control.SetReadDeadline(time.Time{})
	return body, nil
}

// patienceOf returns how long the server waits for the answer: admission requests say.
func patienceOf(r *http.Request) time.Duration {
	said, err := time.ParseDuration(r.URL.Query().Get("timeout"))
	if err != nil || said <= 0 {
		return longestAnswer
	}
	return min(said, longestAnswer)
}

// report logs a request that failed.
func (s *Server) report(h *served, err error) {
	if err == nil {
		return
	}
	log := s.logger().WithValues("webhook", h.path)
	var fault *httpError
	switch {
	case errors.As(err, &fault) && fault.stack != nil:
		h.panics.Add(1)
		log.Error(err, "Webhook panicked", "stack", string(fault.stack))
	case fault != nil && fault.code < http.StatusInternalServerError:
		log.V(1).Info("Refused a review", "reason", err.Error())
	default:
		textlog.Warn(log, err, "Cannot answer a review")
	}
}

func send(w http.ResponseWriter, code int, body []byte) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(transferTime))
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_, _ = w.Write(body) // a client that has gone needs no answer
}
