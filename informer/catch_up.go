// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/reflector"
	"github.com/flyball-dev/flyball/informer/internal/steps"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/internal/sleep"
	"github.com/flyball-dev/flyball/kube"
)

const (
	// A store is compared with its floor at intervals that double between
	// these.
	firstLook, longestLook = 5 * time.Millisecond, 100 * time.Millisecond
	// partPatience is how long a part of a kind waits for an event with the
	// version of a write before it asks the server: the object may be in
	// another part. The watch of a whole kind gets an event for each write, but none for the
	// version of a list.
	partPatience, wholePatience = 50 * time.Millisecond, 500 * time.Millisecond
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
	groups := together(c.critical.watchedNow())
	parts := make([]pursuit, len(groups))
	var all sync.WaitGroup
	defer all.Wait()
	for i, g := range groups {
		parts[i] = pursuit{core: c, scopes: g, floor: floor, turns: turns, began: time.Now()}
		all.Go(func() { parts[i].err = parts[i].run(ctx) })
	}
	all.Wait()
	return summary(c.gvk(), floor, parts)
}

// together returns the scopes in groups that one list can show: those of single shards that the
// server selects, of the same objects otherwise.
func together(scopes []*watched) (groups [][]*behind) {
	open := map[listwatch.Scope]int{}
	for _, w := range scopes {
		of := w.scope
		single := of.ShardSelector != "" && len(of.Division.Held.All()) == 1
		of.ShardSelector, of.Division.Held = "", ""
		i, has := open[of]
		if !single || !has || len(groups[i]) == mostRanges {
			if i = len(groups); single {
				open[of] = i
			}
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], &behind{watched: w})
	}
	return groups
}

// merged returns the part of a kind that scopes of one group are together.
func merged(scopes []*behind) (all *watched, err error) {
	if len(scopes) == 1 {
		return scopes[0].watched, nil
	}
	all = &watched{scope: scopes[0].scope}
	d := division{Division: all.scope.Division, form: state.FormServer}
	var some []int
	for _, s := range scopes {
		some = append(some, s.scope.Division.Held.All()...)
	}
	all.scope = d.part(all.scope, shards.SetOf(some...))
	all.matcher, err = reflector.NewMatcher(all.scope)
	return all, err
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
			out.Version, known = max(out.Version, p.at), known && p.at != 0 && !p.unasked
		}
		errs = append(errs, p.err)
	}
	if !known {
		out.Version = 0
	}
	out.Err = errors.Join(errs...)
	return out
}

// behind is a scope that has not passed the floor.
type behind struct {
	*watched
	list   map[kube.Key]auditedState // of the server; nil: not asked, or only for its version
	relist int64                     // number of relists that make it pass; 0: none was demanded
}

// pursuit makes scopes pass a floor, which one list can show.
type pursuit struct {
	core    *core
	scopes  []*behind
	floor   Floor
	turns   chan struct{} // of those that ask the server
	began   time.Time
	waited  bool
	unasked bool // a scope was not awaited before the server has answered
	err     error

	at    kube.Version // of the server's answer; 0: none
	lists int
	next  time.Time // when it may ask again
	last  error     // of the last request
}

func (p *pursuit) run(ctx context.Context) error {
	for pause := firstLook; !p.passed(); pause = min(2*pause, longestLook) {
		p.waited = true
		late := time.Since(p.began)
		p.scopes = slices.DeleteFunc(p.scopes, func(s *behind) bool { return p.leaves(s) })
		if len(p.scopes) == 0 {
			return nil
		}
		if p.asks(late) {
			if p.last = p.ask(ctx); p.last == nil {
				pause = firstLook / 2
				continue
			}
			p.next = time.Now().Add(askAgain)
		} else if late > relistAfter || errors.Is(p.last, errNoVersion) {
			p.demandRelists()
		}
		if !sleep.For(ctx, pause) {
			return p.late()
		}
	}
	return nil
}

