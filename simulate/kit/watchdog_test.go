// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/manager"
)

// runs is a Runnable of one function.
type runs func(ctx context.Context) error

func (runs) Name() string                    { return "task" }
func (f runs) Run(ctx context.Context) error { return f(ctx) }
func setUp(f runs) func(*manager.Manager) error {
	return func(mgr *manager.Manager) error { return mgr.Add(f) }
}

func TestKit_WhatBlocksABubbleOnTheOutsideIsNamed_K12(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	outside := make(chan struct{})
	child := exec.Command("sleep", "600")
	if err := child.Start(); err != nil {
		t.Skipf("no other process can be started here: %v", err)
	}
	var lock sync.Mutex
	free := func() { // ends the hanging goroutines
		_ = listener.Close()
		_ = child.Process.Kill()
		close(outside)
	}
	t.Cleanup(free)
	for name, c := range map[string]struct {
		run          runs
		want, advice string
	}{
		"a real port": {func(context.Context) error {
			if c, err := listener.Accept(); err == nil {
				return c.Close()
			}
			return nil
		}, "accepts connections on a real port", "Open no listener in a simulation"},
		"another process": {func(context.Context) error {
			_ = child.Wait()
			return nil
		}, "waits for another process", "Start no process in a simulation"},
		"a channel from outside": {func(context.Context) error {
			<-outside
			return nil
		}, "made outside of the bubble", "in setup or in the scenario"},
		"a lock over time": {func(ctx context.Context) error {
			lock.Lock()
			defer lock.Unlock()
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			return nil
		}, "waits for a lock", "Hold no lock while waiting"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := Run(t, Config{Faults: Plan{}, patience: time.Second}, 1, func(w *World) {
				w.RunAs("a", setUp(c.run))
				if strings.HasPrefix(name, "a lock") {
					w.RunAs("b", setUp(c.run))
				}
			})
			if len(h.Violations) != 1 {
				t.Fatalf("the run violates %v, want one violation that says what blocks it", h.Violations)
			}
			for _, want := range []string{c.want, c.advice, "watchdog_test.go"} {
				if v := h.Violations[0]; v.Invariant != "V12" || !strings.Contains(v.Text, want) {
					t.Errorf("the run is ended with %s, want V12 with %q", v, want)
				}
			}
		})
	}
}

// A long run in which time passes is not ended.
func TestKit_ARunThatGoesOnIsLeftAlone_K12(t *testing.T) {
	h := Run(t, Config{Faults: Plan{}, patience: 50 * time.Millisecond}, 1, func(w *World) {
		w.Run(setUp(func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		}))
		for range 3000 {
			w.Sleep(time.Millisecond)
		}
	})
	for _, v := range h.Violations {
		t.Error(v)
	}
}
