// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package decodelimit

import "bytes"

// rates bound the weight of a text by its bytes alone.
type rates struct {
	value   int64 // per value
	opening int64 // per object or list, in addition
	byte    int64 // per byte
	nests   bool  // decoding reads nested texts again
}

// Bound returns an upper bound of what decoding the text takes, by counting its
// commas and brackets. It takes a small fraction of the time of Weigh and is
// far too high for most texts. For a plan made by With it is Unlimited.
func (p *JSONPlan) Bound(text []byte) int64 {
	if p.partly {
		return Unlimited
	}
	openings := int64(bytes.Count(text, []byte("{")) + bytes.Count(text, []byte("[")))
	values := openings + int64(bytes.Count(text, []byte(","))) + 1
	bound := ofJSONDecoder + values*p.rates.value + openings*p.rates.opening + p.rates.byte*int64(len(text))
	if p.rates.nests {
		bound += min(openings, maxDepth) * int64(len(text))
	}
	return bound
}

// rate computes the rates of p from all plans it leads to.
func (p *JSONPlan) rate() {
	seen := map[*JSONPlan]bool{}
	var element, place, once int64 = 16, 48, 0
	p.rates.byte = 40 // of a key, more than of a value
	var visit func(q *JSONPlan)
	visit = func(q *JSONPlan) {
		if q == nil || seen[q] {
			return
		}
		seen[q] = true
		p.rates.nests = p.rates.nests || q.nests
		once = max(once, q.pointers())
		switch q.shape {
		case shapeOpaque:
			p.rates.byte, element = 100, max(element, q.elem.size)
		case shapeList, shapeBytes:
			element = max(element, q.elem.size)
		case shapeMap:
			place, once = max(place, 16+min(q.elem.size, 128)), max(once, q.elem.size+q.elem.pointers())
		}
		visit(q.elem)
		for _, field := range q.fields {
			visit(field)
		}
	}
	visit(p)
	// A list that grows by a quarter is copied often, and a map starts with
	// eight slots.
	p.rates.value = 9*element + 10*place + once + 256
	p.rates.opening = element + once + 1024
}

// pointers returns the allocation per value for the pointers that lead to it.
func (p *JSONPlan) pointers() int64 {
	sum := p.behind
	for q, hops := p, 0; q.shape == shapePointer && hops < 16; hops++ {
		q = q.elem
		sum += q.behind
	}
	return sum
}
