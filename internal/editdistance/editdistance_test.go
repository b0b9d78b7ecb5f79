// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package editdistance_test

import (
	"testing"

	"github.com/flyball-dev/flyball/internal/editdistance"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "abc", 0}, {"abc", "", 3}, {"minimun", "minimum", 1}, {"ab", "ba", 2}, {"kitten", "sitting", 3}} {
		if got := editdistance.Of(c.a, c.b); got != c.want {
			t.Errorf("from %q to %q are %d steps, want %d", c.a, c.b, got, c.want)
		}
	}
}
