// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"reflect"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

// What a handle reads is never older than the own writes in its scopes, also if the scopes of
// other handles have delivered later states before the answer arrived.
func TestCore_ReadsAreNotOlderThanOwnWrites_I1(t *testing.T) {
	key := fixture.Named("a")
	at := func(v kube.Version, label string) kube.Object { return fixture.NewThing(key, "u", v, label) }
	labelled := Scope{LabelSelector: "label=in"}
	push := func(i *SharedInformer[kube.Object], how store.DeltaType, obj kube.Object) {
		d := store.Delta{Type: how, Key: key, Scope: i.handle.holds[0].id, UID: "u", Version: fixture.VersionOf(obj), Object: obj}
		i.core.store(store.Batch{}, false, func() ([]store.Change, error) {
			return i.core.indexer.Apply(store.Batch{Deltas: []store.Delta{d}})
		})
	}
	for _, row := range []struct {
		name      string
		scope     Scope // of the writer
		transform bool
		before    func(writer, other *SharedInformer[kube.Object])
		after     func(writer, other *SharedInformer[kube.Object])
		want      string // what the writer reads after its write of version 5
	}{
		{name: "a namespace", scope: Scope{Namespaces: []string{key.Namespace}}, want: "7",
			before: func(_, other *SharedInformer[kube.Object]) { push(other, store.Added, at(7, "out")) }},
		{name: "a label that is still there", scope: labelled, want: "7",
			before: func(_, other *SharedInformer[kube.Object]) { push(other, store.Added, at(7, "in")) }},
		{name: "a label that is gone", scope: labelled, want: "not found",
			before: func(_, other *SharedInformer[kube.Object]) { push(other, store.Added, at(7, "out")) }},
		{name: "a label that a transform may have changed", scope: labelled, transform: true, want: "not settled",
			before: func(_, other *SharedInformer[kube.Object]) { push(other, store.Added, at(7, "in")) }},
		{name: "a namespace, with a transform", scope: Scope{Namespaces: []string{key.Namespace}}, transform: true, want: "7",
			before: func(_, other *SharedInformer[kube.Object]) { push(other, store.Added, at(7, "in")) }},
		{name: "an object that has left the other scope", scope: labelled, want: "not settled",
			before: func(_, other *SharedInformer[kube.Object]) {
				push(other, store.Added, at(6, "in"))
				push(other, store.Deleted, at(7, "in"))
			}},
		{name: "the own watch brings the write first", scope: labelled, want: "7",
			before: func(writer, other *SharedInformer[kube.Object]) {
				push(other, store.Added, at(7, "in"))
				push(writer, store.Added, at(5, "in"))
			}},
		{name: "the own watch is late with an end before the write", scope: labelled, want: "7",
			before: func(writer, other *SharedInformer[kube.Object]) {
				push(writer, store.Added, at(3, "in"))
				push(other, store.Added, at(7, "in"))
			},
			after: func(writer, _ *SharedInformer[kube.Object]) { push(writer, store.Deleted, at(4, "in")) }},
		{name: "another state comes before that end", scope: labelled, want: "7",
			before: func(writer, _ *SharedInformer[kube.Object]) { push(writer, store.Added, at(3, "in")) },
			after: func(writer, other *SharedInformer[kube.Object]) {
				push(other, store.Added, at(7, "in"))
				push(writer, store.Deleted, at(4, "in"))
			}},
		{name: "an end after the write", scope: labelled, want: "not found",
			before: func(writer, _ *SharedInformer[kube.Object]) { push(writer, store.Added, at(3, "in")) },
			after: func(writer, other *SharedInformer[kube.Object]) {
				push(other, store.Added, at(7, "in"))
				push(writer, store.Deleted, at(6, "in"))
			}},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := newCore(reflect.TypeFor[kube.Object](), fixture.ThingKind, Options{}, func(listwatch.Scope) (listwatch.ListerWatcher[kube.Object], error) { return silent{}, nil })
			c.shared = true
			c.convert = func(w kube.Written) (kube.Object, error) { return kube.Copy(w.Object), nil }
			if row.transform {
				if err := c.settings.setTransform(func(obj kube.Object) (kube.Object, error) { return obj, nil }); err != nil {
					t.Fatal(err)
				}
			}
			view := func(scope Scope) *SharedInformer[kube.Object] {
				h, err := c.handle([]Scope{scope}, nil)
				if err != nil {
					t.Fatal(err)
				}
				i := &SharedInformer[kube.Object]{core: c, handle: h}
				list := store.Batch{Synced: []base.ScopeID{h.holds[0].id}, Reached: []store.Reached{{Scope: h.holds[0].id, Version: 2}}}
				c.store(list, false, func() ([]store.Change, error) { return c.indexer.Apply(list) })
				return i
			}
			writer, other := view(row.scope), view(Scope{FieldSelector: "spec.part=other"})
			row.before(writer, other)
			writer.Observe(kube.Written{Kind: fixture.ThingKind, Effect: kube.Stored, Key: key, UID: "u", Version: 5, Object: at(5, "in")})
			if row.after != nil {
				row.after(writer, other)
			}
			obj, err := writer.Lister().Get(key)
			got := "no error"
			if _, pending := errors.AsType[*kube.NotSettledError](err); pending {
				got = "not settled"
			} else if apierrors.IsNotFound(err) {
				got = "not found"
			} else if err == nil {
				got = obj.GetResourceVersion()
			}
			if got != row.want {
				t.Errorf("after an own write of version 5 the writer reads %s (%v), want %s", got, err, row.want)
			}
		})
	}
}
