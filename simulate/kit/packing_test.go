// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"testing"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/compact"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simulate/kit"
)

// Half of the seeds have compact informers. All have the same history when every run has
// them: under faults, a compact informer shows what another shows.
func TestKit_CompactInformersHaveTheSameHistory_D5(t *testing.T) {
	all := kit.Config{Manager: manager.Options{Informers: informer.Options{Compact: compact.New(compact.Options{HotObjects: 2, DictionaryBytes: 1000})}}}
	for seed := uint64(1); seed < 9; seed++ {
		h := kit.Run(t, kit.Config{}, seed, changes)
		sound(t, h)
		if how, _ := h.Differs(kit.Run(t, all, seed, changes)); how != "" {
			t.Errorf("seed %#x has another history with compact informers: %s", seed, how)
		}
	}
}
