// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/informertest"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
)

// moody is a transform that modifies and then refuses objects while enabled,
// and counts its calls.
type moody struct {
	refuses, panics atomic.Bool
	calls           atomic.Int64
}

func (m *moody) transform(cm cmap) (cmap, error) {
	m.calls.Add(1)
	value := cm.Data["v"]
	if m.refuses.Load() {
		cm.Data["v"] = "spoiled"
		if m.panics.Load() {
			panic("a fault of the transform")
		}
		return nil, errors.New("not now")
	}
	cm.Data = map[string]string{"v": value}
	return cm, nil
}

// refusing runs an informer on s with the transform m until the test ends.
func refusing(t *testing.T, s server, m *moody) *informer.SharedInformer[cmap] {
	t.Helper()
	i := informer.New[cmap](s, configMaps, informer.Options{PagedLists: true, DetectMutations: informertest.NoMutations(t.Error)})
	must(t, i.SetTransform(m.transform))
	must(t, i.AddIndex("v", func(cm cmap) []string { return []string{cm.Data["v"]} }))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- i.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	<-i.Synced()
	return i
}

func keyOf(name string) kube.Key { return kube.Key{Namespace: "ns", Name: name} }

// listedAs returns the objects in lists.
func listedAs(i *informer.SharedInformer[cmap]) (all []string) {
	for cm := range i.Lister().All() {
		all = append(all, cm.Name+"="+cm.Data["v"])
	}
	slices.Sort(all)
	return all
}

// The last accepted state stays in lists, marked, and the newest follows
// without another version.
func TestInformer_TransformThatFailsOnceHidesNothing_B9(t *testing.T) {
	for name, panics := range map[string]bool{"error": false, "panic": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, m := newServer(), &moody{}
				m.panics.Store(panics)
				first := s.put("a", "1")
				i := refusing(t, s, m)
				var plain, asking log
				join(t, i, plain.handle, informer.HandlerOptions{})
				join(t, i, asking.handle, informer.HandlerOptions{Undecodable: true})
				synctest.Wait()
				plain.take()
				asking.take()

				m.refuses.Store(true)
				s.put("a", "2")
				s.put("b", "1")
				synctest.Wait()
				expect(t, "lists while the transform refuses", listedAs(i), "a=1")
				if held, err := i.Lister().List(informer.QueryOptions{Index: "v", IndexValue: "1"}); err != nil || len(held) != 1 {
					t.Errorf("the index has %v and %v, want the last good state of a", held, err)
				}
				if values, err := i.Lister().IndexValues("v"); err != nil || !slices.Equal(values, []string{"1"}) {
					t.Errorf("the index has values %v and %v, want that of the last good state", values, err)
				}
				var u *kube.UndecodableError
				got, err := i.Lister().Get(keyOf("a"))
				if !errors.As(err, &u) || !u.Refused || u.Last != kube.ParseVersion(first.ResourceVersion) || got == nil || got.Data["v"] != "1" {
					t.Errorf("Get of a = %v and %v, want the last good state with an *UndecodableError that names its version", got, err)
				}
				if got, err := i.Lister().Get(keyOf("b")); !errors.As(err, &u) || !u.Refused || u.Last != 0 || got != nil {
					t.Errorf("Get of b = %v and %v, want an *UndecodableError and no object: none was ever accepted", got, err)
				}
				if snap := i.Snapshot(); snap.Undecodable != 2 || snap.Scopes[0].State != state.DecodingErrors {
					t.Errorf("%d undecodable in state %s, want 2 in DecodingErrors", snap.Undecodable, snap.Scopes[0].State)
				}
				for u := range i.Lister().Undecodable() {
					if u.Metadata == nil || u.Metadata.UID != u.UID || kube.ParseVersion(u.Metadata.ResourceVersion) != u.Version {
						t.Errorf("%s is listed with metadata %+v, want that of the version that is refused", u.Key, u.Metadata)
					}
				}
				expect(t, "a handler while the transform refuses", plain.take())
				expect(t, "one that asks", asking.take(), "undecodable a", "undecodable b")

				lists := s.Lists()
				m.refuses.Store(false)
				time.Sleep(10 * time.Second)
				expect(t, "lists after it has accepted", listedAs(i), "a=2", "b=1")
				if got, err := i.Lister().Get(keyOf("a")); err != nil || got.Data["v"] != "2" {
					t.Errorf("Get of a = %v and %v, want version 2 as the server has it, not as the transform has spoiled it", got, err)
				}
				if snap := i.Snapshot(); snap.Undecodable != 0 || snap.Scopes[0].State != state.Live {
					t.Errorf("%d undecodable in state %s, want none and Live", snap.Undecodable, snap.Scopes[0].State)
				}
				expect(t, "a handler after it has accepted", plain.take(), "updated a 1>2", "added b 1")
				if told := asking.take(); len(told) != 2 {
					t.Errorf("a handler that asks is told %q, want of both", told)
				}
				if s.Lists() != lists {
					t.Error("the server was asked for a list; a transform is this process's own matter")
				}
			})
		})
	}
}

