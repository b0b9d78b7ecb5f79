// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
)

// The memory of writes is bounded by bytes too, not only by their number.
func TestOwnerships_AreBoundedByBytes(t *testing.T) {
	o := &Memory{}
	large := strings.Repeat("f", 100<<10)
	for n := range 500 {
		o.Remember(sha256.Sum256(fmt.Append(nil, n)), &ownership{entries: []owner{{fields: map[string]any{"fieldsV1": map[string]any{large: map[string]any{}}}}}})
		if held := len(o.mu.of) * len(large); held > rememberedAtMost || o.mu.bytes > rememberedAtMost {
			t.Fatalf("after %d writes %d bytes are held, counted as %d, want at most %d", n, held, o.mu.bytes, rememberedAtMost)
		}
	}
	of := Shape(sha256.Sum256(nil))
	o.Remember(of, &ownership{})
	before := o.mu.bytes
	for range 3 {
		o.Remember(of, &ownership{})
	}
	if o.mu.bytes != before {
		t.Errorf("what takes the place of another counts %d bytes, want none", o.mu.bytes-before)
	}
	if known := (&ownership{Recipe: &Recipe{Set: []any{large}}}).size(); known < len(large) {
		t.Errorf("what an apply is made of counts %d bytes, want %d and more", known, len(large))
	}
}
