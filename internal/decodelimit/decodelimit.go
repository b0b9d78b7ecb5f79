// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package decodelimit limits the memory for decoding the API server's answers. Each
// object is checked before it is decoded. Most pass at a glance: with so few
// bytes, or commas and brackets, they cannot become too large. Only the others
// are weighed.
package decodelimit

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"sync"

	"github.com/flyball-dev/flyball/internal/jsonweight"
)

const (
	// Object is what decoding one object may allocate, in bytes. An API server
	// stores no object of more than a few MiB.
	Object = 256 << 20
	// Page is what decoding the objects of one page of a list may allocate.
	Page = 512 << 20
	// ofWhole is how many times its length a list without pages may allocate.
	ofWhole = 16
	// glanced is the size up to which protobuf messages are not weighed for the
	// limit of their page: weighing takes a good part of the time of decoding.
	glanced = 64 << 10
)

// Whole is what decoding a list without pages, of that many bytes, may
// allocate.
func Whole(bytes int64) int64 { return max(Page, ofWhole*bytes) }

// TooHeavyError means that decoding would allocate too much.
type TooHeavyError struct {
	Bytes int64 // at least
	Limit int64
}

func (e *TooHeavyError) Error() string {
	return fmt.Sprintf("decoding takes about %d bytes of memory or more, and %d are allowed", e.Bytes, e.Limit)
}

// Scale weighs encoded values of one Go type. Make it with Of. Safe for
// concurrent use.
type Scale struct {
	json  func() *jsonweight.Plan
	proto func() *protoPlan
}

// Of returns the scale of a type. It costs nothing until it is used.
func Of(t reflect.Type) *Scale {
	return &Scale{
		json:  sync.OnceValue(func() *jsonweight.Plan { return jsonweight.ToDecode(t) }),
		proto: sync.OnceValue(func() *protoPlan { return protoPlanOf(t) }),
	}
}

// Tree returns the scale of values that are decoded into maps and slices.
func Tree() *Scale { return &Scale{json: sync.OnceValue(jsonweight.Any)} }

// Budget limits the objects of one answer together. It is used by one
// goroutine.
type Budget struct {
	Limit  int64
	bound  int64 // of objects passed by bound
	weight int64 // of weighed objects
}

// Alone returns a budget for one object.
func Alone() *Budget { return &Budget{Limit: math.MaxInt64} }

// JSON returns nil if text may be decoded. If text is too heavy by itself, the
// error is a *TooHeavyError with the limit Object; if it is too much for b,
// with the limit of b. Invalid JSON passes: the decoder reports the error.
func (b *Budget) JSON(s *Scale, text []byte) error {
	plan := s.json()
	if bound := plan.Bound(text); b.glance(bound) {
		return nil
	}
	w, err := plan.Weigh(text, Object, nil)
	return b.weighed(w.Decoded, errors.Is(err, jsonweight.ErrTooHeavy), errors.Is(err, jsonweight.ErrTooDeep), jsonweight.ErrTooDeep)
}

// Protobuf is JSON for a protobuf message.
func (b *Budget) Protobuf(s *Scale, message []byte) error {
	if s.proto == nil {
		return nil
	}
	plan, size := s.proto(), int64(len(message))
	if bound := plan.Bound(size); bound <= Object && size <= glanced || b.glance(bound) {
		return nil
	}
	weight, err := plan.Weigh(message, Object)
	return b.weighed(weight, errors.Is(err, errMessageHeavy), errors.Is(err, errMessageDeep), errMessageDeep)
}

// Charge counts the overhead of an object besides its decoded value.
func (b *Budget) Charge(bytes int64) error { return b.weighed(bytes, false, false, nil) }

// glance passes what cannot be too heavy, up to half of the budget, since
// bounds are far above weights.
func (b *Budget) glance(bound int64) bool {
	if bound > Object || b.bound+bound > b.Limit/2 {
		return false
	}
	b.bound += bound
	return true
}

func (b *Budget) weighed(weight int64, heavy, deep bool, tooDeep error) error {
	switch {
	case deep:
		return tooDeep
	case heavy:
		return &TooHeavyError{Bytes: weight, Limit: Object}
	}
	if b.weight += weight; b.weight > b.Limit-b.bound {
		return &TooHeavyError{Bytes: b.bound + b.weight, Limit: b.Limit}
	}
	return nil
}