// A version that arrives while an object is refused is not undone by a later
// acceptance.
func TestInformer_LateAcceptanceTakesNothingBack_B9(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := newServer(), &moody{}
		for _, name := range []string{"newer", "gone", "other"} {
			s.put(name, "1")
		}
		i := refusing(t, s, m)
		m.refuses.Store(true)
		for _, name := range []string{"newer", "gone", "other"} {
			s.put(name, "2")
		}
		synctest.Wait()
		m.refuses.Store(false)
		s.put("newer", "3")
		s.remove("gone")
		s.remove("other")
		s.put("other", "another object")
		time.Sleep(5 * time.Minute)
		expect(t, "lists", listedAs(i), "newer=3", "other=another object")
		if _, err := i.Lister().Get(keyOf("gone")); !apierrors.IsNotFound(err) {
			t.Errorf("Get of what was deleted: %v, want NotFound", err)
		}
	})
}

// The number of retries is bounded.
func TestInformer_RefusedObjectIsTriedAgainWithBackoff_B9(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := newServer(), &moody{}
		i := refusing(t, s, m)
		m.refuses.Store(true)
		s.put("a", "1")
		time.Sleep(10 * time.Second)
		if n := m.calls.Load(); n < 3 || n > 5 {
			t.Errorf("%d tries in the first ten seconds, want some 4", n)
		}
		time.Sleep(time.Hour)
		before := m.calls.Load()
		time.Sleep(time.Hour)
		if n := m.calls.Load() - before; n < 11 || n > 13 {
			t.Errorf("%d tries in an hour, want 12: one in five minutes", n)
		}
		s.remove("a")
		time.Sleep(time.Hour)
		before = m.calls.Load()
		time.Sleep(time.Hour)
		if n := m.calls.Load() - before; n != 0 {
			t.Errorf("%d tries in an hour for an object that is gone", n)
		}
		if got := listedAs(i); len(got) != 0 {
			t.Errorf("lists have %q", got)
		}
	})
}

// An own write that the transform refuses is reported.
func TestInformer_OwnWriteThatTheTransformRefuses_B9(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := newServer(), &moody{}
		s.put("a", "1")
		i := refusing(t, s, m)
		s.Hold()
		m.refuses.Store(true)
		own := s.put("a", "2")
		i.Observe(kube.Written{Kind: configMaps, Effect: kube.Stored, Key: keyOf("a"), UID: own.UID, Version: kube.ParseVersion(own.ResourceVersion), Object: own})
		var u *kube.UndecodableError
		if got, err := i.Lister().Get(keyOf("a")); !errors.As(err, &u) || !u.Refused || got == nil || got.Data["v"] != "1" {
			t.Errorf("Get = %v and %v, want the state before with an *UndecodableError: it is older than an own write", got, err)
		}
		m.refuses.Store(false)
		time.Sleep(time.Minute)
		if got, err := i.Lister().Get(keyOf("a")); err != nil || got.Data["v"] != "2" || own.Data["v"] != "2" {
			t.Errorf("Get = %v and %v, want what was written, though no watch has brought it", got, err)
		}
		s.Release()
		time.Sleep(time.Second)
		expect(t, "lists when the watch has brought it", listedAs(i), "a=2")
	})
}
