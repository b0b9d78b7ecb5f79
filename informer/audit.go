// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/internal/linger"
	"github.com/flyball-dev/flyball/internal/simhook"
)

const (
	// auditPatience is how long an audit waits for the watch to reach the
	// version of its list. Bookmarks come once a minute.
	auditPatience = 150 * time.Second
	// auditConfirm is how long a difference has to last.
	auditConfirm = 10 * time.Second
	// auditNames of keys that differ are named in the log.
	auditNames = 5
)

// Audits counts what came of comparing a scope with the server.
type Audits struct {
	// Done: the scope was compared. Abandoned: it was not, since the list failed
	// or the watch did not reach its version in time.
	Done, Abandoned int
	// Differences found, and of these Repaired by a list.
	Differences, Repaired int
	// Rewinds: the server's versions had gone back, and were past the scope's again.
	// Lists that are no audits find them too.
	Rewinds int
	// Last is when the last one was done; zero: none was.
	Last time.Time
}

// auditedState is all that an audit looks at of an object.
type auditedState struct {
	uid     types.UID
	version Version
}

// touchedKeys are those that something has been heard of since an audit began;
// nil: none is under way.
type touchedKeys map[Key]struct{}

// finding is how a scope differs from a list.
type finding struct {
	keys []Key
	// rewound of these, the server has in an older version than the scope, in a
	// list that is not older than that version: what the scope has was undone.
	rewound []Key
}

// lostIn are the keys of which the scope does not hold what the server had
// at version v. What was touched since is left out, as is what is newer here.
func lostIn[T Object](rows iter.Seq[*row[T]], scope ScopeID, list map[Key]auditedState, v Version, t touchedKeys) (d finding) {
	held := make(map[Key]struct{}, len(list))
	for r := range rows {
		if !r.scopes.has(scope) {
			continue
		}
		held[r.key] = struct{}{}
		e, listed := list[r.key]
		if _, ok := t[r.key]; ok || r.version == 0 {
			continue
		}
		switch other := e.uid != r.uid; {
		case listed && r.version <= v && (e.version < r.version || e.version == r.version && other):
			d.keys, d.rewound = append(d.keys, r.key), append(d.rewound, r.key)
		case listed && e.version > r.version, !listed && r.version <= v:
			d.keys = append(d.keys, r.key)
		}
	}
	for key := range list {
		_, ok := held[key]
		if _, since := t[key]; !ok && !since {
			d.keys = append(d.keys, key)
		}
	}
	slices.SortFunc(d.keys, compareKeys)
	return d
}

// audits compares each live scope with the server now and then, until ctx ends.
func (c *core) audits(ctx context.Context) error {
	mean, sim := c.opts.Audit, simhook.Of(ctx)
	for linger.For(ctx, mean/2+simhook.Duration(sim, "audit "+c.kind.Kind, mean)) {
		for _, w := range c.watchedNow() {
			r := c.reflectorOf(w)
			if r == nil || !r.auditable() {
				continue
			}
			d, err := c.audit(ctx, w)
			if ctx.Err() != nil {
				return nil
			}
			if r.status.audited(d, err); len(d.keys) > 0 {
				r.wants.add(demand{reason: relistAudit, repair: true, epoch: len(d.rewound) > 0})
			}
		}
	}
	return nil
}

// auditable: the scope has a watch of its own, and it is open, or lists stand in
// for it.
func (r *Reflector[T]) auditable() bool {
	state := r.status.snapshot().State
	return r.follows.Load() == nil && (state == StateLive || state == StateDecodingErrors || r.status.byLists.Load())
}

// audit returns what differs of a scope from the server for good. That the
// server's versions went back takes two lists, by two ways.
func (c *core) audit(ctx context.Context, w *watched) (d finding, err error) {
	defer c.beginAudit()()
	list, v, err := c.identitiesIn(ctx, w)
	if err != nil {
		return d, err
	}
	for begun := time.Now(); c.indexer.reached(w.id) < v; {
		if time.Since(begun) > auditPatience || !linger.For(ctx, time.Second) {
			return d, fmt.Errorf("audit: the watch has not reached version %s of the list", v)
		}
	}
	d, err = c.compare(w, list, v)
	if len(d.keys) > 0 && linger.For(ctx, auditConfirm) {
		d, err = c.compare(w, list, v)
	}
	if err != nil || len(d.rewound) == 0 {
		return d, err
	}
	if list, v, err = c.identitiesIn(elsewhere(ctx), w); err != nil {
		return finding{}, err
	}
	again, err := c.compare(w, list, v)
	if err != nil {
		return finding{}, err
	}
	d.rewound = slices.DeleteFunc(d.rewound, func(key Key) bool { return !slices.Contains(again.rewound, key) })
	return d, nil
}

// beginAudit has the keys noted that something is heard of, until the returned
// function is called.
func (c *core) beginAudit() (end func()) {
	c.critical.Lock()
	defer c.critical.Unlock()
	c.critical.touched = make(touchedKeys)
	return func() {
		c.critical.Lock()
		defer c.critical.Unlock()
		c.critical.touched = nil
	}
}

// touchLocked notes that something is heard of the keys of deltas.
func (c *core) touchLocked(deltas []Delta[Object]) {
	for i := range deltas {
		c.hearLocked(deltas[i].Key)
	}
}

// hearLocked notes that something is heard of key.
func (c *core) hearLocked(key Key) {
	if c.critical.touched != nil {
		c.critical.touched[key] = struct{}{}
	}
}

// compare holds a scope against the list of version v.
func (c *core) compare(w *watched, list map[Key]auditedState, v Version) (d finding, err error) {
	c.critical.Lock()
	same := int(w.id) < len(c.critical.byID) && c.critical.byID[w.id] == w
	rows, since := c.indexer.view(), maps.Clone(c.critical.touched)
	c.critical.Unlock()
	if !same {
		return d, errors.New("audit: the scope has ended")
	}
	return lostIn(rows.All(), w.id, list, v, since), nil
}

// identitiesIn is the newest state of a scope on the server.
func (c *core) identitiesIn(ctx context.Context, w *watched) (map[Key]auditedState, Version, error) {
	lw, err := c.auditList(w.scope)
	if err != nil {
		return nil, 0, err
	}
	lw = screening[Object]{ListerWatcher: lw, of: c.screen(w)}
	list, pages := make(map[Key]auditedState), pageReader[Object]{lw: lw}
	opts := ListOptions{Limit: cmp.Or(c.opts.PageSize, defaultPageSize)}
	for {
		page, err := pages.read(ctx, opts)
		switch {
		case err != nil:
			return nil, 0, fmt.Errorf("audit: %w", err)
		case page.Unreadable > 0:
			return nil, 0, fmt.Errorf("audit: %d objects have no readable name: %w", page.Unreadable, page.UnreadableErr)
		case ParseVersion(page.ResourceVersion) == 0:
			return nil, 0, errors.New("audit: the list has no version that can be compared")
		}
		for _, item := range page.Items {
			switch item.stranger {
			case sound:
			case otherKind:
				return nil, 0, fmt.Errorf("audit: %s: %w", item.Key, item.Err)
			default:
				continue
			}
			list[item.Key] = auditedState{item.UID, ParseVersion(item.ResourceVersion)}
		}
		if page.Continue == "" {
			return list, ParseVersion(page.ResourceVersion), nil
		}
		opts = ListOptions{Limit: opts.Limit, Continue: page.Continue}
	}
}

// auditLists lists the metadata of what a core watches.
type auditLists func(WatchScope) (ListerWatcher[Object], error)
