// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package decodelimit

import "google.golang.org/protobuf/encoding/protowire"

// Protobuf returns an error that names the first costly value in a message. It does
// not validate the message.
func (p *CostlyPlan) Protobuf(message []byte) error { return p.message(message, 0) }

func (p *CostlyPlan) message(message []byte, depth int) error {
	for p != nil && p.elem != nil && !p.mapped && !p.listed {
		p = p.elem // of a pointer, or of a list whose elements are fields
	}
	if p == nil || depth > deepest {
		return nil
	}
	for len(message) > 0 {
		number, wire, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil
		}
		body := message[n:]
		if n = protowire.ConsumeFieldValue(number, wire, body); n < 0 {
			return nil
		}
		message = body[n:]
		if wire != protowire.BytesType {
			continue
		}
		value, _ := protowire.ConsumeBytes(body)
		if err := p.field(int(number), value, depth); err != nil {
			return err
		}
	}
	return nil
}

func (p *CostlyPlan) field(number int, value []byte, depth int) error {
	switch {
	case p.numbers != nil:
		return p.numbers[number].message(value, depth+1)
	case p.mapped && number == 2, p.listed && number == 1:
		return p.elem.message(value, depth+1)
	case p.number.text > 0 && number == 1: // its text
		return p.number.check(value)
	}
	return nil
}
