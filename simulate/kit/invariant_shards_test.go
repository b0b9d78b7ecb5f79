// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"testing"

	"github.com/flyball-dev/flyball/internal/shards"
)

// Only who changes the holder of a shard's Lease changes who may write.
func TestShardHolder_StaysWhenOthersWriteTheLease_V30(t *testing.T) {
	lease := func(who, name, holder string) Event {
		return Event{What: Changed, Who: who, Kind: leases, Name: name, Key: "n/l-shard-0", Holder: holder}
	}
	write := []Event{
		{What: Changed, Who: "user", Kind: "ConfigMap", Name: "created", Key: "n/k", UID: "u"},
		{What: Asked, Who: "p", Request: 1, Run: "configmap n/k"},
		{What: Changed, Who: "p", Kind: "ConfigMap", Name: "updated", Key: "n/k", UID: "u", Request: 1},
	}
	for _, c := range []struct {
		name   string
		leases []Event
		wrong  int
	}{
		{"it claims the shard", []Event{lease("p", "updated", "p_1")}, 0},
		{"somebody writes an annotation", []Event{lease("p", "updated", "p_1"), lease("", "updated", "p_1")}, 0},
		{"another claims it", []Event{lease("p", "updated", "p_1"), lease("q", "updated", "q_1")}, 1},
		{"it is released", []Event{lease("p", "updated", "p_1"), lease("p", "updated", "")}, 1},
		{"the Lease is deleted", []Event{lease("p", "updated", "p_1"), lease("user", "deleted", "p_1")}, 1},
		{"a person writes another holder", []Event{lease("p", "updated", "p_1"), lease("user", "updated", "x")}, 1},
	} {
		h := &History{Sharing: &sharing{Lease: "n/l", By: shards.UID, Count: 1}, Events: append(c.leases, write...)}
		if found := h.Sharing.holderWrites(h.Events); len(found) != c.wrong {
			t.Errorf("%s: found %v, want %d violations", c.name, found, c.wrong)
		}
	}
}
