// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/kit"
)

// elected enables leader election among its replicas.
func elected(faults kit.Plan) kit.Config {
	return kit.Config{Manager: manager.Options{LeaderElection: &manager.LeaderElection{ID: "copier", Namespace: "default"}}, Faults: faults}
}

// overthrows are faults that last longer than a lease.
func overthrows() kit.Plan {
	return kit.Swarm(kit.Crash(time.Second), kit.Pause(20*time.Second), kit.Partition(20*time.Second), kit.Refuse(20*time.Second),
		kit.Jump(time.Minute), kit.ClockStep(time.Hour), kit.ClockStep(-time.Hour), kit.LoseResponse(), kit.Cut(), kit.Delay(time.Second, 20*time.Second))
}

func TestKit_SwarmLeavesAnElectedReplicaAtWork(t *testing.T) {
	for name, c := range map[string]struct {
		faults kit.Plan
		phase  time.Duration
	}{
		"all that is to be borne": {nil, 20 * time.Second},
		"what ends a term":        {overthrows(), time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := elected(c.faults)
			cfg.Seeds, cfg.FaultPhase = 4, c.phase
			kit.Test(t, cfg, func(w *kit.World) {
				replicas(w)
				for i := range int(c.phase/time.Second) / 10 {
					w.Sleep(10 * time.Second)
					m := configMap("m", nil)
					if !w.Get(m) {
						w.Create(m)
					}
					w.Edit(m, func() { m.Data = map[string]string{"late": fmt.Sprint(i)} })
				}
			})
		})
	}
}

func TestKit_OneSeedOfAnElectionHasOneHistory_K1(t *testing.T) {
	for seed := range uint64(3) {
		cfg := elected(overthrows())
		cfg.FaultPhase = time.Minute
		first, second := kit.Run(t, cfg, seed, replicas), kit.Run(t, cfg, seed, replicas)
		sound(t, first)
		if how, _ := first.Differs(second); how != "" {
			t.Errorf("seed %#x has two histories: %s", seed, how)
		}
	}
}

// terms returns the processes that have held the lease, and when each first did.
func terms(h *kit.History) (out []string) {
	for _, e := range h.Events {
		if e.What == kit.Changed && e.Holder != "" && (len(out) == 0 || out[len(out)-1] != e.Who) {
			out = append(out, e.Who)
		}
	}
	return out
}

// However the lease is lost, another process leads, and the former leader returns as a
// standby.
func TestKit_LeaderThatIsGoneIsFollowed(t *testing.T) {
	for _, op := range []kit.Op{kit.Crash(time.Minute), kit.Pause(20 * time.Second), kit.Partition(20 * time.Second)} {
		t.Run(string(op.Verb), func(t *testing.T) {
			cfg := elected(kit.Plan{})
			cfg.FaultPhase = 2 * time.Minute
			h := kit.Run(t, cfg, 3, func(w *kit.World) {
				w.RunAs("left", setUpCopier)
				w.Sleep(5 * time.Second)
				w.RunAs("right", setUpCopier)
				w.Settled(copied(w))
				w.Sleep(5 * time.Second)
				w.Create(configMap("by-left", nil))
				w.Sleep(time.Second)
				w.Do(op.In("left"))
				w.Create(configMap("by-right", nil))
				w.Eventually(copied(w))
			})
			sound(t, h)
			if got := strings.Join(terms(h), ", "); got != "left-1, right-1" {
				t.Errorf("the lease was %s's, want left-1's and then right-1's", got)
			}
			var copies, lives []string
			for _, e := range h.Events {
				switch {
				case e.What == kit.Changed && e.Name == "created" && strings.Contains(e.Key, prefix):
					copies = append(copies, e.Key+" by "+e.Who)
				case e.What == kit.Started:
					lives = append(lives, e.Who)
				}
			}
			want := "default/" + prefix + "by-left by left-1, default/" + prefix + "by-right by right-1"
			if got := strings.Join(copies, ", "); got != want {
				t.Errorf("the copies are %s, want %s", got, want)
			}
			if got := strings.Join(lives, ", "); got != "left-1, right-1, left-2" {
				t.Errorf("the processes are %s, want left-2 to follow left-1", got)
			}
		})
	}
}

// Without faults one process leads for the whole run, and the other does nothing.
func TestKit_NobodyIsOverthrownForNothing(t *testing.T) {
	h := kit.Run(t, elected(kit.Plan{}), 1, replicas)
	sound(t, h)
	if got := terms(h); len(got) != 1 {
		t.Errorf("the lease was had by %v, want one process", got)
	}
	for _, e := range h.Events {
		if e.What == kit.Begun && e.Who != terms(h)[0] {
			t.Errorf("a standby reconciles: %s", e)
		}
	}
}

// setUpReckless adds a copier with a bug: it uses the unguarded client, and after a
// long pause overwrites whatever exists by then.
func setUpReckless(mgr *manager.Manager) error {
	return addCopier(mgr, func(c copier) reconcile.Func[reconcile.Key] {
		c.client = mgr.StandbyClient()
		return func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
			m, err := c.configMaps.Get(key)
			if err != nil {
				return reconcile.Result{}, reconcile.IgnoreNotFound(err)
			}
			<-time.After(2 * time.Second)
			return reconcile.Result{}, c.client.Apply(context.WithoutCancel(ctx), configMap(copyOf(key).Name, m.Data), client.FieldOwner("copier"))
		}
	})
}

// A write that bypasses the gate is found, and none if the gate is used.
func TestKit_WritePastTheGateIsFound(t *testing.T) {
	play := func(setup func(*manager.Manager) error, seed uint64) *kit.History {
		cfg := elected(kit.Plan{kit.Pause(30 * time.Second).In("left").At(7 * time.Second)})
		cfg.FaultPhase = time.Minute
		return kit.Run(t, cfg, seed, func(w *kit.World) {
			w.RunAs("left", setup)
			w.Sleep(3 * time.Second)
			w.RunAs("right", setup)
			w.Sleep(3 * time.Second)
			m := configMap("m", map[string]string{"v": "old"})
			w.Create(m)
			w.Sleep(18 * time.Second)
			w.Edit(m, func() { m.Data["v"] = "new" })
		})
	}
	sound(t, play(setUpCopier, 1))
	finds(t, play(setUpReckless, 1), "V10", "left-1 writes ConfigMap default/"+prefix)
}

// setUpDeaf adds a runnable that ignores its context to the first life.
func setUpDeaf() func(*manager.Manager) error {
	lives := 0
	return func(mgr *manager.Manager) error {
		if lives++; lives == 1 {
			err := mgr.Add(manager.RunnableFunc(func(context.Context) error {
				<-time.After(10 * time.Minute)
				return nil
			}))
			if err != nil {
				return err
			}
		}
		return setUpCopier(mgr)
	}
}

// A process that loses leadership ends, but must leave nothing running.
func TestKit_WhatIsLeftRunningByALeaderThatWasIsFound(t *testing.T) {
	play := func(setup func(*manager.Manager) error) *kit.History {
		cfg := elected(kit.Plan{kit.Pause(20 * time.Second).In("left").At(7 * time.Second)})
		cfg.FaultPhase = 2 * time.Minute
		return kit.Run(t, cfg, 1, func(w *kit.World) {
			w.RunAs("left", setup)
			w.Sleep(3 * time.Second)
			w.RunAs("right", setUpCopier)
		})
	}
	sound(t, play(setUpCopier))
	finds(t, play(setUpDeaf()), "V11", manager.ErrStillRunning.Error())
}
