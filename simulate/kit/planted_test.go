// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/kit"
)

// forgetful loses own writes: it remembers what it has copied and never checks whether
// the write succeeded, so a lost or refused one is never repeated.
func setUpForgetful(mgr *manager.Manager) error {
	return addCopier(mgr, func(c copier) reconcile.Func[reconcile.Key] {
		var mu sync.Mutex
		done := map[reconcile.Key]map[string]string{}
		return func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
			want, err := c.configMaps.Get(key)
			if err != nil {
				return c.reconcile(ctx, key)
			}
			mu.Lock()
			known, seen := done[key]
			done[key] = want.Data
			mu.Unlock()
			if seen && maps.Equal(known, want.Data) {
				return reconcile.Result{}, nil
			}
			return c.reconcile(ctx, key)
		}
	})
}

func forgetfulChanges(w *kit.World) {
	w.Run(setUpForgetful)
	w.Settled(copied(w))
	m := configMap("m", map[string]string{"v": "0"})
	w.Create(m)
	for _, v := range []string{"1", "2"} {
		w.Sleep(3 * time.Second)
		w.Edit(m, func() { m.Data["v"] = v })
	}
}

const planted = "FLYBALL_KIT_PLANTED"

// The test that finds the planted bug, run by the one below.
func TestPlanted(t *testing.T) {
	if os.Getenv(planted) == "" {
		t.Skip("run by TestKit_ViolationsPrintALineThatReplays_K5")
	}
	kit.Test(t, kit.Config{Seeds: 60}, forgetfulChanges)
}

// A lost own write is found within 60 seeds; the printed line repeats that seed and
// finds it again, and the history is where the message says.
func TestKit_ViolationsPrintALineThatReplays_K5(t *testing.T) {
	out := t.TempDir()
	test := func(args ...string) string {
		cmd := exec.Command(os.Args[0], append([]string{"-test.run=^TestPlanted$", "-sim.out=" + out}, args...)...)
		cmd.Env = append(os.Environ(), planted+"=1")
		text, err := cmd.CombinedOutput()
		if err == nil {
			t.Fatalf("the planted bug was not found:\n%s", text)
		}
		return string(text)
	}
	_, line, ok := strings.Cut(test(), "replay: go test -run '^TestPlanted$' ")
	if !ok {
		t.Fatal("no line that replays the run")
	}
	seed, _, _ := strings.Cut(line, "\n")
	again := test(seed)
	if !strings.Contains(again, "V17") || !strings.Contains(again, seed) || strings.Count(again, "replay:") != 1 {
		t.Errorf("the line that replays the run found something else:\n%s", again)
	}
	stem := filepath.Join(out, "TestPlanted-seed-"+strings.TrimPrefix(seed, "-sim.seed="))
	for _, file := range []string{stem + ".json", stem + ".html"} {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "V17") {
			t.Errorf("%s does not tell of the violation: %v", file, err)
		}
	}
}
