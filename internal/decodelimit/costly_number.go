// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package decodelimit

import (
	"bytes"
	"fmt"
	"math/big"
	"reflect"

	"k8s.io/apimachinery/pkg/api/resource"
)

// bounds of a number: the length of its text, and its digits before and after the
// point, written out without an exponent. Zero: no bounds.
type bounds struct{ text, digits int }

var (
	// A quantity that fits into 64 bits has at most 19 digits and a suffix of 18.
	ofQuantity = bounds{text: 128, digits: 128}
	// Parsing takes a time that is quadratic in the digits: 10,000 take 0.3 ms.
	ofBig = bounds{text: 10_000, digits: 10_000}
)

// numbers are the types that parse a number of any size.
var numbers = map[reflect.Type]bounds{
	reflect.TypeFor[resource.Quantity](): ofQuantity,
	reflect.TypeFor[big.Int]():           ofBig,
	reflect.TypeFor[big.Float]():         ofBig,
	reflect.TypeFor[big.Rat]():           ofBig,
}

// numberOf returns the bounds of a type that parses a number of any size.
func numberOf(t reflect.Type) (b bounds, is bool) {
	if t.PkgPath() == "gopkg.in/inf.v0" && t.Name() == "Dec" {
		return ofBig, true
	}
	b, is = numbers[t]
	return b, is
}

// shown is how much of a refused text an error shows.
const shown = 40

// check returns an error if text, a string with or without quotes or a number, is a
// number beyond the bounds. What is not a number is left to the type.
func (b bounds) check(text []byte) error {
	if n := len(text); n >= 2 && text[0] == '"' && text[n-1] == '"' {
		if text = text[1 : n-1]; bytes.IndexByte(text, '\\') >= 0 {
			text = []byte(unquote([]byte(`"` + string(text) + `"`)))
		}
	}
	if len(text) > b.text {
		return fmt.Errorf("the number %q… has %d bytes, and at most %d are decoded", text[:shown], len(text), b.text)
	}
	if digits(text) > b.digits {
		return fmt.Errorf("the number %q has more than %d digits when written out, and is not decoded", text[:min(len(text), shown)], b.digits)
	}
	return nil
}

// endless is more digits than any bound allows.
const endless = 1 << 30

// digits returns how many digits the number has on the larger side of its point if it
// is written without its exponent. A number without an exponent has at most as many as
// its text, and counts as none.
func digits(text []byte) int {
	text = bytes.TrimSpace(text)
	marks := "eE"
	if bytes.ContainsAny(text, "xX") {
		marks = "pP" // of a hexadecimal number, in which e is a digit
	} else if bytes.ContainsAny(text, "pP") {
		marks = "eEpP"
	}
	at := bytes.LastIndexAny(text, marks)
	if at <= 0 {
		return 0
	}
	mantissa, power := text[:at], text[at+1:]
	negative := len(power) > 0 && power[0] == '-'
	if negative || len(power) > 0 && power[0] == '+' {
		power = power[1:]
	}
	exponent := 0
	for _, c := range power {
		if c == '_' {
			continue
		}
		if c < '0' || c > '9' {
			return 0 // a suffix, or no number
		}
		exponent = min(10*exponent+int(c-'0'), endless)
	}
	if len(power) == 0 {
		return 0 // the suffix E
	}
	mantissa = bytes.TrimLeft(mantissa, "+-")
	if marks[0] == 'e' && len(bytes.Trim(mantissa, "0123456789._")) > 0 {
		return 0 // no number
	}
	whole, fraction, _ := bytes.Cut(bytes.TrimLeft(mantissa, "0"), []byte("."))
	if negative {
		return exponent + len(fraction)
	}
	return exponent + len(whole)
}
