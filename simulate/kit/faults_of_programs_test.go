// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/kit"
)

// first returns the index of the first matching event at or after from; -1: none.
func first(h *kit.History, from int, is func(kit.Event) bool) int {
	for i := from; i >= 0 && i < len(h.Events); i++ {
		if is(h.Events[i]) {
			return i
		}
	}
	return -1
}

// what matches an event of a process.
func what(what, who string) func(kit.Event) bool {
	return func(e kit.Event) bool { return e.What == what && e.Who == who }
}

// setUpSlow adds a copier whose reconciles take two seconds before they write.
func setUpSlow(mgr *manager.Manager) error {
	return addCopier(mgr, func(c copier) reconcile.Func[reconcile.Key] {
		return func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
			<-time.After(2 * time.Second)
			return c.reconcile(ctx, key)
		}
	})
}

// A process that is asked to stop drains and takes up nothing else; the next life,
// which begins after the given time, handles what came meanwhile.
func TestKit_StoppedProcessDrainsAndIsFollowed(t *testing.T) {
	h := kit.Run(t, kit.Config{Faults: kit.Plan{}}, 3, func(w *kit.World) {
		w.Run(setUpSlow)
		w.Settled(copied(w))
		w.Sleep(3 * time.Second)
		w.Create(configMap("begun", nil))
		w.Sleep(time.Second)
		w.Do(kit.Stop(3 * time.Second))
		w.Sleep(500 * time.Millisecond)
		w.Create(configMap("meanwhile", nil))
	})
	sound(t, h)
	asked := first(h, 0, func(e kit.Event) bool { return e.What == kit.Fault })
	exited := first(h, asked, what(kit.Exited, "manager-1"))
	started := first(h, exited, what(kit.Started, "manager-2"))
	if asked < 0 || exited < 0 || started < 0 {
		t.Fatalf("asked to stop at event %d, ended at %d and was followed at %d", asked, exited, started)
	}
	if drain := h.Events[exited].At - h.Events[asked].At; drain < 900*time.Millisecond || drain > 2100*time.Millisecond {
		t.Errorf("it ended after %v, want the second that its reconcile went on, and at most another one to close connections", drain)
	}
	if down := h.Events[started].At - h.Events[asked].At; down < 3*time.Second || down > 3*time.Second+10*time.Millisecond {
		t.Errorf("the next life began %v after the stop, want 3s", down)
	}
	if text := h.Events[exited].Text; text != "" {
		t.Errorf("its manager returned %q, want nil", text)
	}
	var copies []string
	for i, e := range h.Events {
		switch {
		case e.What == kit.Changed && e.Name == "created" && strings.Contains(e.Key, prefix):
			copies = append(copies, e.Key+" by "+e.Who)
		case e.What == kit.Begun && i > asked && e.Who == "manager-1":
			t.Errorf("who stops takes up another key: %s", e)
		case e.What == kit.Crashed:
			t.Errorf("who stops has crashed: %s", e)
		}
	}
	want := fmt.Sprintf("default/%sbegun by manager-1, default/%[1]smeanwhile by manager-2", prefix)
	if got := strings.Join(copies, ", "); got != want {
		t.Errorf("the copies are %s, want %s", got, want)
	}
}

// A leader that is asked to stop releases the lease, so that another need not wait for
// its expiry.
func TestKit_StoppedLeaderGivesTheLeaseBack(t *testing.T) {
	cfg := elected(kit.Plan{})
	cfg.FaultPhase = time.Minute
	h := kit.Run(t, cfg, 3, func(w *kit.World) {
		w.RunAs("left", setUpCopier)
		w.Sleep(3 * time.Second)
		w.RunAs("right", setUpCopier)
		w.Settled(copied(w))
		w.Sleep(3 * time.Second)
		w.Do(kit.Stop(30 * time.Second).In("left"))
		w.Create(configMap("m", nil))
	})
	sound(t, h)
	if got := strings.Join(terms(h), ", "); got != "left-1, right-1" {
		t.Errorf("the lease was had by %s, want left-1 and then right-1", got)
	}
	exited := first(h, 0, what(kit.Exited, "left-1"))
	led := first(h, exited, func(e kit.Event) bool { return e.What == kit.Changed && e.Holder != "" && e.Who == "right-1" })
	if exited < 0 || led < 0 || h.Events[led].At-h.Events[exited].At > 4*time.Second {
		t.Errorf("left-1 ended at event %d and right-1 led at %d, want it to within four seconds and not a whole lease", exited, led)
	}
}

// setUpBusy adds a copier whose first life leaks a goroutine.
func setUpBusy() func(*manager.Manager) error {
	lives := 0
	return func(mgr *manager.Manager) error {
		lives++
		first := lives == 1
		return addCopier(mgr, func(c copier) reconcile.Func[reconcile.Key] {
			return func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
				if key.Name == "m" && first {
					go func() {
						<-time.After(5 * time.Second)
						logr.FromContextOrDiscard(ctx).Info("late")
					}()
				}
				return c.reconcile(ctx, key)
			}
		})
	}
}

