// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/steps"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/internal/sleep"
	"github.com/flyball-dev/flyball/kube"
)

const (
	// A store is compared with its floor at intervals that double between
	// these.
	firstLook, longestLook = 5 * time.Millisecond, 100 * time.Millisecond
	// partPatience is how long a part of a kind waits for an event with the
	// version of a write before it asks the server: the object may be in
	// another part. The watch of a whole kind gets an event for each write.
	partPatience = 50 * time.Millisecond
	// pagePatience is how long the first page of a long list waits for the
	// watch to make the other pages superfluous.
	pagePatience = 500 * time.Millisecond
	// relistAfter is how late a watch may be before a list replaces it.
	relistAfter = 2 * time.Second
	// askAgain is the pause after a failed list.
	askAgain = 500 * time.Millisecond
	// asking is how many scopes ask the server at a time.
	asking = 8
)

// Floor is what the informers of a kind must have seen. Zero: nothing.
type Floor struct {
	// Version of a change to an object of the kind; it and all before it. 0:
	// none in particular.
	Version kube.Version
	// Present: what the server has stored at the time of the call, too.
	Present bool
}

// CaughtUp is how one informer passed its Floor.
type CaughtUp struct {
	Kind schema.GroupVersionKind
	// Version that all its scopes have passed. 0: none was needed, none can be
	// compared, or a scope was not awaited.
	Version kube.Version
	Waited  bool  // for an event or an answer
	Lists   int   // sent to the server
	Err     error // why it has not passed; nil: it has
}

// CatchUp blocks until what Listers read is not older than the floor of each
// kind, or until ctx ends. It awaits the watches first and asks the server, by
// lists of metadata, only where they cannot show it; a scope whose watch is
// late for two seconds is relisted. A scope that has never synced because the
// server refuses it is not awaited: its first list is then the newest state.
func (f *SharedInformerFactory) CatchUp(ctx context.Context, floor func(schema.GroupKind) Floor) []CaughtUp {
	cores := f.cores()
	out := make([]CaughtUp, len(cores))
	turns := make(chan struct{}, asking)
	var all sync.WaitGroup
	defer all.Wait()
	for i, c := range cores {
		kind := c.gvk()
		out[i] = CaughtUp{Kind: kind}
		if want := floor(kind.GroupKind()); want != (Floor{}) {
			all.Go(func() { out[i] = catchUp(ctx, c, want, turns) })
		}
	}
	all.Wait()
	return out
}

// catchUp makes all scopes of c pass the floor.
func catchUp(ctx context.Context, c *core, floor Floor, turns chan struct{}) CaughtUp {
	if err := c.divider.settled(ctx); err != nil {
		return CaughtUp{Kind: c.gvk(), Err: err}
	}
	scopes := c.critical.watchedNow()
	parts := make([]pursuit, len(scopes))
	var all sync.WaitGroup
	defer all.Wait()
	for i, w := range scopes {
		parts[i] = pursuit{core: c, scope: w, floor: floor, turns: turns, began: time.Now()}
		all.Go(func() { parts[i].err = parts[i].run(ctx) })
	}
	all.Wait()
	return summary(c.gvk(), floor, parts)
}

// summary returns how the scopes of a kind passed the floor.
func summary(kind schema.GroupVersionKind, floor Floor, parts []pursuit) CaughtUp {
	out := CaughtUp{Kind: kind, Version: floor.Version}
	known := !floor.Present || len(parts) > 0
	var errs []error
	for i := range parts {
		p := &parts[i]
		out.Lists, out.Waited = out.Lists+p.lists, out.Waited || p.waited
		if floor.Present {
			out.Version, known = max(out.Version, p.at), known && p.at != 0
		}
		if p.err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.scope.scope, p.err))
		}
	}
	if !known {
		out.Version = 0
	}
	out.Err = errors.Join(errs...)
	return out
}

// pursuit makes one scope pass a floor.
type pursuit struct {
	core   *core
	scope  *watched
	floor  Floor
	turns  chan struct{} // of those that ask the server
	began  time.Time
	waited bool
	err    error

	list   map[kube.Key]auditedState // of the server; nil: not asked, or only for its version
	at     kube.Version              // of the server's answer; 0: none
	lists  int
	next   time.Time // when it may ask again
	last   error     // of the last request
	relist int64     // number of relists that make it pass; 0: none was demanded
}

