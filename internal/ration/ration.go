// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package ration bounds what decoding the API server's answers takes. Each object is
// judged before it is decoded, and most by a glance: the bytes that they have, or the
// commas and brackets, cannot become too much. Only what might is weighed.
package ration

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"sync"

	"github.com/flyball-dev/flyball/internal/jsonweight"
	"github.com/flyball-dev/flyball/internal/protoweight"
)

const (
	// Object is what decoding one object may allocate, in bytes. An API server stores
	// none of more than a few MiB.
	Object = 256 << 20
	// Page is what decoding the objects of one page of a list may allocate.
	Page = 512 << 20
	// ofWhole is how many times its bytes a list may take that the server does not
	// split into pages.
	ofWhole = 16
	// glanced protobuf messages are not weighed for the sake of their page: weighing
	// takes a good part of the time of decoding.
	glanced = 64 << 10
)

// Whole is what decoding a list of so many bytes may allocate that is not split into
// pages.
func Whole(bytes int64) int64 { return max(Page, ofWhole*bytes) }

// TooHeavyError: decoding would allocate too much.
type TooHeavyError struct {
	Bytes int64 // at least
	Limit int64
}

func (e *TooHeavyError) Error() string {
	return fmt.Sprintf("decoding takes about %d bytes of memory or more, and %d are allowed", e.Bytes, e.Limit)
}

// Scale weighs what is decoded into one Go type. Make it with Of; it is safe for
// concurrent use.
type Scale struct {
	json  func() *jsonweight.Plan
	proto func() *protoweight.Plan
}

// Of is the scale of a type. It costs nothing until something is weighed.
func Of(t reflect.Type) *Scale {
	return &Scale{
		json:  sync.OnceValue(func() *jsonweight.Plan { return jsonweight.ToDecode(t) }),
		proto: sync.OnceValue(func() *protoweight.Plan { return protoweight.Of(t) }),
	}
}

// Tree is the scale of what is decoded into maps and slices.
func Tree() *Scale { return &Scale{json: sync.OnceValue(jsonweight.Any)} }

// Budget is what the objects of one answer may take together. One goroutine uses it.
type Budget struct {
	Limit  int64
	bound  int64 // of what was let pass by a glance
	weight int64 // of what was weighed
}

// Alone is a budget for one object.
func Alone() *Budget { return &Budget{Limit: math.MaxInt64} }

// JSON says whether text may be decoded. A text that is too heavy alone is a
// *TooHeavyError with the limit Object, one that is too much for b has the limit of b.
// A text that is no JSON passes: the decoder says what is wrong with it.
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
	return b.weighed(weight, errors.Is(err, protoweight.ErrTooHeavy), errors.Is(err, protoweight.ErrTooDeep), protoweight.ErrTooDeep)
}

// Charge counts what holds an object, besides what it is decoded into.
func (b *Budget) Charge(bytes int64) error { return b.weighed(bytes, false, false, nil) }

// glance lets pass what cannot be too heavy, up to half of the budget: bounds are far
// above weights.
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
