// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"golang.org/x/sync/semaphore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/internal/decodelimit"
)

// largePart: a review is large if it takes more than 1/largePart of the limit.
const largePart = 8

// decoding limits the memory that decoded reviews use. A review is weighed before it is
// decoded. Large reviews are decoded one at a time, and do not use the budget of the
// others.
type decoding struct {
	limit int64               // of one review, in bytes
	small *semaphore.Weighted // limit bytes, shared by the reviews that are not large
	large *semaphore.Weighted // one at a time
}

func newDecoding(limit int64) *decoding {
	return &decoding{limit: limit, small: semaphore.NewWeighted(limit), large: semaphore.NewWeighted(1)}
}

// enter waits until the budget has room for bytes; it returns an error if bytes exceeds
// the limit.
func (d *decoding) enter(ctx context.Context, bytes int64) (leave func(), err error) {
	if bytes > d.limit {
		return nil, d.tooHeavy(bytes)
	}
	room, size := d.small, bytes
	if bytes > d.limit/largePart {
		room, size = d.large, 1
	}
	if err := room.Acquire(ctx, size); err != nil {
		return nil, &httpError{
			code: http.StatusTooManyRequests, reason: metav1.StatusReasonTooManyRequests,
			cause: fmt.Errorf("the webhook server decodes other reviews; this one takes about %d bytes", bytes),
		}
	}
	return func() { room.Release(size) }, nil
}

func (d *decoding) tooHeavy(bytes int64) error {
	return &httpError{
		code: http.StatusRequestEntityTooLarge, reason: metav1.StatusReasonRequestEntityTooLarge,
		cause: fmt.Errorf("decoding the review takes about %d bytes or more, and %d are allowed; webhook.Options.MaxDecoded says how much", bytes, d.limit),
	}
}

// weigh estimates the memory for answering a body: decoded by plan, then processed at
// the given cost.
func (d *decoding) weigh(body []byte, plan *decodelimit.JSONPlan, cost func(decodelimit.Weight) int64) (int64, error) {
	w, err := plan.Weigh(body, d.limit, cost)
	switch {
	case errors.Is(err, decodelimit.ErrTooHeavy):
		return 0, d.tooHeavy(cost(w))
	case err != nil:
		return 0, badRequest("decode the review: %w", err)
	}
	return cost(w), nil
}

// The costs estimate what answering a review allocates, by the weight of its object. A
// validation decodes it; a mutation also encodes and decodes it before and after the
// function and compares both with the original; a conversion creates the hub and the
// result.
func toValidate(w decodelimit.Weight) int64 { return w.Decoded }

func toMutate(w decodelimit.Weight) int64 {
	return w.Decoded + 3*w.Tree + 2*w.Filled + 6*w.Encoded
}

func toConvert(w decodelimit.Weight) int64 {
	return 3*w.Decoded + 3*w.Tree + 2*w.Filled + 12*w.Encoded
}
