// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/flyball-dev/flyball/internal/shards"
)

// shardHolder is who holds a shard: the process that wrote its identity into the Lease.
type shardHolder struct{ identity, who string }

// after returns the holder after a change of the Lease. Others may write the Lease and leave its holder.
func (h shardHolder) after(e Event) shardHolder {
	switch {
	case e.Holder == "" || e.Name == "deleted":
		return shardHolder{}
	case e.Holder == h.identity:
		return h
	}
	return shardHolder{e.Holder, e.Who}
}

// holders follows who holds each shard, and which reconciles run, through a history.
type holders struct {
	*sharing
	of   map[int]shardHolder
	uids map[object]string
	runs map[int]Event   // by request
	busy map[line]string // the process that reconciles a key
}

// holderWrites (V30): of replicas that share objects, only the one that holds a shard, by its Lease at that
// revision, writes in reconciles of the shard's keys, and no two reconcile a key at once.
func (s *sharing) holderWrites(events []Event) (out []Violation) {
	if s == nil {
		return nil
	}
	h := holders{s, map[int]shardHolder{}, map[object]string{}, map[int]Event{}, map[line]string{}}
	for i, e := range events {
		text := ""
		switch e.What {
		case Asked:
			h.runs[e.Request] = e
		case Begun:
			text = h.begin(e)
		case Ended:
			delete(h.busy, line{controller: e.Kind, key: e.Key})
		case Crashed, Exited:
			maps.DeleteFunc(h.busy, func(_ line, who string) bool { return who == e.Who })
		case Changed:
			text = h.change(e)
		}
		if text != "" {
			out = append(out, violated(i, "%s", text))
		}
	}
	return out
}

// begin records the begin of a reconcile, and says what is wrong with it.
func (h *holders) begin(e Event) (wrong string) {
	key := line{controller: e.Kind, key: e.Key}
	if other := h.busy[key]; other != "" {
		wrong = fmt.Sprintf("%s and %s reconcile %s %s at once", other, e.Who, e.Kind, e.Key)
	}
	h.busy[key] = e.Who
	return wrong
}

// change records a change of an object, and says what is wrong with it.
func (h *holders) change(e Event) (wrong string) {
	if shard, err := strconv.Atoi(strings.TrimPrefix(e.Key, h.Lease+"-shard-")); h.has(e) && err == nil {
		h.of[shard] = h.of[shard].after(e)
		return ""
	}
	if e.UID != "" {
		h.uids[object{strings.ToLower(strings.Split(e.Kind, ".")[0]), e.Key}] = e.UID
	}
	controller, key, inRun := strings.Cut(h.runs[e.Request].Run, " ")
	if !inRun || e.Kind == leases {
		return ""
	}
	value := h.uids[object{controller, key}]
	if h.By == shards.Namespace {
		value, _, _ = strings.Cut(key, "/")
	}
	shard := shards.Of(value, h.Count)
	if holder := h.of[shard].who; value != "" && holder != e.Who {
		return fmt.Sprintf("%s writes %s %s in a reconcile of %s, whose shard %d %q holds", e.Who, e.Kind, e.Key, key, shard, holder)
	}
	return ""
}
