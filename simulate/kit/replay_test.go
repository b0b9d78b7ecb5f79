// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/kit"
)

// stamped is a copier that also writes the time and a number by chance.
func stamped(c copier) reconcile.Func[reconcile.Key] { return c.stamp }

func (c copier) stamp(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	if copied, err := c.configMaps.Get(copyOf(key)); err == nil && copied.Annotations["at"] == "" {
		patch := kube.Copy(copied)
		metav1.SetMetaDataAnnotation(&patch.ObjectMeta, "at", reconcile.Now(ctx).Format(time.RFC3339Nano)+" "+strconv.Itoa(reconcile.Rand(ctx).IntN(1e6)))
		if _, err := c.client.PatchChanges(ctx, copied, patch); err != nil {
			return reconcile.Result{}, err
		}
	}
	return c.reconcile(ctx, key)
}

func setUpStamped(mgr *manager.Manager) error { return addCopier(mgr, stamped) }

// recorded makes runs of the seeds from 1 on, and returns a recording of each program's life.
func recorded(t *testing.T, seeds int, faults kit.Plan, scenario func(*kit.World)) (files []string) {
	t.Helper()
	return recordedEvery(t, 240*time.Hour, kit.Config{Seeds: seeds, Faults: faults}, scenario)
}

// recordedEvery is recorded with a recording for each such part of a life.
func recordedEvery(t *testing.T, every time.Duration, cfg kit.Config, scenario func(*kit.World)) (files []string) {
	t.Helper()
	var mu sync.Mutex
	dir, lives := t.TempDir(), 0
	cfg.Process = func(_ string, opts *manager.Options) {
		mu.Lock()
		defer mu.Unlock()
		lives++
		opts.Record = manager.Record{Dir: filepath.Join(dir, strconv.Itoa(lives)), Every: every}
	}
	if !t.Run("record", func(t *testing.T) { kit.Test(t, cfg, scenario) }) {
		t.FailNow()
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.tar.gz"))
	if err != nil || len(files) < cfg.Seeds {
		t.Fatalf("%d runs have left the recordings %q, %v", cfg.Seeds, files, err)
	}
	return files
}

func stampedChanges(w *kit.World) { stamp(w, 5, 3*time.Second) }

// stamp makes changes, each at most so long after the one before.
func stamp(w *kit.World, changes int, pause time.Duration) {
	w.Run(setUpStamped)
	for i := range changes {
		m := configMap([]string{"one", "two", "three"}[w.Draw("name", 3)], map[string]string{"v": strconv.Itoa(i)})
		there := kube.Copy(m)
		switch {
		case !w.Get(there):
			w.Create(m)
		case w.Draw("do", 2) == 0:
			w.Delete(there)
		default:
			w.Edit(there, func() { there.Data = m.Data })
		}
		w.Sleep(time.Duration(w.Draw("pause", int(pause))))
	}
}

// The runs are of a program that writes the time and chance.
func TestReplay_SendsTheRecordedRequests_K17(t *testing.T) {
	runs := 200
	if testing.Short() {
		runs = 20
	}
	for _, file := range recorded(t, runs, kit.Plan{}, stampedChanges) {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) { kit.Replay(t, file, kit.Config{}, setUpStamped) })
	}
}

// A stop and another start in a run, answers that are refused, lists instead of watches, and a clock
// that is wrong are replayed, too.
func TestReplay_OfAnEventfulLife_K17(t *testing.T) {
	faults := kit.Plan{
		kit.ForeignWrite().At(3 * time.Second), kit.Overload(2, 429).At(3500 * time.Millisecond), kit.Reject(2, 422).At(4 * time.Second), kit.CloseWatches().At(5 * time.Second),
		kit.Compact().At(5 * time.Second), kit.ClockStep(-time.Hour).At(6 * time.Second), kit.Stop(time.Second).At(7 * time.Second),
	}
	for _, file := range recorded(t, 4, faults, stampedChanges) {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) { kit.Replay(t, file, kit.Config{}, setUpStamped) })
	}
}

// A recording may begin and end at any time: what the program knew before is in its first entries.
func TestReplay_BegunInTheMiddle_K17(t *testing.T) {
	cfg := kit.Config{Seeds: 3, Faults: kit.Plan{}, FaultPhase: 5 * time.Minute}
	files := recordedEvery(t, time.Minute, cfg, func(w *kit.World) { stamp(w, 20, 30*time.Second) })
	if len(files) < 3*5 {
		t.Fatalf("there are %d recordings, want one for each minute", len(files))
	}
	for _, file := range files {
		t.Run(strings.TrimPrefix(file, filepath.Dir(filepath.Dir(file))), func(t *testing.T) { kit.Replay(t, file, kit.Config{}, setUpStamped) })
	}
}

// replayed is the set-up that the test below replays in a process of its own.
const replayed = "FLYBALL_KIT_REPLAYED"

