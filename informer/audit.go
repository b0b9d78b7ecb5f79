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

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/reflector"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/informer/internal/steps"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/internal/sleep"
	"github.com/flyball-dev/flyball/kube"
)

const (
	// auditPatience is how long an audit waits for the watch to reach the
	// version of its list. Bookmarks come once a minute.
	auditPatience = 150 * time.Second
	// auditConfirm is how long a difference must last.
	auditConfirm = 10 * time.Second
)

// auditedState is the part of an object that an audit compares.
type auditedState struct {
	uid     types.UID
	version kube.Version
}

// touchedKeys are the keys with news since an audit began; nil: no audit is
// running.
type touchedKeys map[kube.Key]struct{}

// lostIn returns the keys whose state in the scope differs from the server's at
// version v, except those touched since then and those that are newer here.
func lostIn(rows iter.Seq[*store.Row], scope base.ScopeID, list map[kube.Key]auditedState, v kube.Version, t touchedKeys) (d reflector.Finding) {
	held := make(map[kube.Key]struct{}, len(list))
	for r := range rows {
		if !r.Scopes.Has(scope) {
			continue
		}
		held[r.Key] = struct{}{}
		e, listed := list[r.Key]
		if _, ok := t[r.Key]; ok || r.Version == 0 {
			continue
		}
		switch other := e.uid != r.UID; {
		case listed && r.Version <= v && (e.version < r.Version || e.version == r.Version && other):
			d.Keys, d.Rewound = append(d.Keys, r.Key), append(d.Rewound, r.Key)
		case listed && e.version > r.Version, !listed && r.Version <= v:
			d.Keys = append(d.Keys, r.Key)
		}
	}
	for key := range list {
		_, ok := held[key]
		if _, since := t[key]; !ok && !since {
			d.Keys = append(d.Keys, key)
		}
	}
	slices.SortFunc(d.Keys, kube.CompareKeys)
	return d
}

// auditor compares the scopes of a core with the server.
type auditor struct {
	core    *core
	touched touchedKeys // since an audit began; nil: none is running; guarded by the core's critical section
}

// run compares each live scope with the server from time to time, until ctx
// ends.
func (a *auditor) run(ctx context.Context) error {
	mean, sim := a.core.opts.Audit, simhook.Of(ctx)
	for sleep.For(ctx, mean/2+simhook.Duration(sim, "audit "+a.core.kind.Kind, mean)) {
		for _, w := range a.core.critical.watchedNow() {
			r := a.core.critical.reflectorOf(w)
			if r == nil || !r.Auditable() {
				continue
			}
			d, err := a.audit(ctx, w)
			if ctx.Err() != nil {
				return nil
			}
			if r.Status.Audited(d, err); len(d.Keys) > 0 {
				r.Wants.Add(steps.Demand{Reason: steps.RelistAudit, Repair: true, Epoch: len(d.Rewound) > 0})
			}
		}
	}
	return nil
}

// audit returns the lasting differences of a scope from the server. To prove
// that the server's versions went back it takes two lists, on different
// connections.
func (a *auditor) audit(ctx context.Context, w *watched) (d reflector.Finding, err error) {
	defer a.begin()()
	list, v, err := a.identitiesIn(ctx, w, 1, nil)
	if err != nil {
		return d, fmt.Errorf("audit: %w", err)
	}
	for begun := time.Now(); a.core.indexer.Reached(w.id) < v; {
		if time.Since(begun) > auditPatience || !sleep.For(ctx, time.Second) {
			return d, fmt.Errorf("audit: the watch has not reached version %s of the list", v)
		}
	}
	d, err = a.compare(w, list, v)
	if len(d.Keys) > 0 && sleep.For(ctx, auditConfirm) {
		d, err = a.compare(w, list, v)
	}
	if err != nil || len(d.Rewound) == 0 {
		return d, err
	}
	if list, v, err = a.identitiesIn(restclient.Elsewhere(ctx), w, 1, nil); err != nil {
		return reflector.Finding{}, fmt.Errorf("audit: %w", err)
	}
	again, err := a.compare(w, list, v)
	if err != nil {
		return reflector.Finding{}, err
	}
	d.Rewound = slices.DeleteFunc(d.Rewound, func(key kube.Key) bool { return !slices.Contains(again.Rewound, key) })
	return d, nil
}

// begin starts to record keys with news, until end is called.
func (a *auditor) begin() (end func()) {
	a.core.critical.Lock()
	defer a.core.critical.Unlock()
	a.touched = make(touchedKeys)
	return func() {
		a.core.critical.Lock()
		defer a.core.critical.Unlock()
		a.touched = nil
	}
}

func (a *auditor) touchLocked(deltas []store.Delta) {
	for i := range deltas {
		a.hearLocked(deltas[i].Key)
	}
}

func (a *auditor) hearLocked(key kube.Key) {
	if a.touched != nil {
		a.touched[key] = struct{}{}
	}
}

func (a *auditor) compare(w *watched, list map[kube.Key]auditedState, v kube.Version) (d reflector.Finding, err error) {
	a.core.critical.Lock()
	same := a.core.critical.scopes.has(w)
	rows, since := a.core.indexer.View(), maps.Clone(a.touched)
	a.core.critical.Unlock()
	if !same {
		return d, errors.New("audit: the scope has ended")
	}
	return lostIn(rows.All(), w.id, list, v, since), nil
}

// identitiesIn returns the newest state of a scope on the server. If there is more of it than some
// pages, which it reads at once, and enough says so, it returns only the version.
func (a *auditor) identitiesIn(ctx context.Context, w *watched, pages int, enough func(kube.Version) bool) (map[kube.Key]auditedState, kube.Version, error) {
	lw, err := a.core.auditList(w.scope)
	if err != nil {
		return nil, 0, err
	}
	lw = reflector.ListerWatcher{From: lw, Screen: w.screen(&a.core.upstream)}
	list, reader := make(map[kube.Key]auditedState), restclient.PageReader{Lw: lw}
	opts := listwatch.ListOptions{Limit: int64(pages) * cmp.Or(a.core.opts.PageSize, reflector.DefaultPageSize)}
	for {
		page, err := reader.Read(ctx, opts)
		switch {
		case err != nil:
			return nil, 0, err
		case page.Unreadable > 0:
			return nil, 0, fmt.Errorf("%d objects have no readable name: %w", page.Unreadable, page.UnreadableErr)
		case kube.ParseVersion(page.ResourceVersion) == 0:
			return nil, 0, errNoVersion
		}
		for _, item := range page.Items {
			switch item.Anomaly {
			case base.Sound:
			case base.OtherKind:
				return nil, 0, fmt.Errorf("%s: %w", item.Key, item.Err)
			default:
				continue
			}
			list[item.Key] = auditedState{item.UID, kube.ParseVersion(item.ResourceVersion)}
		}
		if page.Continue == "" {
			return list, kube.ParseVersion(page.ResourceVersion), nil
		}
		if opts.Continue == "" && enough != nil && enough(kube.ParseVersion(page.ResourceVersion)) {
			return nil, kube.ParseVersion(page.ResourceVersion), nil
		}
		opts = listwatch.ListOptions{Limit: opts.Limit, Continue: page.Continue}
	}
}
