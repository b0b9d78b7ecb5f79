// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package decodelimit limits the memory and the time for decoding texts of others: the API
// server's answers, reviews of a webhook. Each object is checked before it is decoded.
//
//	Budget  ──▶ most objects pass at a glance: with so few bytes, or commas and brackets, they
//	            cannot become too large. Only the others are weighed:
//	JSONPlan, protoPlan: a type ──▶ what decoding a text of it allocates
//	CostlyPlan: a type ──▶ where its values take far more time to parse than their text
//
// # Memory
//
// A few bytes can become a large Go value: each {} in a list of containers is a struct of
// hundreds of bytes. The estimate counts all allocations, not only what remains, and is rather
// too high; tests compare it with actual allocations. It does not know what a type's own
// UnmarshalJSON allocates: within such a value each object and element counts as the largest
// type that the value's fields lead to.
//
// # Time
//
// The quantity 1e-100000000 has 12 bytes; to parse it, resource.Quantity divides by a number of
// 40 MB. Quantities, numbers of math/big and inf.Dec are bounded by their digits as written out,
// without an exponent. The canonical form of a quantity has as many. Types that decode
// themselves inside of each other, each of which reads the text again, are bounded by their
// depth. What a type's own decoding creates without a field for it is not known.
//
// Plans are immutable and safe for concurrent use.
package decodelimit

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"sync"
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
	json  func() *JSONPlan
	proto func() *protoPlan
}

// Of returns the scale of a type. It costs nothing until it is used.
func Of(t reflect.Type) *Scale {
	return &Scale{
		json:  sync.OnceValue(func() *JSONPlan { return JSONPlanToDecode(t) }),
		proto: sync.OnceValue(func() *protoPlan { return protoPlanOf(t) }),
	}
}

// Tree returns the scale of values that are decoded into maps and slices.
func Tree() *Scale { return &Scale{json: sync.OnceValue(AnyJSON)} }

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
	return b.weighed(w.Decoded, errors.Is(err, ErrTooHeavy), errors.Is(err, ErrTooDeep), ErrTooDeep)
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
