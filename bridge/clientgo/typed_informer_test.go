// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/informer"
)

// client-go's type-safe wrapper works on the adapter: handlers, indexers added
// during the run, and deletions with an unknown final state.
func TestInformer_TypeSafeWrapperOfClientGoStandsOnIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, configMap("a", "1"), configMap("b", "2"))
		i := cache.NewTypedSharedIndexInformer[cmap](adapt(s, informer.Options{}))
		l := &log{}
		r, err := i.AddTypedEventHandler(cache.TypedResourceEventHandlerDetailedFuncs[cmap]{
			AddFunc:    func(obj cmap, initial bool) { l.OnAdd(obj, initial) },
			UpdateFunc: func(before, after cmap) { l.OnUpdate(before, after) },
			DeleteFunc: func(d cache.DeletedObject[cmap]) {
				if d.FinalStateUnknown != nil {
					l.OnDelete(*d.FinalStateUnknown)
					return
				}
				l.OnDelete(d.OptionalObj)
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		run(t, i)
		synctest.Wait()
		if err := i.AddTypedIndexers(cache.TypedIndexers[cmap]{"v": func(obj cmap) ([]string, error) { return []string{obj.Data["v"]}, nil }}); err != nil {
			t.Fatal(err)
		}
		s.Modify(configMap("a", "2"))
		synctest.Wait()
		found, err := i.GetTypedIndexer().ByTypedIndex("v", "2")
		if err != nil || len(found) != 2 {
			t.Errorf("the index has %v and %v under 2, want a and b", found, err)
		}
		if len(l.take()) != 3 || !r.HasSynced() {
			t.Error("the handler was not told of a, b and the update of a")
		}
		s.Delete(configMap("a", "2"))
		synctest.Wait()
		s.DeleteDropWatch(configMap("b", "2"))
		s.ResetWatch()
		time.Sleep(time.Minute)
		synctest.Wait()
		expect(t, "deletions", l.take(), "delete a 2", "delete unseen prod/b 2")
		if err := i.RemoveEventHandler(r); err != nil {
			t.Error(err)
		}
	})
}

// The last transform and the last watch error handler win, also nil.
func TestInformer_LastSetterCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, configMap("a", "1"))
		i := adapt(s, informer.Options{})
		l := &log{}
		for _, err := range []error{
			i.SetTransform(func(any) (any, error) { return nil, errors.New("refused") }),
			i.SetTransform(nil),
			i.SetWatchErrorHandler(func(*cache.Reflector, error) { l.add("first") }),
			i.SetWatchErrorHandler(func(*cache.Reflector, error) { l.add("second") }),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		s.ListError = errors.New("no list yet")
		run(t, i)
		synctest.Wait()
		expect(t, "watch error handlers", l.take(), "second")
		s.ListError = nil
		s.Add(configMap("b", "2")) // takes the lock under which the next list reads ListError
		time.Sleep(time.Minute)
		synctest.Wait()
		expect(t, "without a transform", slices.Sorted(slices.Values(i.GetStore().ListKeys())), "prod/a", "prod/b")
	})
}
