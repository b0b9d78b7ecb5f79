// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/fixture"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/listwatch"
)

// silent is a ListerWatcher whose server never answers.
type silent struct{}

func (silent) List(ctx context.Context, _ listwatch.ListOptions) (listwatch.Page[Object], error) {
	<-ctx.Done()
	return listwatch.Page[Object]{}, ctx.Err()
}

func (silent) Watch(ctx context.Context, _ listwatch.WatchOptions) (listwatch.Stream[Object], error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// namespacesNamed returns a scope of n namespaces.
func namespacesNamed(n int) (s Scope) {
	for i := range n {
		s.Namespaces = append(s.Namespaces, fmt.Sprint("ns-", i))
	}
	return s
}

// A handle of many namespaces is opened and released, beside one of another namespace. Each
// namespace has an object.
func BenchmarkScopes_OpenAndRelease(b *testing.B) {
	for _, n := range []int{1000, 4000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c := newCore(reflect.TypeFor[Object](), fixture.ThingKind, Options{}, func(WatchScope) (ListerWatcher[Object], error) { return silent{}, nil })
			c.shared = true
			ctx, stop := context.WithCancel(b.Context())
			done := make(chan error)
			go func() { done <- c.run(ctx) }()
			if _, err := c.handle([]Scope{{Namespaces: []string{"stays"}}}, nil); err != nil {
				b.Fatal(err)
			}
			scope := namespacesNamed(n)
			b.ReportAllocs()
			for b.Loop() {
				h, err := c.handle([]Scope{scope}, nil)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				var lists store.Batch
				for _, w := range h.holds {
					obj := fixture.NewThing(Key{Namespace: w.scope.Namespace, Name: "a"}, types.UID(w.scope.Namespace), 5, "")
					lists.Deltas = append(lists.Deltas, store.Delta{Type: store.Added, Key: KeyOf(obj), Scope: w.id, UID: obj.GetUID(), Version: 5, Object: obj})
				}
				c.store(lists, false, func() ([]store.Change, error) { return c.indexer.Apply(lists) })
				b.StartTimer()
				c.release(h)
			}
			stop()
			<-done
		})
	}
}