// A stop is like any end: nothing keeps running, and nothing sends requests afterwards.
func TestKit_StopThatLeavesSomethingBehindIsFound(t *testing.T) {
	play := func(setup func(*manager.Manager) error) *kit.History {
		return kit.Run(t, kit.Config{Faults: kit.Plan{kit.Stop(time.Second).At(3 * time.Second)}}, 1, func(w *kit.World) {
			w.Run(setup)
			w.Create(configMap("m", nil))
		})
	}
	sound(t, play(setUpCopier))
	finds(t, play(setUpDeaf()), "V11", "was asked to stop, and did not do so cleanly: stop manager: "+manager.ErrStillRunning.Error())
	finds(t, play(setUpBusy()), "V11", "manager-1 has returned from its Run, and then:")
}

// A process that is paused while it stops cannot end in time, and that is no violation.
func TestKit_StoppedProcessMayStandStill(t *testing.T) {
	for _, op := range []kit.Op{kit.Pause(time.Minute), kit.Jump(time.Minute)} {
		h := kit.Run(t, kit.Config{Faults: kit.Plan{kit.Stop(time.Second).At(5 * time.Second), op.At(5100 * time.Millisecond)}, FaultPhase: 2 * time.Minute}, 3, func(w *kit.World) {
			w.Run(setUpSlow)
			w.Settled(copied(w))
			w.Sleep(4 * time.Second)
			w.Create(configMap("m", nil))
		})
		sound(t, h)
		if i := first(h, 0, what(kit.Exited, "manager-1")); i < 0 || !strings.Contains(h.Events[i].Text, manager.ErrStillRunning.Error()) {
			t.Errorf("%s: the process ended in time: it is not what it was tested for", op)
		}
	}
}

// Reconciles that end at the same time, at the end of the grace period, do so in a
// fixed order.
func TestKit_OneSeedOfStopsHasOneHistory_K1(t *testing.T) {
	plan := kit.Plan{kit.Stop(time.Second).Rate(0.4), kit.Hang(10 * time.Minute).Rate(0.3), kit.Stall(3 * time.Second).Rate(0.3), kit.Reject(2, 500).Rate(0.3)}
	for seed := range uint64(2) {
		run := func() *kit.History {
			return kit.Run(t, kit.Config{Faults: plan, FaultPhase: 90 * time.Second}, seed, replicas)
		}
		one := run()
		sound(t, one)
		if how, _ := one.Differs(run()); how != "" {
			t.Errorf("seed %#x has two histories: %s", seed, how)
		}
		if n := lives(one); n < 8 {
			t.Errorf("seed %#x: %d processes ran, want more: it is not what it was tested for", seed, n)
		}
	}
}

// A handler that hangs delays its own events, but neither the store nor anything
// afterwards.
func TestKit_StalledHandlerHearsLater(t *testing.T) {
	h := kit.Run(t, kit.Config{Faults: kit.Plan{kit.Stall(6 * time.Second).At(3 * time.Second)}}, 3, func(w *kit.World) {
		w.Run(setUpCopier)
		w.Settled(copied(w))
		w.Sleep(4 * time.Second)
		m := configMap("m", map[string]string{"v": "0"})
		w.Create(m)
		for _, v := range []string{"1", "2"} {
			w.Sleep(time.Second)
			w.Edit(m, func() { m.Data["v"] = v })
		}
		w.Create(configMap("n", nil))
	})
	sound(t, h)
	const key = "default/m"
	about := func(w string) func(kit.Event) bool {
		return func(e kit.Event) bool { return e.What == w && e.Key == key }
	}
	stored, delivered, begun := first(h, 0, about(kit.Stored)), first(h, 0, about(kit.Delivered)), first(h, 0, about(kit.Begun))
	if stored < 0 || delivered < 0 || begun < delivered {
		t.Fatalf("stored at event %d, delivered at %d, reconciled at %d", stored, delivered, begun)
	}
	if wait := h.Events[delivered].At - h.Events[stored].At; wait < 6*time.Second || wait > 6*time.Second+10*time.Millisecond {
		t.Errorf("the handler heard after %v, want 6s", wait)
	}
	stores, calls := 0, 0
	for i, e := range h.Events {
		switch {
		case about(kit.Stored)(e) && i < delivered:
			stores++
		case about(kit.Delivered)(e):
			calls++
		case e.What == kit.Delivered && i < delivered && i > stored:
			t.Errorf("the hanging handler is told of something else: %s", e)
		}
	}
	if stores != 3 || calls != 2 {
		t.Errorf("the store took %d versions meanwhile and the handler was called %d times, want 3, and 2 of which the second is the last state", stores, calls)
	}
}

// A handler that hangs during a Rewind then receives events of objects that no store
// holds any more; that is no violation.
func TestKit_StalledHandlerOutlivesARewind(t *testing.T) {
	plan := kit.Plan{kit.Stall(10*time.Second).OnWrite("ConfigMap", 2), kit.Rewind(3).At(6 * time.Second)}
	h := kit.Run(t, kit.Config{Faults: plan}, 3, func(w *kit.World) {
		w.Run(setUpCopier)
		w.Settled(copied(w))
		w.Sleep(4 * time.Second)
		w.Create(configMap("m", nil))
	})
	sound(t, h)
	if i := first(h, 0, func(e kit.Event) bool { return e.What == kit.Epoch }); i < 0 {
		t.Error("no store followed the server back: it is not what it was tested for")
	}
}
