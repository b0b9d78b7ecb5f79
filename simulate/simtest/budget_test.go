// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simtest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/compact"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/simulate/simtest"
)

const ofEach = 300

// filled returns that many objects of two kinds, of the same size.
func filled() (objects []runtime.Object) {
	objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "full"}})
	for i := range ofEach {
		meta := metav1.ObjectMeta{Namespace: "full", Name: fmt.Sprintf("n%03d", i)}
		text := strings.Repeat(fmt.Sprintf("%03d ", i), 2000)
		objects = append(objects, &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"text": text}})
		objects = append(objects, &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"text": []byte(text)}})
	}
	return objects
}

// started returns a running factory with informers of both kinds in that
// namespace.
func started(t *testing.T, cfg *rest.Config, opts informer.Options) *informer.SharedInformerFactory {
	t.Helper()
	opts.Namespaces = []string{"full"}
	f, err := informer.NewSharedInformerFactory(cfg, clientscheme.Scheme, opts)
	if err != nil {
		t.Fatal(err)
	}
	informer.For[*corev1.ConfigMap](f)
	informer.For[*corev1.Secret](f)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return f
}

func stateOf(f *informer.SharedInformerFactory, kind string) state.Informer {
	for _, s := range f.Snapshot() {
		if s.Kind.Kind == kind {
			return s
		}
	}
	return state.Informer{}
}

// until waits until the two kinds are in a state, and fails with what they are in.
func until(t *testing.T, f *informer.SharedInformerFactory, what string, is func(maps, secrets state.Informer) bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(time.Minute); ; {
		maps, secrets := stateOf(f, "ConfigMap"), stateOf(f, "Secret")
		if is(maps, secrets) {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("not %s: %v (%d bytes), %v (%d bytes)", what, maps.Scopes, maps.Heap, secrets.Scopes, secrets.Heap)
		}
	}
}

// Of two kinds that do not fit together, one is cached and the other says why it
// is not, until there is room.
func TestFactory_WhatDoesNotFitSaysSo_D6(t *testing.T) {
	for _, paged := range []bool{false, true} {
		t.Run(fmt.Sprintf("paged=%v", paged), func(t *testing.T) {
			server := simtest.New(t, clientscheme.Scheme, filled()...)
			opts := informer.Options{MemoryBudget: -1, PagedLists: paged, PageSize: 50}
			free := started(t, server.Config, opts)
			synced := func(maps, secrets state.Informer) bool { return maps.Synced && secrets.Synced }
			until(t, free, "synced", synced)
			one := max(stateOf(free, "ConfigMap").Heap, stateOf(free, "Secret").Heap)
			if one < ofEach*8000 {
				t.Fatalf("%d bytes for %d objects of 8000", one, ofEach)
			}

			if m := free.Memory(); len(m.Kinds) != 2 || m.Kinds[0].Heap != stateOf(free, m.Kinds[0].Kind).Heap || m.Kinds[1].Objects != ofEach || m.Budget != 0 {
				t.Errorf("got %+v, want what the snapshots say, and no budget", m)
			}

			opts.MemoryBudget = one * 3 / 2
			f := started(t, server.Config, opts)
			until(t, f, "one synced and the other told apart", func(maps, secrets state.Informer) bool {
				for _, s := range []state.Informer{maps, secrets} {
					if !s.Synced && len(s.Scopes) == 1 && s.Scopes[0].State == state.DoesNotFit && !s.Scopes[0].NextTry.IsZero() {
						return maps.Synced != secrets.Synced
					}
				}
				return false
			})
			if m := f.Memory(); m.Budget != opts.MemoryBudget || !strings.Contains(m.String(), "budget") {
				t.Errorf("got %+v (%s), want the budget", m, m)
			}
			fits, not := stateOf(f, "ConfigMap"), stateOf(f, "Secret")
			if not.Synced {
				fits, not = not, fits
			}
			if fits.Objects != ofEach || not.Objects != 0 {
				t.Errorf("%d objects of the kind that fits and %d of the other, want all and none", fits.Objects, not.Objects)
			}
			text := not.Scopes[0].String()
			for _, want := range []string{"DoesNotFit", "needs ", "budget is", "MemoryBudget", "next try"} {
				if !strings.Contains(text, want) {
					t.Errorf("%q does not say %q", text, want)
				}
			}
			if total := fits.Heap + not.Heap; total > opts.MemoryBudget {
				t.Errorf("%d bytes are cached, the budget is %d", total, opts.MemoryBudget)
			}
			// What is cached stays current, and its end makes room.
			resource := schema.GroupResource{Resource: strings.ToLower(fits.Kind.Kind) + "s"}
			for i := range ofEach {
				if err := server.Remove(resource, types.NamespacedName{Namespace: "full", Name: fmt.Sprintf("n%03d", i)}); err != nil {
					t.Fatal(err)
				}
			}
			until(t, f, "synced", synced)
			if got := stateOf(f, not.Kind.Kind); got.Objects != ofEach {
				t.Errorf("%d objects of the other kind, want all", got.Objects)
			}
		})
	}
}

