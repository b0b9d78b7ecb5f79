// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"errors"
	"fmt"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
)

// How large an object may be for etcd, and for the connection to it, in bytes.
const (
	largestObject = 3 << 19
	largestCall   = 2 << 20
)

// perValue is about what a number, a name and its punctuation take.
const perValue = 4

// storable refuses an object that etcd would not take.
func storable(o *object.Object) error {
	switch size := bytesOf(o.Fields); {
	case size > largestCall:
		return refusal.Plain(fmt.Errorf("rpc error: code = ResourceExhausted desc = trying to send message larger than max (%d vs. %d)", size, largestCall))
	case size > largestObject:
		return refusal.Plain(errors.New("etcdserver: request is too large"))
	}
	return nil
}

// bytesOf is about how many bytes a value takes in storage: of its texts, which
// are nearly all of what is large, exactly as many as they have.
func bytesOf(value any) (n int) {
	switch v := value.(type) {
	case string:
		return len(v) + perValue
	case map[string]any:
		for name, inner := range v {
			n += len(name) + perValue + bytesOf(inner)
		}
	case []any:
		for _, inner := range v {
			n += bytesOf(inner)
		}
	}
	return n + perValue
}
