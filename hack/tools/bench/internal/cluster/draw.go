// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// words are the parts of names. They are sorted, and none begins with another, so that names
// made of words in order are in order, too.
var words = strings.Fields(`account address archive audit basket billing booking bridge cache
	catalog charge claims comment content crawler currency customer delivery device discount
	document email event export feature feed fraud gateway identity image import index
	inventory invoice journal ledger loyalty mailer media message metric notify order partner
	payment planner price profile quota rating refund report review route search session
	shipment stock survey tax tenant ticket tracker upload wallet`)

const (
	// safe are the characters of generated names, in order. They are those of
	// k8s.io/apimachinery/pkg/util/rand.
	safe = "2456789bcdfghjklmnpqrstvwxz"
	hex  = "0123456789abcdef"
)

// draw is a source of random values.
type draw struct{ *rand.Rand }

// drawOf returns the source of one object: what is drawn depends on nothing else.
func drawOf(seed uint64, of string, index int) draw {
	for _, c := range []byte(of) {
		seed = seed*1099511628211 ^ uint64(c)
	}
	return draw{rand.New(rand.NewPCG(seed, uint64(index)))}
}

func (d draw) chance(percent int) bool { return d.IntN(100) < percent }

// between returns a number from low to high.
func (d draw) between(low, high int) int { return low + d.IntN(high-low+1) }

func (d draw) text(alphabet string, n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = alphabet[d.IntN(len(alphabet))]
	}
	return string(text)
}

// digest returns a random SHA-256 in hexadecimal digits.
func (d draw) digest() string { return d.text(hex, 64) }

func (d draw) word() string { return pick(d, words) }

func (d draw) uid() types.UID {
	return types.UID(fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x",
		d.Uint32(), d.Uint32()&0xffff, d.Uint32()&0xfff, d.Uint32()&0x3fff|0x8000, d.Uint64()&0xffff_ffff_ffff))
}

func pick[T any](d draw, from []T) T { return from[d.IntN(len(from))] }

// slot returns a random number below space that lies in the k-th of n equal parts: numbers
// of ascending k ascend.
func (d draw) slot(k, n, space int) int {
	low, high := k*space/n, (k+1)*space/n
	return low + d.IntN(max(high-low, 1))
}

// suffix returns what the API server appends to a generated name; that of the k-th of n
// names is greater than those before it.
func (d draw) suffix(k, n int) string { return digits(d.slot(k, n, 27*27*27*27*27), 5) }

// name returns the k-th of n names of a word and a tail, in order.
func (d draw) name(k, n int) string {
	const tails = 27 * 27 * 27 * 27 * 27
	x := d.slot(k, n, len(words)*tails)
	return words[x/tails] + "-" + digits(x%tails, 5)
}

// digits writes x with n digits of safe.
func digits(x, n int) string {
	text := make([]byte, n)
	for i := range text {
		text[n-1-i] = safe[x%len(safe)]
		x /= len(safe)
	}
	return string(text)
}

func of[T any](v T) *T { return &v }