// Two kinds whose lists do not fit beside each other while they are read, but
// whose objects fit, are both cached.
func TestFactory_ListsTakeTurnsUnderTheBudget_D6(t *testing.T) {
	server := simtest.New(t, clientscheme.Scheme, filled()...)
	free := started(t, server.Config, informer.Options{MemoryBudget: -1})
	both := func(maps, secrets state.Informer) bool { return maps.Synced && secrets.Synced }
	until(t, free, "synced", both)
	need := stateOf(free, "ConfigMap").Heap + stateOf(free, "Secret").Heap
	f := started(t, server.Config, informer.Options{MemoryBudget: need + need/20, PagedLists: true, PageSize: 20})
	until(t, f, "synced", both)
	if got := stateOf(f, "ConfigMap").Heap + stateOf(f, "Secret").Heap; got > need+need/20 {
		t.Errorf("%d bytes are cached, more than the budget", got)
	}
}

// whenFull packs what does not fit.
var whenFull = compact.New(compact.Options{WhenFull: true})

// samePacked fails unless the informers have the objects of filled, and returns which kinds are
// packed.
func samePacked(t *testing.T, f *informer.SharedInformerFactory) (packed string) {
	t.Helper()
	maps, secrets := informer.For[*corev1.ConfigMap](f).Lister(), informer.For[*corev1.Secret](f).Lister()
	for _, obj := range filled()[1:] {
		var got string
		var err error
		key := kube.Key{Namespace: "full", Name: obj.(metav1.Object).GetName()}
		want := ""
		switch obj := obj.(type) {
		case *corev1.ConfigMap:
			want = obj.Data["text"]
			var is *corev1.ConfigMap
			if is, err = maps.Get(key); err == nil {
				got = is.Data["text"]
			}
		case *corev1.Secret:
			want = string(obj.Data["text"])
			var is *corev1.Secret
			if is, err = secrets.Get(key); err == nil {
				got = string(is.Data["text"])
			}
		}
		if err != nil || got != want {
			t.Fatalf("%T %s: got %d bytes, %v; want its text", obj, key, len(got), err)
		}
	}
	for _, s := range f.Snapshot() {
		if s.PackedBecause != "" {
			packed += s.Kind.Kind
		}
		if (s.Packed > 0) != (s.PackedBecause != "") {
			t.Errorf("%s: %d bytes are packed because of %q", s.Kind.Kind, s.Packed, s.PackedBecause)
		}
	}
	return packed
}

// Of two kinds that do not fit together, one is packed, and nothing is refused.
func TestFactory_PacksWhatDoesNotFit_D6(t *testing.T) {
	for _, paged := range []bool{false, true} {
		t.Run(fmt.Sprintf("paged=%v", paged), func(t *testing.T) {
			server := simtest.New(t, clientscheme.Scheme, filled()...)
			opts := informer.Options{MemoryBudget: 4_500_000, PagedLists: paged, PageSize: 50, Compact: whenFull}
			f := started(t, server.Config, opts)
			until(t, f, "synced", func(maps, secrets state.Informer) bool { return maps.Synced && secrets.Synced })
			if packed := samePacked(t, f); packed != "ConfigMap" && packed != "Secret" {
				t.Errorf("packed are %q, want one of the two kinds", packed)
			}
			if total := stateOf(f, "ConfigMap").Heap + stateOf(f, "Secret").Heap; total > opts.MemoryBudget {
				t.Errorf("%d bytes are cached, the budget is %d", total, opts.MemoryBudget)
			}
		})
	}
}

// What does not fit even if it is packed is refused, as without packing.
func TestFactory_RefusesWhatDoesNotFitPacked_D6(t *testing.T) {
	server := simtest.New(t, clientscheme.Scheme, filled()...)
	f := started(t, server.Config, informer.Options{MemoryBudget: 2000, PagedLists: true, PageSize: 50, Compact: whenFull})
	until(t, f, "refused", func(maps, secrets state.Informer) bool {
		for _, s := range []state.Informer{maps, secrets} {
			if s.Synced || s.PackedBecause == "" || len(s.Scopes) != 1 || s.Scopes[0].State != state.DoesNotFit {
				return false
			}
		}
		return true
	})
}

// What grows beyond the budget is packed, first the kind that is read less.
func TestFactory_PacksWhatHasGrown_D6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := simtest.New(t, clientscheme.Scheme)
		f := started(t, server.Config, informer.Options{MemoryBudget: 4_500_000, Compact: whenFull})
		until(t, f, "synced", func(maps, secrets state.Informer) bool { return maps.Synced && secrets.Synced })
		for _, obj := range filled() {
			if _, err := server.Put(obj); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		secrets := informer.For[*corev1.Secret](f).Lister()
		for range 100 {
			for i := range ofEach {
				if _, err := secrets.Get(kube.Key{Namespace: "full", Name: fmt.Sprintf("n%03d", i)}); err != nil {
					t.Fatal(err)
				}
			}
		}
		until(t, f, "packed", func(maps, _ state.Informer) bool { return maps.Packed > 0 })
		if packed := samePacked(t, f); packed != "ConfigMap" {
			t.Errorf("packed are %q, want the ConfigMaps, of which none was read", packed)
		}
	})
}
