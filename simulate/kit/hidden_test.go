// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"testing"
	"time"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simulate/kit"
)

func lives(h *kit.History) (n int) {
	for _, e := range h.Events {
		if e.What == kit.Started {
			n++
		}
	}
	return n
}

// An audit finds what a server hides for good; without one the process is restarted
// when the faults end, and not before.
func TestKit_WhatIsHiddenForGoodIsFound_K3(t *testing.T) {
	scenario := func(w *kit.World) {
		w.Run(setUpCopier)
		w.Settled(copied(w))
		m := configMap("m", map[string]string{"v": "0"})
		w.Create(m)
		w.Sleep(5 * time.Second)
		w.Edit(m, func() { m.Data["v"] = "1" }) // the process never receives this change
	}
	plan := kit.Plan{kit.DropEvent().Of("ConfigMap").At(3 * time.Second)}
	h := kit.Run(t, kit.Config{Faults: plan}, 3, scenario)
	sound(t, h)
	if n := lives(h); n != 2 {
		t.Errorf("%d processes ran, want one and another after the faults", n)
	}
	audited := manager.Options{Informers: informer.Options{Audit: time.Minute}}
	h = kit.Run(t, kit.Config{Faults: plan, Manager: audited}, 3, scenario)
	sound(t, h)
	if n := lives(h); n != 1 {
		t.Errorf("%d processes ran, want the one that audits", n)
	}
}

// A Rewind undoes changes of the program, not of the user.
func TestKit_RewindKeepsWhatTheUserDid_K3(t *testing.T) {
	plan := kit.Plan{kit.Rewind(100).At(3 * time.Second), kit.Rewind(100).At(6 * time.Second)}
	h := kit.Run(t, kit.Config{Faults: plan}, 3, func(w *kit.World) {
		w.Run(setUpCopier)
		w.Settled(copied(w))
		w.Create(configMap("m", map[string]string{"v": "0"}))
		w.Sleep(4 * time.Second)
		if !w.Get(configMap("m", nil)) || w.Get(configMap(prefix+"m", nil)) {
			w.Fatalf("the original is gone, or its copy is there")
		}
		w.Create(configMap("n", nil))
	})
	sound(t, h)
	undone := 0
	for _, e := range h.Events {
		if e.What == kit.Changed && e.Quiet {
			undone++
		}
	}
	if undone == 0 || lives(h) != 2 {
		t.Errorf("%d revisions were undone in %d lives: it is not what it was tested for", undone, lives(h))
	}
}
