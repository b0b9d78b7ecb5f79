// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/reconcile"
)

// division decides what divides the objects of each kind among the replicas, once: when the first
// informer of the kind starts.
type division struct {
	by          shards.By
	controllers func() []reconcile.Snapshot // that run
	mu          struct {
		sync.Mutex
		decided map[schema.GroupKind]shards.By
		logged  map[schema.GroupKind]bool
		// joining are the controllers that are being added, which controllers may not return yet.
		joining map[*reconcile.Snapshot]struct{}
		joined  int // how many have been
	}
}

func newDivision(by shards.By, controllers func() []reconcile.Snapshot) *division {
	d := &division{by: by, controllers: controllers}
	d.mu.decided, d.mu.logged = map[schema.GroupKind]shards.By{}, map[schema.GroupKind]bool{}
	d.mu.joining = map[*reconcile.Snapshot]struct{}{}
	return d
}

// of returns what decides the shard of a kind's objects; empty: each replica has all.
func (d *division) of(kind schema.GroupKind) string {
	for {
		d.mu.Lock()
		joined := d.mu.joined
		d.mu.Unlock()
		if by, ok := d.decide(kind, d.controllers(), joined); ok {
			return string(by)
		}
	}
}

// decide returns what decides the shard of a kind's objects. Not ok: controllers may lack one that
// has been added since joined was read.
func (d *division) decide(
	kind schema.GroupKind, controllers []reconcile.Snapshot, joined int,
) (by shards.By, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if by, decided := d.mu.decided[kind]; decided {
		return by, true
	}
	if d.mu.joined != joined {
		return "", false
	}
	for c := range d.mu.joining {
		controllers = append(controllers, *c)
	}
	d.mu.decided[kind] = dividedBy(kind, d.by, controllers)
	return d.mu.decided[kind], true
}

// join returns an error if a controller that is to be added would have to have objects that are on
// other replicas, because their kinds were divided without it. From now on kinds are divided with
// it. joined must be called when it runs, or will not.
func (d *division) join(c reconcile.Snapshot) (joined func(), err error) {
	with := append(d.controllers(), c)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range c.Sources {
		if by := d.mu.decided[s.Kind]; by != "" && dividedBy(s.Kind, d.by, with) != by {
			return nil, fmt.Errorf("its source %s needs all objects of kind %s, or a part that is divided in another way, and since Run began each "+
				"replica has a part of them, divided by %s; add it before Run", s.Source, s.Kind.Kind, by)
		}
	}
	d.mu.joining[&c] = struct{}{}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.mu.joining, &c)
		d.mu.joined++
	}, nil
}

// log says once of each kind that its objects are divided: a Lister shows those of this replica,
// also to code that is not of a controller.
func (d *division) log(log logr.Logger, informers []state.Informer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, i := range informers {
		kind := i.Kind.GroupKind()
		if i.Division.Count == 0 || d.mu.logged[kind] {
			continue
		}
		d.mu.logged[kind] = true
		log.Info("Objects of this kind are divided among the replicas; Listers of it show this replica's part",
			"kind", kind.String(), "by", i.Division.By)
	}
}

// dividedBy returns what decides the shard of a kind's objects; empty: each replica has all. By UID
// an object must be where the one controller that uses it looks for it.
func dividedBy(kind schema.GroupKind, by shards.By, controllers []reconcile.Snapshot) shards.By {
	uses := map[shards.By]bool{}
	for _, c := range controllers {
		for _, s := range c.Sources {
			switch {
			case s.Kind != kind:
			case c.Singleton || c.OwnShards: // its keys are where others than the objects are
				return ""
			case s.Self:
				uses[shards.UID] = true
			case s.Controllers:
				uses[shards.Owner] = true
			default:
				uses[""] = true
			}
		}
	}
	switch {
	case by == shards.Namespace:
		return by
	case len(uses) != 1:
		return ""
	case uses[shards.UID]:
		return shards.UID
	case uses[shards.Owner]:
		return shards.Owner
	}
	return ""
}
