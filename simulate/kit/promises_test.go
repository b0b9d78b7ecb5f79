// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/kit"
	"github.com/flyball-dev/flyball/source"
)

// sound fails t unless the run violates nothing.
func sound(t *testing.T, h *kit.History) {
	t.Helper()
	for _, v := range h.Violations {
		t.Errorf("seed %#x: %s", h.Seed, v)
	}
}

// finds fails t unless the run violates an invariant with this message.
func finds(t *testing.T, h *kit.History, invariant, says string) {
	t.Helper()
	for _, v := range h.Violations {
		if v.Invariant == invariant && strings.Contains(v.Text, says) {
			return
		}
	}
	t.Errorf("seed %#x violates %v, want %s that says %q", h.Seed, h.Violations, invariant, says)
}

func TestKit_SwarmLeavesTheCopierWhole(t *testing.T) {
	kit.Test(t, kit.Config{Seeds: 30}, changes)
}

func TestKit_OneSeedHasOneHistory_K1(t *testing.T) {
	hashes := map[string]bool{}
	for seed := range uint64(12) {
		first, second := kit.Run(t, kit.Config{}, seed, changes), kit.Run(t, kit.Config{}, seed, changes)
		sound(t, first)
		if how, _ := first.Differs(second); how != "" {
			t.Errorf("seed %#x has two histories: %s", seed, how)
		}
		hashes[first.Hash()] = true
	}
	if len(hashes) != 12 {
		t.Errorf("12 seeds have %d histories; the seed decides too little", len(hashes))
	}
}

// Faults that last beyond the fault phase end with it, even if there were changes
// meanwhile.
func TestKit_FaultsEndWithTheirPhase_K3(t *testing.T) {
	long := time.Hour
	for _, op := range []kit.Op{
		kit.Refuse(long), kit.Partition(long), kit.Delay(time.Minute, long), kit.Lag(long), kit.Slow(time.Minute, long), kit.NoEndBookmark(long), kit.Deny(long),
		kit.ExpireTokens(long), kit.Overload(1e6, 429), kit.Crash(long), kit.Pause(long), kit.Hang(long), kit.Jump(long), kit.ClockStep(long), kit.Corrupt(),
		kit.Stop(long), kit.Stall(long), kit.Reject(1e6, 422), kit.Coalesce(),
	} {
		plan := kit.Plan{op.At(4 * time.Second), kit.Cut().At(3500 * time.Millisecond)}
		h := kit.Run(t, kit.Config{Faults: plan, FaultPhase: 10 * time.Second, Quiesce: 20 * time.Minute}, 7, func(w *kit.World) {
			w.Run(setUpCopier)
			w.Settled(copied(w))
			m := configMap("m", map[string]string{"v": "0"})
			w.Create(m)
			w.Sleep(9 * time.Second)
			w.Edit(m, func() { m.Data = map[string]string{"v": "1"} })
			w.Sleep(3 * time.Second)
			w.Edit(m, func() { m.Data = map[string]string{"v": "2"} })
		})
		sound(t, h)
		fired, healed := 0, false
		for _, e := range h.Events {
			healed = healed || e.What == kit.Healed
			if e.What == kit.Fault {
				fired++
				if healed {
					t.Errorf("%s: a fault after the faults have ended: %s", op, e)
				}
			}
		}
		if fired != 2 {
			t.Errorf("%s: %d faults happened, want 2: it is not what it was tested for", op, fired)
		}
	}
}