var replayedSetUps = map[string]func(*manager.Manager) error{
	"other": func(mgr *manager.Manager) error { // writes other data
		return addCopier(mgr, func(c copier) reconcile.Func[reconcile.Key] {
			return func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
				if want, err := c.configMaps.Get(key); err == nil {
					if _, err := c.configMaps.Get(copyOf(key)); err != nil {
						return reconcile.Result{}, c.client.Create(ctx, configMap(copyOf(key).Name, map[string]string{"v": want.Data["v"] + "!"}))
					}
				}
				return c.reconcile(ctx, key)
			}
		})
	},
	"silent": func(mgr *manager.Manager) error {
		return addCopier(mgr, func(copier) reconcile.Func[reconcile.Key] {
			return func(context.Context, reconcile.Key) (reconcile.Result, error) { return reconcile.Result{}, nil }
		})
	},
	"wall": func(mgr *manager.Manager) error { // takes the time from the machine
		return addCopier(mgr, func(c copier) reconcile.Func[reconcile.Key] {
			return func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
				if copied, err := c.configMaps.Get(copyOf(key)); err == nil && copied.Annotations["at"] == "" {
					patch := kube.Copy(copied)
					metav1.SetMetaDataAnnotation(&patch.ObjectMeta, "at", time.Now().Format(time.RFC3339))
					_, err := c.client.PatchChanges(ctx, copied, patch)
					return reconcile.Result{}, err
				}
				return c.reconcile(ctx, key)
			}
		})
	},
	"more": func(mgr *manager.Manager) error { // writes once more at the end
		return addCopier(mgr, func(c copier) reconcile.Func[reconcile.Key] {
			return func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
				res, err := c.reconcile(ctx, key)
				if err == nil {
					err = c.client.Delete(ctx, configMap("nothing", nil))
				}
				return res, reconcile.IgnoreNotFound(err)
			}
		})
	},
	"stranger": func(mgr *manager.Manager) error {
		return mgr.Add(reconcile.New("stranger", reconcile.Func[reconcile.Key](func(context.Context, reconcile.Key) (reconcile.Result, error) {
			return reconcile.Result{}, nil
		}), reconcile.Options{}))
	},
	"same": setUpCopier,
}

func TestReplayed(t *testing.T) {
	setup, asked := replayedSetUps[os.Getenv(replayed)]
	if !asked {
		t.Skip("it is run by TestReplay_StopsAtTheFirstDifference_K17")
	}
	kit.Replay(t, "", kit.Config{}, setup)
}

func TestReplay_StopsAtTheFirstDifference_K17(t *testing.T) {
	file := recorded(t, 1, kit.Plan{}, func(w *kit.World) {
		w.Run(setUpCopier)
		w.Create(configMap("one", map[string]string{"v": "0"}))
		w.Sleep(2 * time.Second)
		w.Create(configMap("two", map[string]string{"v": "0"}))
	})[0]
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string, content []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	packed, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		setup, file string
		fails       bool
		says        []string
	}{
		"another value": {"other", file, true, []string{
			`controller "copier", key default/one`, "the recorded program sent\n", "POST /api/v1/namespaces/default/configmaps",
			`data.v: "0" recorded, "0!" replayed`,
		}},
		"no request":     {"silent", file, true, []string{"the recorded program sent\n", "the replayed program has ended, as done"}},
		"one more":       {"more", file, true, []string{"both have sent POST ", "the recorded program ended, as done", "the replayed program sends\n", "DELETE /api/v1/namespaces/default/configmaps/nothing"}},
		"the wall clock": {"wall", file, true, []string{"the replayed program sends\n", "PATCH "}},
		"another operator": {"stranger", file, true, []string{
			`has reconciles of controller "copier", which the set-up does not make; it makes ["stranger"]`,
		}},
		"cut off":           {"same", write("cut.tar.gz", whole[:len(whole)*3/4]), false, []string{"was cut off: its "}},
		"compressed anew":   {"same", write("b.tar.zst", packed.EncodeAll(unpacked(t, whole), nil)), false, []string{"replayed "}},
		"nothing":           {"same", write("empty.tar.gz", nil), true, []string{"it ends before its head"}},
		"another file":      {"same", write("text", []byte("kind: Pod\n")), true, []string{"not a recording of Flyball"}},
		"another version":   {"same", write("v2", bytes.Replace(unpacked(t, whole), []byte("flyball-recording-1"), []byte("flyball-recording-2"), 1)), true, []string{`its format is "flyball-recording-2"`, "replay it with the version that made it"}},
		"a file not there":  {"same", filepath.Join(t.TempDir(), "none"), true, []string{"no such file"}},
		"the whole of it":   {"same", file, false, []string{"4 reconciles, 2 requests"}},
		"no file to replay": {"same", "", false, []string{"name one with -kit.bundle=FILE"}},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestReplayed$", "-test.v", "-kit.bundle="+c.file)
			cmd.Env = append(os.Environ(), replayed+"="+c.setup)
			out, err := cmd.CombinedOutput()
			if (err != nil) != c.fails {
				t.Errorf("it fails: %v, want %v", err, c.fails)
			}
			for _, says := range c.says {
				if !strings.Contains(string(out), says) {
					t.Errorf("it says\n%s\nwant %q", out, says)
				}
			}
		})
	}
}

// unpacked returns the tar file of a recording.
func unpacked(t *testing.T, whole []byte) []byte {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
