// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/taskgroup"
	"github.com/flyball-dev/flyball/kube"
)

// following is a namespace selector that a handle follows, through an informer
// of namespace metadata in the same factory.
type following struct {
	selector   string
	namespaces *SharedInformer[*metav1.PartialObjectMetadata]
	// The core's critical section guards the fields below.
	chosen []string
	known  bool // the first list of namespaces is stored
	member *taskgroup.Member
}

// namespaceInformer returns an informer of the namespaces that match selector.
func namespaceInformer(f *SharedInformerFactory, selector string) *SharedInformer[*metav1.PartialObjectMetadata] {
	return ForMetadata(f, schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Scope{LabelSelector: selector})
}

// checkNamespaces returns misuse of the namespaces in scopes.
func (h *handle) checkNamespaces(scopes []Scope) error {
	for _, s := range scopes {
		switch _, err := labels.Parse(s.NamespaceSelector); {
		case s.NamespaceSelector == "":
		case err != nil:
			return h.core.errorf("parse namespace selector %q: %w", s.NamespaceSelector, err)
		case len(s.Namespaces) > 0:
			return h.core.errorf("scope with namespace selector %q: it names namespaces too; give one of both", s.NamespaceSelector)
		case h.core.follow == nil:
			return h.core.errorf("scope with namespace selector %q: only a factory can follow namespaces", s.NamespaceSelector)
		}
	}
	return nil
}

// followAll returns followings for the selectors in scopes. It starts nothing.
func (h *handle) followAll(scopes []Scope) []*following {
	var out []*following
	for _, s := range scopes {
		if sel := s.NamespaceSelector; sel != "" && !s.Deferred && !slices.ContainsFunc(out, func(f *following) bool { return f.selector == sel }) {
			out = append(out, &following{selector: sel, namespaces: h.core.follow(sel)})
		}
	}
	return out
}

// takeOverLocked makes h follow these selectors, and returns the previous ones.
func (h *handle) takeOverLocked(follows []*following) (before []*following) {
	before, h.follows = h.follows, follows
	for _, f := range follows {
		for _, old := range before {
			if old.selector == f.selector {
				f.chosen, f.known = old.chosen, old.known
			}
		}
		f.member, _ = h.core.group.Spawn(func(ctx context.Context) error { return h.keepUp(ctx, f) })
	}
	return before
}

func unfollow(follows []*following) {
	for _, f := range follows {
		if f.member != nil {
			f.member.Cancel()
		}
		f.namespaces.Release()
	}
}

// keepUp makes h cover the selected namespaces, and updates it when they
// change.
func (h *handle) keepUp(ctx context.Context, f *following) error {
	changed := make(chan struct{}, 1)
	tell := func(kube.Event[*metav1.PartialObjectMetadata]) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	name := fmt.Sprintf("scopes of %s", h.core.kind.Kind)
	if _, err := f.namespaces.AddHandler(tell, HandlerOptions{Name: name, Resync: -1}); err != nil {
		return nil // released, or the run is ending
	}
	select {
	case <-f.namespaces.Synced():
	case <-ctx.Done():
		return nil
	}
	for {
		h.choose(f)
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// choose makes h cover the namespaces that f selects now.
func (h *handle) choose(f *following) {
	var chosen []string
	for ns := range f.namespaces.Lister().All() {
		chosen = append(chosen, ns.Name)
	}
	slices.Sort(chosen)
	plain, clusterWide, changed := h.chooseUnder(f, chosen)
	if !changed {
		return
	}
	planned := planOf(plain, clusterWide, h.core.divider.now())
	err := coverInParts(h.core, planned.watch, func() error {
		if !slices.Contains(h.follows, f) {
			return nil
		}
		return h.coverLocked(h.asked, planned)
	})
	if err != nil {
		h.core.log.Error(err, "Cannot watch the selected namespaces")
	}
	h.core.callPassed()
}

// chooseUnder records what f selects, and returns what to plan for h.
func (h *handle) chooseUnder(f *following, chosen []string) (plain []Scope, clusterWide, changed bool) {
	h.core.critical.Lock()
	defer h.core.critical.Unlock()
	if !slices.Contains(h.follows, f) || f.known && slices.Equal(f.chosen, chosen) {
		return nil, false, false
	}
	f.chosen, f.known = chosen, true
	plain, _ = h.chosenOf(h.asked)
	return plain, h.clusterWide, true
}

// chosenOf returns scopes with the namespaces selected so far. open: some are
// not known, or never will be.
func (h *handle) chosenOf(scopes []Scope) (plain []Scope, open bool) {
	for _, s := range scopes {
		if s.Deferred {
			open = true
			continue
		}
		if s.NamespaceSelector == "" {
			plain = append(plain, s)
			continue
		}
		for _, f := range h.follows {
			switch {
			case f.selector != s.NamespaceSelector:
			case h.clusterWide || !f.known:
				open = true
			case len(f.chosen) > 0:
				plain = append(plain, Scope{Namespaces: f.chosen, LabelSelector: s.LabelSelector, FieldSelector: s.FieldSelector})
			}
		}
	}
	return plain, open
}

// state returns the state of the selection: that of the namespace watch.
func (f *following) state(clusterWide, known bool) state.Scope {
	s := state.Scope{State: state.Waiting}
	if of := f.namespaces.handle.fed.Load(); of != nil {
		s = of.State()
	}
	s.Scope, s.NamespaceSelector, s.Synced = listwatch.Scope{}, f.selector, known
	if clusterWide {
		s.State, s.Synced = state.Misuse, false
		s.Reason = "the kind is of cluster scope, so namespaces cannot be chosen for it; leave the NamespaceSelector out"
	}
	return s
}
