// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/kube"
)

// Undecodable lists what the scopes hold, sorted, at one moment.
func TestLister_ListsTheQuarantine_I8(t *testing.T) {
	x := store.NewIndexer(fixture.ThingKind)
	bad := func(scope base.ScopeID, name string, v kube.Version) store.Delta {
		d := deltaOf(fixture.Spoilt(fixture.NewThing(fixture.Named(name), "u", v, "")))
		d.Type, d.Scope = store.Updated, scope
		return d
	}
	mustApply(t, x, bad(0, "b", 1), bad(0, "a", 2), bad(1, "c", 3), seenDelta("good", "g", 4, ""))
	list := func(l Lister[kube.Object]) (out []string) {
		for u := range l.Undecodable() {
			failed, ok := errors.AsType[*kube.UndecodableError](u.Err)
			if !ok || failed.Key != u.Key || !errors.Is(u.Err, fixture.ErrSpoiled) || u.Since.IsZero() {
				t.Errorf("%s has the error %v since %v, want an *UndecodableError with its key and cause", u.Key, u.Err, u.Since)
			}
			out = append(out, fmt.Sprintf("%s %s@%s %s", u.Key.Name, u.UID, u.Version, u.Metadata.Name))
			mustApply(t, x, seenDelta(u.Key.Name, "u", 9, "")) // heals while it is listed
		}
		return out
	}
	if got, want := list(listerOf(x, &listerView{scopes: store.ScopesOf(0)})), []string{"a u@2 a", "b u@1 b"}; !slices.Equal(got, want) {
		t.Errorf("one scope lists %q, want %q", got, want)
	}
	if got, want := list(listerOf(x, &listerView{})), []string{"c u@3 c"}; !slices.Equal(got, want) {
		t.Errorf("after the others have healed %q are listed, want %q", got, want)
	}
	if got := list(Lister[kube.Object]{}); got != nil {
		t.Errorf("an empty Lister lists %q", got)
	}
}
