// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/kit"
)

func two(w *kit.World) {
	w.Run(setUpCopier)
	w.Settled(copied(w))
	w.Create(configMap("m", map[string]string{"v": "0"}))
	w.Sleep(time.Second)
	w.Create(configMap("n", map[string]string{"v": "0"}))
}

// seen describes the second copy in a history.
type seen struct {
	fault    time.Duration
	made     time.Duration // the second copy
	before   int           // copies created before the fault
	answered []int         // the codes of the processes' creates, in order
	sent     time.Duration // the second copy, on a watch
}

func look(h *kit.History) (s seen) {
	for _, e := range h.Events {
		switch {
		case e.What == kit.Fault:
			s.fault = e.At
		case e.What == kit.Changed && e.Name == "created" && strings.Contains(e.Key, prefix):
			if s.fault == 0 {
				s.before++
			}
			s.made = e.At
		case e.What == kit.Answered && e.Name == "create" && e.Who != "user":
			s.answered = append(s.answered, e.Code)
		case e.What == kit.Sent && strings.HasSuffix(e.Key, prefix+"n") && s.sent == 0:
			s.sent = e.At
		}
	}
	return s
}

// A fault that a write triggers happens right before or right after exactly that write.
func TestKit_FaultsHappenAtTheWriteThatTriggersThem_K8(t *testing.T) {
	for name, c := range map[string]struct {
		op   kit.Op
		want func(seen) bool
	}{
		"crash before: it is never made by that process": {kit.Crash(3*time.Second).BeforeWrite("create ConfigMap", 2),
			func(s seen) bool { return s.before == 1 && s.made > s.fault+3*time.Second && len(s.answered) == 2 }},
		"crash after: it is made, and not answered": {kit.Crash(time.Second).AfterWrite("create ConfigMap", 2),
			func(s seen) bool { return s.before == 2 && s.made <= s.fault && s.fault < time.Second+time.Second/2 }},
		"cut before: it is made by another try": {kit.Cut().BeforeWrite("ConfigMap", 2),
			func(s seen) bool { return s.before == 1 && s.made > s.fault && len(s.answered) == 2 }},
		"cut after: it is made once": {kit.Cut().AfterWrite("*", 2),
			func(s seen) bool { return s.before == 2 && s.made <= s.fault }},
		"pause before: it is made after that": {kit.Pause(5*time.Second).BeforeWrite("create ConfigMap", 2),
			func(s seen) bool { return s.before == 1 && s.made >= s.fault+5*time.Second }},
		"reject before: that one is refused": {kit.Reject(1, 500).BeforeWrite("create ConfigMap", 2),
			func(s seen) bool { return s.before == 1 && len(s.answered) == 3 && s.answered[1] == 500 }},
		"lose response before: it is made, and not answered": {kit.LoseResponse().BeforeWrite("create ConfigMap", 2),
			func(s seen) bool { return s.before == 1 && s.answered[1] == 0 && s.made < s.fault+time.Millisecond }},
		"lag before: no watch hears of it for that time": {kit.Lag(5*time.Second).BeforeWrite("create ConfigMap", 2),
			func(s seen) bool { return s.made < s.fault+time.Millisecond && s.sent >= s.fault+5*time.Second }},
		"pause after a write of the user": {kit.Pause(5*time.Second).AfterWrite("create ConfigMap", 2).ByUser(),
			func(s seen) bool { return s.before == 1 && s.made >= s.fault+5*time.Second }},
		"lag after a write of the user": {kit.Lag(5*time.Second).BeforeWrite("create ConfigMap", 2).ByUser(),
			func(s seen) bool { return s.before == 1 && s.made >= s.fault+5*time.Second }},
	} {
		t.Run(name, func(t *testing.T) {
			h := kit.Run(t, kit.Config{Faults: kit.Plan{c.op}}, 5, two)
			sound(t, h)
			if s := look(h); s.fault == 0 || !c.want(s) {
				t.Errorf("%#v: %+v, want that %s", c.op, s, name)
			}
		})
	}
}

