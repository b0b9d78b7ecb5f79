// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/flyball-dev/flyball/internal/shards"
)

// shardHolder is who holds a shard: the process that wrote its identity into the Lease.
type shardHolder struct{ identity, who string }

// after returns the holder after a change of the Lease. Others may write the Lease and leave its holder.
// A fault that makes it unreadable does, and its end.
func (h shardHolder) after(e Event) shardHolder {
	switch {
	case e.Who == "" && e.Name == "updated":
		return h
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
	had  map[object][]int // the shards that an object's UIDs had
	runs map[int]Event    // by request
	busy map[line]string  // the process that reconciles a key
}

// holderWrites (V30): of replicas that share objects, only the one that holds a shard, by its Lease at that
// revision, writes in reconciles of the shard's keys, and no two reconcile a key at once.
func (s *sharing) holderWrites(events []Event) (out []Violation) {
	if s == nil {
		return nil
	}
	h := holders{s, map[int]shardHolder{}, map[object][]int{}, map[int]Event{}, map[line]string{}}
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
	if of := (object{e.Kind, e.Key}); e.UID != "" && h.By == shards.UID {
		if shard := shards.Of(e.UID, h.Count); !slices.Contains(h.had[of], shard) {
			h.had[of] = append(h.had[of], shard)
		}
	}
	by := h.runs[e.Request]
	controller, key, inRun := strings.Cut(by.Run, " ")
	if !inRun || e.Kind == leases {
		return ""
	}
	does := fmt.Sprintf("%s writes %s %s in a reconcile of %s %s", e.Who, e.Kind, e.Key, controller, key)
	if by.Shard == nil {
		return does + ", which works on no shard"
	}
	if may := h.shardsOf(controller, key); may != nil && !slices.Contains(may, *by.Shard) {
		return fmt.Sprintf("%s, which works on shard %d, and the key's is %v", does, *by.Shard, may)
	}
	if holder := h.of[*by.Shard].who; holder != e.Who {
		return fmt.Sprintf("%s, whose shard %d %q holds", does, *by.Shard, holder)
	}
	return ""
}

// shardsOf returns the shards that a key of a controller may have. Those of an object that was created
// again are that of each, since a reconcile of the former may not have ended. Nil: the controller says it.
func (h *holders) shardsOf(controller, key string) []int {
	c := h.Controllers[controller]
	switch {
	case c.Singleton:
		return []int{0}
	case c.OwnShards:
		return nil
	case h.By == shards.Namespace:
		namespace, _, namespaced := strings.Cut(key, "/")
		if !namespaced {
			namespace = ""
		}
		return []int{shards.Of(namespace, h.Count)}
	}
	return h.had[object{c.Kind, key}]
}
