// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/kube"
)

// The scope has seen all events up to version 10; the server's list is of version 20.
func TestShowsAll_NothingShownIsOlderThanTheList_M14(t *testing.T) {
	row := func(name string, version kube.Version) *store.Row {
		return &store.Row{Key: kube.Key{Name: name}, Version: version, Scopes: store.ScopesOf(1)}
	}
	elsewhere := &store.Row{Key: kube.Key{Name: "b"}, Version: 20, Scopes: store.ScopesOf(2)}
	for _, r := range []struct {
		name string
		rows []*store.Row
		list map[string]kube.Version
		want bool
	}{
		{"nothing", nil, nil, true},
		{"the same", []*store.Row{row("a", 5)}, map[string]kube.Version{"a": 5}, true},
		{"newer here", []*store.Row{row("a", 25)}, map[string]kube.Version{"a": 5}, true},
		{"created since the list", []*store.Row{row("a", 25)}, nil, true},
		{"deleted since the list, and seen", nil, map[string]kube.Version{"a": 5}, true},
		{"ahead by an own write", []*store.Row{row("a", 15)}, map[string]kube.Version{"a": 15}, true},
		{"older here", []*store.Row{row("a", 5)}, map[string]kube.Version{"a": 15}, false},
		{"created, and not seen", nil, map[string]kube.Version{"a": 15}, false},
		{"one seen, one not", []*store.Row{row("a", 15)}, map[string]kube.Version{"a": 15, "b": 16}, false},
		{"shown by another scope alone", []*store.Row{elsewhere}, map[string]kube.Version{"b": 15}, false},
		{"deleted, and not seen", []*store.Row{row("a", 5)}, nil, false},
		{"deleted at the version of the list", []*store.Row{row("a", 20)}, nil, false},
		{"versions unknown here", []*store.Row{row("a", 0)}, map[string]kube.Version{"a": 5}, false},
		{"versions unknown there", nil, map[string]kube.Version{"a": 0}, false},
	} {
		list := map[kube.Key]auditedState{}
		for name, v := range r.list {
			list[kube.Key{Name: name}] = auditedState{version: v}
		}
		if got := showsAll(slices.Values(r.rows), 1, list, 20, 10); got != r.want {
			t.Errorf("%s: %v, want %v", r.name, got, r.want)
		}
	}
}

func TestCaughtUp_VersionIsThatOfAllScopes_M14(t *testing.T) {
	late := errors.New("late")
	scope := func(at kube.Version, lists int, err error) pursuit {
		return pursuit{at: at, lists: lists, waited: lists > 0, err: err}
	}
	for _, row := range []struct {
		name  string
		floor Floor
		parts []pursuit
		want  kube.Version
	}{
		{"by events", Floor{Version: 7}, []pursuit{scope(0, 0, nil), scope(9, 1, nil)}, 7},
		{"by lists", Floor{Version: 7, Present: true}, []pursuit{scope(8, 1, nil), scope(9, 1, nil)}, 9},
		{"one was not awaited", Floor{Version: 7, Present: true}, []pursuit{scope(8, 1, nil), scope(0, 0, nil)}, 0},
		{"none is watched", Floor{Present: true}, nil, 0},
		{"one is late", Floor{Present: true}, []pursuit{scope(8, 1, nil), scope(9, 1, late)}, 9},
	} {
		got := summary(schema.GroupVersionKind{Kind: "Pod"}, row.floor, row.parts)
		lists, failed := 0, false
		for _, p := range row.parts {
			lists, failed = lists+p.lists, failed || p.err != nil
		}
		if got.Version != row.want || got.Lists != lists || got.Waited != (lists > 0) || (got.Err != nil) != failed {
			t.Errorf("%s: %+v, want version %d after %d lists", row.name, got, row.want, lists)
		}
	}
}