// A slow kind is quick again when its time is over, and when the faults end: changes
// made while it was slow are then published, and later ones at once.
func TestKit_SlowKindIsQuickAgain_K3(t *testing.T) {
	for name, cfg := range map[string]kit.Config{
		"its time is over":      {Faults: kit.Plan{kit.Slow(2*time.Second, 5*time.Second).Of("ConfigMap").At(3 * time.Second)}, FaultPhase: time.Minute},
		"the faults have ended": {Faults: kit.Plan{kit.Slow(2*time.Second, time.Hour).Of("ConfigMap").At(3 * time.Second)}, FaultPhase: 8 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			h := kit.Run(t, cfg, 1, func(w *kit.World) {
				w.Run(setUpCopier)
				w.Settled(copied(w))
				m := configMap("m", map[string]string{"v": "0"})
				w.Create(m)
				for _, pause := range []time.Duration{7, 3, 3, 3} {
					w.Sleep(pause * time.Second)
					w.Edit(m, func() { m.Data["v"] += "." })
				}
			})
			sound(t, h)
			follow(t, h, []string{
				`3s fault fault ConfigMap slow`, `7s changed user .* default/m `, `! sent .* default/m `, `8s sent .* default/m `,
				`10s changed user .* default/m `, `10s sent .* default/m `, `13s changed user .* default/m `, `13s sent .* default/m `,
				`16s changed user .* default/m `, `16s sent .* default/m `,
			})
		})
	}
}

// Keys that a debounced source holds back count as unsettled, and the seed determines when
// they are added.
func TestKit_DebouncedKeysComeBeforeTheRest_K4(t *testing.T) {
	setup := func(mgr *manager.Manager) error {
		configMaps := informer.For[*corev1.ConfigMap](mgr.Informers())
		c := reconcile.New("copier", copier{configMaps.Lister(), mgr.Client()}.reconcile, reconcile.Options{Workers: 2, FairBy: reconcile.ByNamespace})
		c.Watch(source.Debounce(source.Kind(configMaps, originals), 20*time.Second, time.Minute))
		return mgr.Add(c)
	}
	for seed := range uint64(6) {
		run := func() *kit.History {
			return kit.Run(t, kit.Config{}, seed, func(w *kit.World) {
				w.Run(setup)
				changeThings(w)
			})
		}
		first := run()
		sound(t, first)
		if how, _ := first.Differs(run()); how != "" {
			t.Errorf("seed %#x has two histories: %s", seed, how)
		}
	}
}

// A program that never comes to rest fails, because of writes or of retries.
func TestKit_ComingToRestIsDemanded_K4(t *testing.T) {
	h := kit.Run(t, kit.Config{Faults: kit.Plan{}, Quiesce: time.Minute}, 1, func(w *kit.World) {
		w.Run(func(mgr *manager.Manager) error {
			return addCopier(mgr, func(c copier) reconcile.Func[reconcile.Key] {
				return func(context.Context, reconcile.Key) (reconcile.Result, error) {
					return reconcile.Result{Retry: true, Reason: "not content"}, nil
				}
			})
		})
		w.Create(configMap("m", nil))
	})
	finds(t, h, "V7", "no rest within 1m0s")
}

// A run with too many events ends soon after the bound, with what repeats, whether a
// program or the scenario makes them.
func TestKit_RunWithoutEndIsEnded_K4(t *testing.T) {
	const most = 3000
	restless := func(w *kit.World) {
		w.Run(func(mgr *manager.Manager) error {
			return addCopierWith(mgr, func(c copier) reconcile.Func[reconcile.Key] {
				return func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
					m, err := c.configMaps.Get(key)
					if err != nil || key.Name != "m" {
						return reconcile.Result{}, reconcile.IgnoreNotFound(err)
					}
					m = kube.Copy(m)
					m.Data = map[string]string{"v": m.ResourceVersion} // the event of this write leads to the next one
					return reconcile.Result{}, c.client.Update(ctx, m)
				}
			}, reconcile.Options{Workers: 2})
		})
		w.Create(configMap("other", nil))
		w.Create(configMap("m", nil))
	}
	flood := func(w *kit.World) {
		w.Run(setUpCopier)
		for i := 0; ; i++ {
			w.Create(configMap(fmt.Sprint("m", i), nil))
		}
	}
	for name, c := range map[string]struct {
		faults   kit.Plan
		scenario func(*kit.World)
		says     []string
	}{
		"a program": {kit.Plan{}, restless, []string{
			"the run has 3000 after", "Config.MaxEvents",
			"times manager-1 asks to update ConfigMap default/m, the last time answered with 200\n",
			"times manager-1 reconciles copier default/m, the last time ended with done",
		}},
		"a program under faults": {nil, restless, []string{"Config.MaxEvents", "asks to update ConfigMap default/m, the last time"}},
		"the scenario":           {kit.Plan{}, flood, []string{"Config.MaxEvents", "times manager-1 reconciles copier default/m"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := kit.Config{Faults: c.faults, MaxEvents: most}
			h := kit.Run(t, cfg, 3, c.scenario)
			for _, say := range c.says {
				finds(t, h, "V7", say)
			}
			if len(h.Events) > most+most/5 {
				t.Errorf("the run has %d events, want few more than %d", len(h.Events), most)
			}
			if how, _ := h.Differs(kit.Run(t, cfg, 3, c.scenario)); how != "" {
				t.Errorf("the seed has two histories: %s", how)
			}
		})
	}
	h := kit.Run(t, kit.Config{MaxEvents: -1}, 1, changes)
	finds(t, h, "misuse", "Config.MaxEvents is -1")
}

