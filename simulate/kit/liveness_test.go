// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"fmt"
	"iter"
	"strings"
	"sync"
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

// setUpHangingMapper adds a copier whose mapper hangs for five minutes at its first
// call.
func setUpHangingMapper(mgr *manager.Manager) error {
	configMaps := informer.For[*corev1.ConfigMap](mgr.Informers())
	c := reconcile.New("copier", copier{configMaps.Lister(), mgr.Client()}.reconcile, reconcile.Options{Workers: 2})
	var once sync.Once
	c.Watch(source.Kind(configMaps, func(obj kube.Object) iter.Seq[reconcile.Key] {
		once.Do(func() { <-time.After(5 * time.Minute) })
		return originals(obj)
	}))
	return mgr.Add(c)
}

// A part that hangs while work waits for it is found in time; a process that was
// paused, or whose clock jumped by hours, is not reported.
func TestKit_LivenessTellsAHangFromAStandstill(t *testing.T) {
	const after = 30 * time.Second // from the start of the run; all faults come before
	for _, tc := range []struct {
		name  string
		setUp func(*manager.Manager) error
		plan  kit.Plan
		stuck string // named by the log; empty: nothing
	}{
		{"nothing happens", setUpCopier, kit.Plan{}, ""},
		{"paused", setUpCopier, kit.Plan{kit.Pause(10 * time.Minute).At(after)}, ""},
		{"paused twice in a row", setUpCopier, kit.Plan{kit.Pause(110 * time.Second).At(after), kit.Pause(110 * time.Second).At(after + 2*time.Minute)}, ""},
		{"the clock jumps", setUpCopier, kit.Plan{kit.Jump(time.Hour).At(after)}, ""},
		{"paused in the midst of a reconcile", setUpSlow, kit.Plan{kit.Pause(10 * time.Minute).At(after + 1500*time.Millisecond)}, ""},
		{"the clock jumps in the midst of a reconcile", setUpSlow, kit.Plan{kit.Jump(time.Hour).At(after + 1500*time.Millisecond)}, ""},
		{"a handler hangs", setUpCopier, kit.Plan{kit.Stall(5 * time.Minute).At(after)}, `handler \"source kind ConfigMap\"`},
		{"a handler is slow", setUpCopier, kit.Plan{kit.Stall(90 * time.Second).At(after)}, ""},
		{"a mapper hangs", setUpHangingMapper, kit.Plan{}, `handler \"source kind ConfigMap\"`},
		{"both workers hang", setUpCopier, kit.Plan{kit.Hang(5 * time.Minute).At(after), kit.Hang(5 * time.Minute).At(after)}, "none of 2 workers"},
		{"one worker hangs", setUpCopier, kit.Plan{kit.Hang(5 * time.Minute).At(after)}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := kit.Run(t, kit.Config{Faults: tc.plan, FaultPhase: 15 * time.Minute}, 3, func(w *kit.World) {
				w.Run(tc.setUp)
				w.Create(configMap("before", nil))
				w.Sleep(after + time.Second)
				for i := range 8 {
					w.Create(configMap(fmt.Sprint("m", i), nil))
					w.Sleep(100 * time.Millisecond)
				}
			})
			sound(t, h)
			var lines []string
			faults := 0
			for _, e := range h.Events {
				if e.What == kit.Fault {
					faults++
				}
				if e.What == kit.Logged && strings.Contains(e.Text, "Something has stopped making progress") {
					lines = append(lines, e.Text)
				}
			}
			switch {
			case faults < len(tc.plan):
				t.Errorf("%d of %d faults happened: it is not what it was tested for", faults, len(tc.plan))
			case tc.stuck == "" && len(lines) > 0:
				t.Errorf("it is declared stuck: %q", lines)
			case tc.stuck != "" && (len(lines) != 1 || !strings.Contains(strings.ReplaceAll(lines[0], `\\`, `\`), tc.stuck)):
				t.Errorf("the log says %q, want one line that names %s", lines, tc.stuck)
			}
			for _, line := range lines {
				if strings.Contains(line, "goroutine ") {
					t.Errorf("the history has a stack, which differs from run to run: %s", line)
				}
			}
		})
	}
}
