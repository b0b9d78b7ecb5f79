// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package memo

import "testing"

func TestMemo_HasTheLastValueAndABound(t *testing.T) {
	var m Memo[int, string]
	if m.Has(0, "") {
		t.Error("the empty Memo has a value")
	}
	m.Put(0, "a")
	m.Put(0, "b")
	if m.Has(0, "a") || !m.Has(0, "b") {
		t.Error("it does not have the last value alone")
	}
	for key := range most {
		m.Put(key+1, "c")
	}
	if n := len(m.mu.of); n > most || m.Has(0, "b") || !m.Has(most, "c") {
		t.Errorf("after %d more keys it has %d, want what came after the last that did not fit", most, n)
	}
}