func TestKit_Misuse_K6(t *testing.T) {
	run := func(setup func(*manager.Manager) error) func(*kit.World) {
		return func(w *kit.World) { w.Run(setup) }
	}
	for name, c := range map[string]struct {
		cfg      kit.Config
		scenario func(*kit.World)
		says     string
	}{
		"no scenario":   {says: "give a func(w *kit.World)"},
		"negative time": {cfg: kit.Config{FaultPhase: -1}, scenario: changes, says: "negative time"},
		"no such fault": {cfg: kit.Config{Faults: kit.Plan{{Verb: "shout"}}}, scenario: changes, says: "such as kit.Crash()"},
		"no such kind":  {cfg: kit.Config{Faults: kit.Plan{kit.CloseWatches().Of("ConfigMaps").At(time.Second)}}, scenario: changes, says: `close watches names the kind "ConfigMaps", which the server never served; it knows APIService, `},
		"no such write": {cfg: kit.Config{Faults: kit.Plan{kit.Cut().OnWrite("Deployment.app", 1)}}, scenario: changes, says: `cut names the kind "Deployment.app"`},
		"no such event": {cfg: kit.Config{Faults: kit.Plan{kit.Cut().OnEvent("Pods", 1)}}, scenario: changes, says: `cut names the kind "Pods"`},
		"done to no kind": {cfg: kit.Config{Faults: kit.Plan{}}, scenario: func(w *kit.World) {
			w.Run(setUpCopier)
			w.Do(kit.Mute().Of("Websites"))
		}, says: `Do: mute names the kind "Websites"`},
		"counts from 0":  {cfg: kit.Config{Faults: kit.Plan{kit.Cut().OnWrite("ConfigMap", 0)}}, scenario: changes, says: "count from 1"},
		"rate":           {cfg: kit.Config{Faults: kit.Plan{kit.Cut().Rate(-1)}}, scenario: changes, says: "from 0 to 1000"},
		"reject by 200":  {cfg: kit.Config{Faults: kit.Plan{kit.Reject(1, 200)}}, scenario: changes, says: "such as kit.Reject(2, 422)"},
		"rewind by none": {cfg: kit.Config{Faults: kit.Plan{kit.Rewind(0)}}, scenario: changes, says: "such as kit.Rewind(5)"},
		"no CRD":         {cfg: kit.Config{CRDs: []string{"nowhere.yaml"}}, scenario: changes, says: "relative to the directory of the test"},
		"no program":     {scenario: func(*kit.World) {}, says: "call w.Run(setup)"},
		"no setup":       {scenario: run(nil), says: "setup is nil"},
		"two programs": {scenario: func(w *kit.World) {
			w.Run(setUpCopier)
			w.Run(setUpCopier)
		}, says: `call w.RunAs("replica-b", setup)`},
		"two of a name": {scenario: func(w *kit.World) {
			w.RunAs("a", setUpCopier)
			w.RunAs("a", setUpCopier)
		}, says: "use a unique name"},
		"a name that is taken": {scenario: func(w *kit.World) { w.RunAs("user", setUpCopier) }, says: "such as replica-b"},
		"no name":              {scenario: func(w *kit.World) { w.RunAs("", setUpCopier) }, says: "such as replica-b"},
		"a fault in nobody": {cfg: kit.Config{Faults: kit.Plan{kit.Cut().In("b")}}, scenario: run(setUpCopier),
			says: "the scenario runs manager; name one that w.RunAs is given"},
		"a server's fault in one": {cfg: kit.Config{Faults: kit.Plan{kit.Compact().In("b")}}, scenario: changes, says: `leave In("b") out`},
		"done too late": {cfg: kit.Config{Faults: kit.Plan{}, FaultPhase: time.Second}, scenario: func(w *kit.World) {
			w.Run(setUpCopier)
			w.Sleep(2 * time.Second)
			w.Do(kit.Cut())
		}, says: "a longer Config.FaultPhase"},
		"done to nobody": {cfg: kit.Config{Faults: kit.Plan{}}, scenario: func(w *kit.World) {
			w.Run(setUpCopier)
			w.Do(kit.Cut().In("b"))
		}, says: "the processes are manager"},
		"done by no verb": {cfg: kit.Config{Faults: kit.Plan{}}, scenario: func(w *kit.World) {
			w.Run(setUpCopier)
			w.Do(kit.Op{Verb: "shout"})
		}, says: "such as kit.Crash()"},
		"unknown type": {scenario: func(w *kit.World) {
			w.Run(setUpCopier)
			w.Create(&stranger{})
		}, says: "Config.Scheme"},
		"no check": {scenario: func(w *kit.World) {
			w.Run(setUpCopier)
			w.Settled(nil)
		}, says: "give a func() error"},
	} {
		t.Run(name, func(t *testing.T) {
			h := kit.Run(t, c.cfg, 1, c.scenario)
			text := ""
			for _, v := range h.Violations {
				text += v.Text
			}
			if !strings.Contains(text, c.says) {
				t.Errorf("got %q, want what to write instead: %q", text, c.says)
			}
		})
	}
}