// leaves reports whether s need not pass: it has ended, or there is nothing that could be too old.
func (p *pursuit) leaves(s *behind) bool {
	r := p.core.critical.reflectorOf(s.watched)
	if r != nil {
		if s.synced.Load() || !isRefused(r.State().State) {
			return false
		}
		r.Wants.Add(steps.Demand{Reason: steps.RelistHandOver})
	}
	p.unasked = p.unasked || p.at == 0
	return true
}

// demandRelists makes the scopes list anew that have not done so.
func (p *pursuit) demandRelists() {
	for _, s := range p.scopes {
		if r := p.core.critical.reflectorOf(s.watched); r != nil && s.relist == 0 && r.Auditable() {
			s.relist = s.relists.Load() + 1
			r.Wants.Add(steps.Demand{Reason: steps.RelistHandOver})
		}
	}
}

// late returns which scopes have not passed, and why.
func (p *pursuit) late() error {
	var errs []error
	for _, s := range p.scopes {
		errs = append(errs, fmt.Errorf("%s: %w", s.scope,
			cmp.Or(p.last, fmt.Errorf("its watch has reached version %q, not %q",
				p.core.indexer.Reached(s.id), max(p.at, p.floor.Version)))))
	}
	return errors.Join(errs...)
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
	whole := p.scopes[0].scope
	if whole.ShardSelector == "" {
		whole.Division = listwatch.Division{} // the watch has the events of all shards
	}
	patience := wholePatience
	if whole != (listwatch.Scope{}) {
		patience = partPatience
	}
	return p.at == 0 && (p.floor.Present || late >= patience) && !errors.Is(p.last, errNoVersion) && !time.Now().Before(p.next)
}

// ask lists the metadata of the scopes in their newest state.
func (p *pursuit) ask(ctx context.Context) error {
	select {
	case p.turns <- struct{}{}:
		defer func() { <-p.turns }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	all, err := merged(p.scopes)
	if err != nil {
		return err
	}
	step(ctx, fmt.Sprintf("catch up %s %s %s", p.core.kind.Kind, p.core.object, all.scope))
	p.lists++
	list, v, err := p.core.auditor.identitiesIn(ctx, all, len(p.scopes), p.superfluous(ctx))
	switch {
	case err != nil:
		return err
	case v < p.floor.Version:
		return fmt.Errorf("the server answers with version %s, which is older than what was written, %s", v, p.floor.Version)
	}
	p.at = v
	if list == nil {
		return nil
	}
	for _, s := range p.scopes {
		s.list = map[kube.Key]auditedState{}
		for key, e := range list {
			if !s.matcher.IsForeign(key, e.uid, nil) {
				s.list[key] = e
			}
		}
	}
	return nil
}

// superfluous returns a function that waits a little for the watches to reach the version of a
// list's first page.
func (p *pursuit) superfluous(ctx context.Context) func(kube.Version) bool {
	return func(v kube.Version) bool {
		behind := func(s *behind) bool { return p.core.indexer.Reached(s.id) < v }
		for end := time.Now().Add(pagePatience); slices.ContainsFunc(p.scopes, behind); {
			if time.Now().After(end) || !sleep.For(ctx, firstLook) {
				return false
			}
		}
		return true
	}
}

// passed reports whether what the scopes show is not older than the floor. It forgets those that
// have passed.
func (p *pursuit) passed() bool {
	p.scopes = slices.DeleteFunc(p.scopes, func(s *behind) bool { return p.hasPassed(s) })
	return len(p.scopes) == 0
}

func (p *pursuit) hasPassed(s *behind) bool {
	if !s.synced.Load() {
		return false
	}
	if s.relist != 0 && errors.Is(p.last, errNoVersion) && s.relists.Load() >= s.relist {
		return true
	}
	reached := p.core.indexer.Reached(s.id)
	if reached >= p.floor.Version && !p.floor.Present || p.at != 0 && reached >= p.at {
		return true
	}
	return s.list != nil && showsAll(p.core.indexer.View().All(), s.id, s.list, p.at, reached)
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
