// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// firstBytes of a body are read before budget is claimed, so that idle clients take
	// nothing from others.
	firstBytes = 4 << 10
	// leastShare is the least that a request claims of the byte budget.
	leastShare = 64 << 10
	// claimTime is how long a body that has begun to arrive keeps the budget for its
	// announced size. A server sends at once; for slow clients only what has arrived
	// counts.
	claimTime = 250 * time.Millisecond
)

// share is the part of the byte budget that one request holds.
//
//	first bytes ─▶ claim: room for all that was announced ─▶ read, settle ─▶ end
//	                          └─ claimTime ─▶ room for what has come; more of it
//	                                         as it comes
type share struct {
	budget *semaphore.Weighted
	limit  int64       // of one request
	timer  *time.Timer // ends the claim; nil: there was none
	mu     struct {
		sync.Mutex
		has, needs int64
	}
}

// readAll reads the rest of a body, after its first bytes, of the announced size;
// negative: unknown. The budget covers the buffered bytes at any time.
func (s *share) readAll(ctx context.Context, first []byte, rest io.Reader, announced int64) ([]byte, error) {
	body, err := first, error(nil)
	for n := 0; err == nil; body = body[:len(body)+n] {
		if len(body) == cap(body) {
			has := int64(len(body))
			size := 2 * has
			if announced >= has {
				size = min(size, announced)
			}
			if err := s.cover(ctx, size); err != nil {
				return nil, err
			}
			// One more byte, to see the end of the body.
			body = append(make([]byte, 0, min(size, s.limit)+1), body...)
		}
		n, err = rest.Read(body[len(body):cap(body)])
	}
	if err != io.EOF {
		return nil, err
	}
	s.need(s.within(int64(len(body))))
	s.releaseSpare()
	return body, nil
}

// claim waits until there is room for the announced size. Room for bytes that do not
// arrive soon is returned.
func (s *share) claim(ctx context.Context, announced int64) error {
	if announced < 0 {
		announced = s.limit
	}
	if err := s.take(ctx, s.within(announced)); err != nil {
		return err
	}
	s.need(s.within(0))
	s.timer = time.AfterFunc(claimTime, s.releaseSpare)
	return nil
}

// cover waits until there is room for size bytes.
func (s *share) cover(ctx context.Context, size int64) error {
	if missing := s.need(s.within(size)); missing > 0 {
		return s.take(ctx, missing)
	}
	return nil
}

// within clamps size to the bounds of a share.
func (s *share) within(size int64) int64 { return min(max(size, leastShare), s.limit) }

// need records that size bytes are needed, and returns how many of them s lacks.
func (s *share) need(size int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.needs = size
	return size - s.mu.has
}

func (s *share) take(ctx context.Context, size int64) error {
	if err := s.budget.Acquire(ctx, size); err != nil {
		return &httpError{
			code: http.StatusTooManyRequests, reason: metav1.StatusReasonTooManyRequests,
			cause: errors.New("the webhook server is reading as many requests as it may"),
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.has += size
	return nil
}

// releaseSpare returns the budget that is not needed.
func (s *share) releaseSpare() {
	s.mu.Lock()
	spare := max(s.mu.has-s.mu.needs, 0)
	s.mu.has -= spare
	s.mu.Unlock()
	s.budget.Release(spare)
}

func (s *share) end() {
	if s.timer != nil {
		s.timer.Stop()
	}
	s.need(0)
	s.releaseSpare()
}