// A foreign write changes the object of the write that triggers it, after that was
// read for it: an update with the version is answered with 409, and repeated; a patch
// changes only its own fields; and one that replaces all annotations erases the foreign
// one, which is found.
func TestKit_ForeignWriteComesBetweenReadAndWrite_K8(t *testing.T) {
	for name, c := range map[string]struct {
		update func(ctx context.Context, c copier, copied *corev1.ConfigMap) error
		write  string
		codes  []int
		erases bool
	}{
		"an update with the version": {func(ctx context.Context, c copier, copied *corev1.ConfigMap) error {
			return c.client.Update(ctx, copied)
		}, "update", []int{409, 200}, false},
		"a patch": {func(ctx context.Context, c copier, copied *corev1.ConfigMap) error {
			return c.client.Patch(ctx, copied, client.MergePatch(map[string]any{"data": copied.Data}))
		}, "patch", []int{200}, false},
		"a replacement of what others write too": {func(ctx context.Context, c copier, copied *corev1.ConfigMap) error {
			return c.client.Patch(ctx, copied, client.JSONPatch(
				client.JSONOp{Op: "add", Path: "/metadata/annotations", Value: copied.Annotations},
				client.JSONOp{Op: "replace", Path: "/data", Value: copied.Data}))
		}, "patch", []int{200}, true},
	} {
		t.Run(name, func(t *testing.T) {
			update := c.update
			setup := func(mgr *manager.Manager) error {
				return addCopier(mgr, func(c copier) reconcile.Func[reconcile.Key] {
					return func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
						want, err := c.configMaps.Get(key)
						copied, copyErr := c.configMaps.Get(copyOf(key))
						if err != nil || copyErr != nil || maps.Equal(copied.Data, want.Data) {
							return c.reconcile(ctx, key)
						}
						copied = kube.Copy(copied)
						copied.Data = want.Data
						return reconcile.Result{}, update(ctx, c, copied)
					}
				})
			}
			faults := kit.Plan{kit.ForeignWrite().BeforeWrite(c.write+" ConfigMap", 1)}
			h := kit.Run(t, kit.Config{Faults: faults}, 5, func(w *kit.World) {
				w.Run(setup)
				w.Settled(copied(w))
				for i := range 10 { // which a fault at a random time would more likely change
					w.Create(configMap(fmt.Sprint("other", i), nil))
				}
				m := configMap("m", map[string]string{"v": "0"})
				w.Create(m)
				w.Sleep(time.Second)
				w.Edit(m, func() { m.Data["v"] = "1" })
			})
			var codes []int
			for _, e := range h.Events {
				if e.What == kit.Answered && e.Name == c.write && e.Who == "manager-1" {
					codes = append(codes, e.Code)
				}
			}
			if !slices.Equal(codes, c.codes) {
				t.Errorf("the answers are %v, want %v", codes, c.codes)
			}
			if c.erases {
				finds(t, h, "V23", "patch of ConfigMap default/copy-of-m removes")
			} else {
				sound(t, h)
			}
		})
	}
}

// Existing writes trigger most faults of a swarm that allow it, and the faults happen.
func TestKit_SwarmTriggersFaultsByWrites_K8(t *testing.T) {
	triggered, met := 0, 0
	for seed := range uint64(30) {
		h := kit.Run(t, kit.Config{}, seed, changes)
		sound(t, h)
		for _, op := range h.Plan {
			if op.When.Before == "" && op.When.After == "" {
				continue
			}
			triggered++
			for _, e := range h.Events {
				if e.What == kit.Fault && e.Name == op.String() && e.Text == op.When.String() {
					met++
					break
				}
			}
		}
	}
	if triggered < 60 || met < triggered*3/5 {
		t.Errorf("30 seeds have %d faults triggered by writes, of which %d happen; want at least 60, and three fifths", triggered, met)
	}
}

// After a crash the process connects to a server that lags behind what it has seen.
func TestKit_TimeTravelLeadsToALaggingServer(t *testing.T) {
	h := kit.Run(t, kit.Config{Faults: kit.Plan{kit.TimeTravel(1, time.Second).AfterWrite("create ConfigMap", 2)}}, 5, two)
	sound(t, h)
	begins, refused := time.Duration(0), false
	for _, e := range h.Events {
		switch {
		case e.What == kit.Started && e.Who == "manager-2":
			begins = e.At
		case begins > 0 && e.What == kit.Sent && e.Who == "manager-2" && strings.HasSuffix(e.Key, prefix+"n") && e.At < begins+5*time.Second:
			refused = true
		}
	}
	if begins == 0 || refused {
		t.Errorf("the second life begins at %v; want one, to which no watch tells of the last write for five seconds", begins)
	}
}
