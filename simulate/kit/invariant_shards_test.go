// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"strings"
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
		{What: Asked, Who: "p", Request: 1, Run: "configmap n/k", Shard: new(int)},
		{What: Changed, Who: "p", Kind: "ConfigMap", Name: "updated", Key: "n/k", UID: "u", Request: 1},
	}
	for _, c := range []struct {
		name   string
		leases []Event
		wrong  int
	}{
		{"it claims the shard", []Event{lease("p", "updated", "p_1")}, 0},
		{"somebody writes an annotation", []Event{lease("p", "updated", "p_1"), lease("", "updated", "p_1")}, 0},
		{"it is unreadable for a while", []Event{lease("p", "updated", "p_1"), lease("", "updated", ""), lease("", "updated", "p_1")}, 0},
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

// A reconcile works on the shard that its controller says: that of the object, the one of Options.ShardBy, or
// shard 0 of a Singleton.
func TestHolders_ControllerSaysTheShard_V30(t *testing.T) {
	s := &sharing{Lease: "n/l", By: shards.UID, Count: 2, Controllers: map[string]divided{
		"pages": {Kind: "ConfigMap"}, "own": {Kind: "ConfigMap", OwnShards: true}, "one": {Singleton: true},
	}}
	uid := "a"
	for shards.Of(uid, 2) != 1 {
		uid += "a"
	}
	for _, c := range []struct {
		run   string
		shard *int
		want  string // of the finding
	}{
		{"pages n/k", new(1), ""},
		{"pages n/k", new(0), "writes Secret n/s in a reconcile of pages n/k, which works on shard 0, and the key's is [1]"},
		{"own n/k", new(1), ""},
		{"own n/k", new(0), `in a reconcile of own n/k, whose shard 0 "q" holds`},
		{"one all", new(1), "in a reconcile of one all, which works on shard 1, and the key's is [0]"},
		{"one all", new(0), `in a reconcile of one all, whose shard 0 "q" holds`},
		{"pages n/k", nil, "in a reconcile of pages n/k, which works on no shard"},
	} {
		found := s.holderWrites([]Event{
			{What: Changed, Who: "q", Kind: leases, Name: "updated", Key: "n/l-shard-0", Holder: "q_1"},
			{What: Changed, Who: "p", Kind: leases, Name: "updated", Key: "n/l-shard-1", Holder: "p_1"},
			{What: Changed, Who: "user", Kind: "ConfigMap", Name: "created", Key: "n/k", UID: uid},
			{What: Asked, Who: "p", Request: 1, Run: c.run, Shard: c.shard},
			{What: Changed, Who: "p", Kind: "Secret", Name: "updated", Key: "n/s", UID: "s", Request: 1},
		})
		if c.want == "" && len(found) == 0 || len(found) == 1 && c.want != "" && strings.Contains(found[0].Text, c.want) {
			continue
		}
		t.Errorf("%s on shard %v: found %v, want %q", c.run, c.shard, found, c.want)
	}
}
