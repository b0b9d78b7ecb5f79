// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"strconv"
	"strings"

	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/kube"
)

// sharing is how the replicas of a program share its objects.
type sharing struct {
	// Lease of the plan as namespace/name. Those of members and shards begin with it.
	Lease string    `json:"lease"`
	By    shards.By `json:"by"`
	Count int       `json:"count"`
}

// sharing returns how replicas share objects; nil: they do not.
func (cfg Config) sharing() *sharing {
	e, s := cfg.Manager.LeaderElection, cfg.Manager.Sharding
	if e == nil || e.Off || s == nil || s.Shards == 0 {
		return nil
	}
	by := shards.By(s.By)
	if by == "" {
		by = shards.UID
	}
	return &sharing{Lease: kube.Key{Namespace: e.Namespace, Name: e.ID}.String(), By: by, Count: s.Shards}
}

// has reports whether e concerns one of the Leases.
func (s *sharing) has(e Event) bool {
	return s != nil && e.Kind == leases && (e.Key == s.Lease || strings.HasPrefix(e.Key, s.Lease+"-"))
}

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

// holderWrites (V30): of replicas that share objects, only the one that holds a shard, by its Lease at that
// revision, writes in reconciles of the shard's keys, and no two reconcile a key at once.
func holderWrites(h *History) (out []Violation) {
	if h.Sharing == nil {
		return nil
	}
	s, holders, uids := h.Sharing, map[int]shardHolder{}, map[object]string{}
	runs, busy := map[int]Event{}, map[line]string{}
	for i, e := range h.Events {
		switch e.What {
		case Asked:
			runs[e.Request] = e
		case Begun:
			key := line{controller: e.Kind, key: e.Key}
			if other := busy[key]; other != "" {
				out = append(out, violated(i, "%s and %s reconcile %s %s at once", other, e.Who, e.Kind, e.Key))
			}
			busy[key] = e.Who
		case Ended:
			delete(busy, line{controller: e.Kind, key: e.Key})
		case Crashed, Exited:
			for key, who := range busy {
				if who == e.Who {
					delete(busy, key)
				}
			}
		case Changed:
			if shard, err := strconv.Atoi(strings.TrimPrefix(e.Key, s.Lease+"-")); s.has(e) && err == nil {
				holders[shard] = holders[shard].after(e)
				continue
			}
			if e.UID != "" {
				uids[object{strings.ToLower(strings.Split(e.Kind, ".")[0]), e.Key}] = e.UID
			}
			controller, key, inRun := strings.Cut(runs[e.Request].Run, " ")
			if !inRun || e.Kind == leases {
				continue
			}
			value := uids[object{controller, key}]
			if s.By == shards.Namespace {
				value, _, _ = strings.Cut(key, "/")
			}
			if shard := shards.Of(value, s.Count); value != "" && holders[shard].who != e.Who {
				out = append(out, violated(i, "%s writes %s %s in a reconcile of %s, whose shard %d %q holds", e.Who, e.Kind, e.Key, key, shard, holders[shard].who))
			}
		}
	}
	return out
}