func (p *pursuit) run(ctx context.Context) error {
	for pause := firstLook; !p.passed(); pause = min(2*pause, longestLook) {
		p.waited = true
		r := p.core.critical.reflectorOf(p.scope)
		if r == nil {
			return nil // the scope has ended
		}
		late := time.Since(p.began)
		switch {
		case !p.scope.synced.Load() && isRefused(r.State().State):
			r.Wants.Add(steps.Demand{Reason: steps.RelistHandOver})
			return nil // there is nothing that could be too old
		case p.asks(late):
			if p.last = p.ask(ctx); p.last == nil {
				pause = firstLook / 2
				continue
			}
			p.next = time.Now().Add(askAgain)
		case p.relist == 0 && (late > relistAfter || errors.Is(p.last, errNoVersion)) && r.Auditable():
			p.relist = p.scope.relists.Load() + 1
			r.Wants.Add(steps.Demand{Reason: steps.RelistHandOver})
		}
		if !sleep.For(ctx, pause) {
			return cmp.Or(p.last, fmt.Errorf("its watch has reached version %q, not %q",
				p.core.indexer.Reached(p.scope.id), max(p.at, p.floor.Version)))
		}
	}
	return nil
}

// isRefused reports whether the server refuses a scope in that state.
func isRefused(s state.State) bool {
	switch s {
	case state.NotServed, state.Forbidden, state.Unauthorized, state.Stale, state.DoesNotFit, state.Misuse, state.Stopped:
		return true
	}
	return false
}

// asks reports whether to ask the server now.
func (p *pursuit) asks(late time.Duration) bool {
	whole := p.scope.scope
	if whole.ShardSelector == "" {
		whole.Division = listwatch.Division{} // the watch has the events of all shards
	}
	part := whole != listwatch.Scope{}
	return p.at == 0 && (p.floor.Present || part && late >= partPatience) && !errors.Is(p.last, errNoVersion) && !time.Now().Before(p.next)
}

// ask lists the metadata of the scope in its newest state.
func (p *pursuit) ask(ctx context.Context) error {
	select {
	case p.turns <- struct{}{}:
		defer func() { <-p.turns }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if sim := simhook.Of(ctx); sim != nil {
		sim.Step(ctx, "ask", fmt.Sprintf("catch up %s %s %s", p.core.kind.Kind, p.core.object, p.scope.scope))
	}
	p.lists++
	list, v, err := p.core.auditor.identitiesIn(ctx, p.scope, p.superfluous(ctx))
	switch {
	case err != nil:
		return err
	case v < p.floor.Version:
		return fmt.Errorf("the server answers with version %s, which is older than what was written, %s", v, p.floor.Version)
	}
	p.list, p.at = list, v
	return nil
}

// superfluous returns a function that waits a little for the watch to reach the
// version of a list's first page.
func (p *pursuit) superfluous(ctx context.Context) func(kube.Version) bool {
	return func(v kube.Version) bool {
		for end := time.Now().Add(pagePatience); p.core.indexer.Reached(p.scope.id) < v; {
			if time.Now().After(end) || !sleep.For(ctx, firstLook) {
				return false
			}
		}
		return true
	}
}

// passed reports whether what the scope shows is not older than the floor.
func (p *pursuit) passed() bool {
	if !p.scope.synced.Load() {
		return false
	}
	if p.relist != 0 && errors.Is(p.last, errNoVersion) && p.scope.relists.Load() >= p.relist {
		return true
	}
	reached := p.core.indexer.Reached(p.scope.id)
	if reached >= p.floor.Version && !p.floor.Present || p.at != 0 && reached >= p.at {
		return true
	}
	return p.list != nil && showsAll(p.core.indexer.View().All(), p.scope.id, p.list, p.at, reached)
}

// showsAll reports whether what scope shows is nowhere older than the server's
// list at version v, given that the scope has seen every event up to reached.
func showsAll(rows iter.Seq[*store.Row], scope base.ScopeID, list map[kube.Key]auditedState, v, reached kube.Version) bool {
	missing := 0
	for _, e := range list {
		if e.version > reached || e.version == 0 {
			missing++
		}
	}
	for r := range rows {
		if !r.Scopes.Has(scope) {
			continue
		}
		e, listed := list[r.Key]
		switch {
		case r.Version == 0, !listed && r.Version <= v, listed && r.Version < e.version:
			return false
		case listed && e.version > reached:
			missing--
		}
	}
	return missing == 0
}
