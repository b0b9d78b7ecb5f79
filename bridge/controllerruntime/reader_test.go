// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"sync/atomic"
	"testing"
)

func TestInParallel_CallsEachOnceAndPassesPanicsOn(t *testing.T) {
	for _, n := range []int{0, 1, 1023, 2048, 10_001} {
		calls := make([]atomic.Int32, n)
		inParallel(n, func(i int) { calls[i].Add(1) })
		for i := range calls {
			if got := calls[i].Load(); got != 1 {
				t.Fatalf("of %d, %d was called %d times", n, i, got)
			}
		}
		if n == 0 {
			continue
		}
		func() {
			defer func() {
				if got := recover(); got != "the last" {
					t.Errorf("of %d: recovered %v, want the panic of the last call", n, got)
				}
			}()
			inParallel(n, func(i int) {
				if i == n-1 {
					panic("the last")
				}
			})
		}()
	}
}
