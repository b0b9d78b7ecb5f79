// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/kit"
)

// replicas is changes with two processes of one program, without leader election.
func replicas(w *kit.World) {
	w.RunAs("left", setUpCopier)
	w.RunAs("right", setUpCopier)
	changeThings(w)
}

func TestKit_SwarmLeavesReplicasWhole(t *testing.T) {
	kit.Test(t, kit.Config{Seeds: 6}, replicas)
}

func TestKit_OneSeedOfReplicasHasOneHistory_K1(t *testing.T) {
	for seed := range uint64(4) {
		first, second := kit.Run(t, kit.Config{}, seed, replicas), kit.Run(t, kit.Config{}, seed, replicas)
		sound(t, first)
		if how, _ := first.Differs(second); how != "" {
			t.Errorf("seed %#x has two histories: %s", seed, how)
		}
	}
}

// Faults of one process do not affect the other.
func TestKit_FaultsAreOfOneProcess(t *testing.T) {
	plan := kit.Plan{kit.Crash(2 * time.Second).In("right").At(3 * time.Second), kit.Pause(4 * time.Second).In("left").At(8 * time.Second)}
	h := kit.Run(t, kit.Config{Faults: plan}, 5, func(w *kit.World) {
		w.RunAs("left", setUpCopier)
		w.RunAs("right", setUpCopier)
		w.Settled(copied(w))
		w.Sleep(4 * time.Second)
		w.Create(configMap("while-right-is-down", nil))
		w.Sleep(5 * time.Second)
		w.Create(configMap("while-left-stands-still", nil))
		w.Sleep(time.Second)
		w.Do(kit.Crash(time.Second).In("left"))
	})
	sound(t, h)
	var lives, copies []string
	for _, e := range h.Events {
		switch {
		case e.What == kit.Started || e.What == kit.Crashed:
			lives = append(lives, e.What+" "+e.Who)
		case e.What == kit.Changed && e.Name == "created" && strings.Contains(e.Key, prefix):
			copies = append(copies, e.Key+" by "+e.Who)
		}
	}
	if got, want := strings.Join(lives, ", "), "started left-1, started right-1, crashed right-1, started right-2, crashed left-1, started left-2"; got != want {
		t.Errorf("the lives are %s, want %s", got, want)
	}
	want := "default/" + prefix + "while-right-is-down by left-1, default/" + prefix + "while-left-stands-still by right-2"
	if got := strings.Join(copies, ", "); got != want {
		t.Errorf("the copies are %s, want %s: each is made by the process that runs", got, want)
	}
}

// Pending faults of any process are dropped when the faults end.
func TestKit_FaultsOfAllProcessesEnd_K3(t *testing.T) {
	plan := kit.Plan{kit.Panic().In("left").At(9 * time.Second), kit.Panic().In("right").At(9 * time.Second)}
	h := kit.Run(t, kit.Config{Faults: plan, FaultPhase: 10 * time.Second}, 5, func(w *kit.World) {
		w.RunAs("left", setUpCopier)
		w.RunAs("right", setUpCopier)
		w.Settled(copied(w))
		w.Sleep(12 * time.Second)
		w.Create(configMap("m", nil))
	})
	sound(t, h)
	begun := map[string]bool{}
	for _, e := range h.Events {
		begun[e.Who] = begun[e.Who] || e.What == kit.Begun
		if e.What == kit.Ended && e.Name == "panic" {
			t.Errorf("a fault after the faults have ended: %s", e)
		}
	}
	if !begun["left-1"] || !begun["right-1"] {
		t.Error("a process has reconciled nothing: it is not what it was tested for")
	}
}

// A run that cannot be repeated exactly says so wherever it prints its seed.
func TestKit_InexactRunsSaySo_K5(t *testing.T) {
	const why = "the moon has a hand in it"
	if os.Getenv(planted) == why {
		kit.Test(t, kit.Config{Seeds: 1, Inexact: why, Faults: kit.Plan{}}, func(w *kit.World) {
			w.Run(setUpCopier)
			w.Errorf("enough")
		})
		return
	}
	out := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKit_InexactRunsSaySo_K5$", "-sim.out="+out)
	cmd.Env = append(os.Environ(), planted+"="+why)
	text, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(text), "replay: go test -run '^TestKit_InexactRunsSaySo_K5$' -sim.seed=0x1\n") || !strings.Contains(string(text), "may differ, run it more than once: "+why) {
		t.Errorf("the failure does not say that its line is inexact: %s", text)
	}
	page, err := os.ReadFile(out + "/TestKit_InexactRunsSaySo_K5-seed-0x1.html")
	if err != nil || !strings.Contains(string(page), "run it more than once: "+why) {
		t.Errorf("the page does not say that its line is inexact: %v", err)
	}
}

// The clock of one process is fast, then slow, and correct after the faults; other
// clocks are unaffected.
func TestKit_ClockOfOneProcessIsStepped_K3(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]string{}
	watch := func(name string) func(*manager.Manager) error {
		return func(mgr *manager.Manager) error {
			return addCopier(mgr, func(copier) reconcile.Func[reconcile.Key] {
				return func(ctx context.Context, _ reconcile.Key) (reconcile.Result, error) {
					mu.Lock()
					defer mu.Unlock()
					seen[name] += " " + kit.Now(ctx).Sub(time.Now().Round(0)).String()
					return reconcile.Result{}, nil
				}
			})
		}
	}
	plan := kit.Plan{kit.ClockStep(time.Hour).In("left").At(2 * time.Second), kit.ClockStep(-time.Minute).In("left").At(4 * time.Second)}
	h := kit.Run(t, kit.Config{Faults: plan, FaultPhase: 6 * time.Second}, 3, func(w *kit.World) {
		w.RunAs("left", watch("left"))
		w.RunAs("right", watch("right"))
		for _, name := range []string{"a", "b", "c", "d"} {
			w.Sleep(time.Second)
			w.Create(configMap(name, nil))
			w.Sleep(time.Second)
		}
	})
	sound(t, h)
	if seen["left"] != " 0s 1h0m0s -1m0s 0s" || seen["right"] != " 0s 0s 0s 0s" {
		t.Errorf("the clocks are wrong by %s, want 0s 1h0m0s -1m0s 0s and always 0s", seen)
	}
}

// A paused process neither reads what was on its way nor does anything else, and then
// continues.
func TestKit_PausedProcessDoesNothing(t *testing.T) {
	plan := kit.Plan{kit.Delay(3*time.Second, 2*time.Second).At(3 * time.Second), kit.Pause(5 * time.Second).At(5 * time.Second)}
	h := kit.Run(t, kit.Config{Faults: plan}, 3, func(w *kit.World) {
		w.Run(setUpCopier)
		w.Settled(copied(w))
		w.Sleep(3500 * time.Millisecond)
		w.Create(configMap("on-its-way", nil)) // received at 6.5 s
		w.Sleep(4 * time.Second)
		w.Create(configMap("meanwhile", nil))
	})
	sound(t, h)
	sent := false
	for _, e := range h.Events {
		sent = sent || e.What == kit.Sent && e.Key == "default/on-its-way" && e.At < 5*time.Second
		switch e.What {
		case kit.Stored, kit.Delivered, kit.Enqueued, kit.Begun, kit.Ended:
			if e.At > 5*time.Second+time.Millisecond && e.At < 10*time.Second {
				t.Errorf("a process that stands still does something: %s", e)
			}
		}
	}
	if !sent {
		t.Error("nothing was on its way: it is not what it was tested for")
	}
}