// A write trigger fires before the write, an event trigger before the event.
func TestKit_TriggersCountWritesAndEvents(t *testing.T) {
	plan := kit.Plan{kit.LoseResponse().OnWrite("ConfigMap", 2), kit.CloseWatches().Of("ConfigMap").OnEvent("ConfigMap", 3)}
	h := kit.Run(t, kit.Config{Faults: plan}, 3, func(w *kit.World) {
		w.Run(setUpCopier)
		w.Settled(copied(w))
		w.Create(configMap("m", nil))
		w.Sleep(time.Second)
		w.Create(configMap("n", nil))
	})
	sound(t, h)
	writes, events := 0, 0
	for _, e := range h.Events {
		switch {
		case e.What == kit.Fault && e.Name == "lose response" && writes != 2:
			t.Errorf("the answer is lost at write %d, want 2", writes)
		case e.What == kit.Fault && e.Name == "close watches ConfigMap" && events != 2:
			t.Errorf("the watches are closed after %d events, want 2", events)
		case e.What == kit.Asked && (e.Name == "create" || e.Name == "update"):
			writes++
		case e.What == kit.Sent && e.Name != "BOOKMARK":
			events++
		}
	}
}

// Never is checked after each change.
func TestKit_NeverIsAskedAfterEachChange(t *testing.T) {
	h := kit.Run(t, kit.Config{Faults: kit.Plan{}}, 1, func(w *kit.World) {
		w.Run(setUpCopier)
		w.Never(func() error {
			if w.Get(configMap(prefix+"m", nil)) {
				return errThere
			}
			return nil
		})
		w.Create(configMap("m", nil))
		w.Sleep(time.Second)
		w.Delete(configMap("m", nil))
	})
	finds(t, h, "V17", errThere.Error())
}

var errThere = errors.New("the copy is there")

// stranger is a type that no scheme has.
type stranger struct{ corev1.ConfigMap }
