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

	"github.com/flyball-dev/flyball/internal/jsonweight"
)

// largePart of the limit is what makes a review a large one.
const largePart = 8

// decoding is the room for what reviews become in memory. A review is weighed before it
// is decoded; large ones go one at a time, so that they take nothing from the others.
type decoding struct {
	limit int64               // of one review, in bytes
	small *semaphore.Weighted // limit bytes that those that are not large share
	large *semaphore.Weighted // one
}

func newDecoding(limit int64) *decoding {
	return &decoding{limit: limit, small: semaphore.NewWeighted(limit), large: semaphore.NewWeighted(1)}
}

// enter waits until there is room for bytes, and refuses what there is never room for.
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

// weigh is what answering a body takes: decoded as plan says, and what cost makes of
// that.
func (d *decoding) weigh(body []byte, plan *jsonweight.Plan, cost func(jsonweight.Weight) int64) (int64, error) {
	w, err := plan.Weigh(body, d.limit, cost)
	switch {
	case errors.Is(err, jsonweight.ErrTooHeavy):
		return 0, d.tooHeavy(cost(w))
	case err != nil:
		return 0, badRequest("decode the review: %w", err)
	}
	return cost(w), nil
}

// What answering a review allocates, of what its object weighs: a validation decodes
// it; a mutation also encodes and decodes it before and after the function, and compares
// both with the original; a conversion makes the hub and the result of it.
func toValidate(w jsonweight.Weight) int64 { return w.Decoded }

func toMutate(w jsonweight.Weight) int64 {
	return w.Decoded + 3*w.Tree + 2*w.Filled + 6*w.Encoded
}

func toConvert(w jsonweight.Weight) int64 {
	return 3*w.Decoded + 3*w.Tree + 2*w.Filled + 12*w.Encoded
}
