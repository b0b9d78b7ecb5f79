// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package clientgo_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/bridge/clientgo"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/state"
)

// updates are made while the handler blocks.
const updates = 5000

// stalled updates an object updates times while its handler blocks in its first
// call. It returns what the handler received, what its own logger received, and
// how full the backlog was.
func stalled(t *testing.T, opts clientgo.Options) (told, logged []string, full state.Handler) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		log1 := funcr.New(func(_, args string) {
			mu.Lock()
			defer mu.Unlock()
			logged = append(logged, args)
		}, funcr.Options{})
		s := newServer(t, configMap("a", "0"))
		flyball := informer.New(clientgo.NewListerWatcher[cmap](s), configMaps, informer.Options{})
		i := clientgo.NewSharedIndexInformer(flyball, opts)
		l, hold := &log{}, make(chan struct{})
		first := sync.OnceFunc(func() { <-hold })
		join(t, i, cache.ResourceEventHandlerDetailedFuncs{
			AddFunc:    func(obj any, initial bool) { first(); l.OnAdd(obj, initial) },
			UpdateFunc: l.OnUpdate,
		}, cache.HandlerOptions{Logger: &log1})
		run(t, i)
		synctest.Wait()
		for n := range updates {
			s.Modify(configMap("a", strconv.Itoa(n+1)))
			if n%50 == 0 {
				synctest.Wait() // client-go's fake drops what exceeds its channel
			}
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		full = flyball.Snapshot().Handlers[0]
		close(hold)
		synctest.Wait()
		told = l.take()
		if left := flyball.Snapshot().Handlers[0]; left.Backlog != 0 || left.BacklogBytes != 0 {
			t.Errorf("the handler has been told of all, and %d events of %d bytes wait", left.Backlog, left.BacklogBytes)
		}
	})
	return told, logged, full
}

func TestInformer_EachEventIsGivenToAHandlerThatStalled_G10(t *testing.T) {
	told, _, full := stalled(t, clientgo.Options{})
	if len(told) != updates+1 {
		t.Fatalf("told of %d events, want %d: each one", len(told), updates+1)
	}
	for n, line := range told[1:] {
		if want := fmt.Sprintf("update a %d>%d", n, n+1); line != want {
			t.Fatalf("event %d is %q, want %q", n+1, line, want)
		}
	}
	if full.Merged != 0 || full.Backlog != updates || full.BacklogBytes < updates*4096 {
		t.Errorf("the backlog was %d events of %d bytes, %d merged; want %d events with the states that they alone hold", full.Backlog, full.BacklogBytes, full.Merged, updates)
	}
}

func TestInformer_BacklogOfAHandlerIsBoundedAndReported_G10(t *testing.T) {
	const bound = 1 << 20
	told, logged, full := stalled(t, clientgo.Options{BacklogBytes: bound})
	if full.BacklogBytes > bound+8192 || full.Merged == 0 || full.Backlog+int(full.Merged) != updates {
		t.Errorf("the backlog was %d events of %d bytes, %d merged; want about %d bytes, and each update waiting or merged", full.Backlog, full.BacklogBytes, full.Merged, bound)
	}
	last := told[len(told)-1]
	if !strings.HasSuffix(last, ">"+strconv.Itoa(updates)) {
		t.Errorf("the last event is %q, want the present state", last)
	}
	before := "0"
	for _, line := range told[1:] {
		states, _ := strings.CutPrefix(line, "update a ")
		was, is, _ := strings.Cut(states, ">")
		if was != before {
			t.Fatalf("%q follows the state %s: a merged update does not begin where the one before ended", line, before)
		}
		before = is
	}
	if got := strings.Count(strings.Join(logged, "\n"), "reached its bound"); got != 1 {
		t.Errorf("the handler's logger was told %d times that updates merge, want once in these seconds:\n%s", got, strings.Join(logged, "\n"))
	}
}

// hurried updates an object faster than the informer stores it, because an
// index function blocks. It returns what handlers received.
func hurried(t *testing.T, opts clientgo.Options) (told []string, after state.Handler) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, configMap("a", "0"))
		flyball := informer.New(clientgo.NewListerWatcher[cmap](s), configMaps, informer.Options{})
		i := clientgo.NewSharedIndexInformer(flyball, opts)
		hold, held := make(chan struct{}), false
		if err := i.AddIndexers(cache.Indexers{"slow": func(obj any) ([]string, error) {
			if obj.(cmap).Data["v"] == "1" && !held {
				held = true
				<-hold
			}
			return nil, nil
		}}); err != nil {
			t.Fatal(err)
		}
		l := &log{}
		join(t, i, l, cache.HandlerOptions{})
		join(t, i, &log{}, cache.HandlerOptions{})
		run(t, i)
		synctest.Wait()
		for n := range updates {
			s.Modify(configMap("a", strconv.Itoa(n+1)))
			if n%50 == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		close(hold)
		synctest.Wait()
		told, after = l.take(), flyball.Snapshot().Handlers[0]
	})
	return told, after
}

func TestInformer_EventsThatComeFasterThanTheyAreStoredAreAllGiven_G15(t *testing.T) {
	told, after := hurried(t, clientgo.Options{})
	if len(told) != updates+1 || after.Merged != 0 {
		t.Fatalf("told of %d events, %d merged; want %d: each one", len(told), after.Merged, updates+1)
	}
	for n, line := range told[1:] {
		if want := fmt.Sprintf("update a %d>%d", n, n+1); line != want {
			t.Fatalf("event %d is %q, want %q", n+1, line, want)
		}
	}
}

func TestInformer_WhatWaitsToBeStoredIsBoundedAndReported_G15(t *testing.T) {
	told, after := hurried(t, clientgo.Options{BacklogBytes: 1 << 20})
	if after.Merged == 0 || len(told)+int(after.Merged) != updates+1 {
		t.Errorf("told of %d events, %d merged; want each update told or counted as merged", len(told), after.Merged)
	}
	if last := told[len(told)-1]; !strings.HasSuffix(last, ">"+strconv.Itoa(updates)) {
		t.Errorf("the last event is %q, want the present state", last)
	}
}
