// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simulate/kit"
)

// A shrunk plan fails, does not fail without any of its operations, and can be pasted
// into a test.
func TestKit_PlanIsShrunkToWhatTheFailureNeeds_K9(t *testing.T) {
	needed := kit.Reject(1, 500).BeforeWrite("update ConfigMap", 2)
	plan := kit.Plan{
		kit.Huge().Rate(0.1), kit.Cut().At(2 * time.Second), kit.Stall(time.Second).At(3 * time.Second), needed,
		kit.CloseWatches().OnEvent("ConfigMap", 2), kit.Nasty().At(9 * time.Second), kit.Duplicate().At(time.Second),
	}
	cfg := kit.Config{Faults: plan}
	h := kit.Run(t, cfg, 3, forgetfulChanges)
	finds(t, h, "V17", "its copy")
	s := kit.Shrink(t, cfg, h, forgetfulChanges)
	if s == nil || len(s.Least.Plan) != 1 || s.Least.Plan[0].Verb != needed.Verb {
		t.Fatalf("shrunk to %#v, want %#v", s, kit.Plan{needed})
	}
	finds(t, s.Least, "V17", "its copy")
	if s.Good == nil || len(s.Good.Violations) > 0 {
		t.Error("no run that is right to compare with; want the one without any fault")
	}
	want := "kit.Plan{\n\tkit.Reject(1, 500).BeforeWrite(\"update ConfigMap\", 2),\n}"
	if text := fmt.Sprintf("%#v", s.Least.Plan); text != want {
		t.Errorf("it is written\n%s\nwant\n%s", text, want)
	}
	finds(t, kit.Run(t, kit.Config{Faults: kit.Plan{kit.Reject(1, 500).BeforeWrite("update ConfigMap", 2)}}, 3, forgetfulChanges), "V17", "its copy")
}

// A failure that needs two faults keeps two, and an operation with a rate becomes a
// single one.
func TestKit_PlanIsShrunkToTwoThatNeedEachOther_K9(t *testing.T) {
	down := 100 * time.Millisecond
	cfg := kit.Config{Faults: kit.Plan{kit.Huge().Rate(0.5), kit.Crash(down).At(time.Second), kit.Cut().At(4 * time.Second), kit.Crash(2 * down).Rate(0.5), kit.Stall(time.Second).Rate(0.3)}}
	scenario := func(w *kit.World) {
		var lives atomic.Int32
		w.Run(func(mgr *manager.Manager) error {
			lives.Add(1)
			return setUpCopier(mgr)
		})
		w.Create(configMap("m", nil))
		w.Sleep(15 * time.Second)
		if lives.Load() > 2 {
			w.Errorf("the program has begun three times")
		}
	}
	h := kit.Run(t, cfg, 3, scenario)
	finds(t, h, "scenario", "begun three times")
	s := kit.Shrink(t, cfg, h, scenario)
	for _, op := range s.Least.Plan {
		if op.Verb != kit.Crash(0).Verb || op.When.At == 0 {
			t.Errorf("%#v is left, want nothing but crashes at their times", op)
		}
	}
	if s.Good == nil || len(s.Least.Plan) != 1 && len(s.Least.Plan) != 2 {
		t.Errorf("shrunk to %#v beside %v, want one or two crashes, and a run that is right without one", s.Least.Plan, s.Good)
	}
}

// A key that never comes to rest reports its error and its requests.
func TestKit_RestlessKeySaysWhy_K7(t *testing.T) {
	h := kit.Run(t, kit.Config{Faults: kit.Plan{}, Quiesce: time.Minute}, 1, func(w *kit.World) {
		w.Run(func(mgr *manager.Manager) error {
			return addCopier(mgr, func(c copier) reconcile.Func[reconcile.Key] {
				return func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
					return reconcile.Result{}, c.client.Get(ctx, reconcile.Key{Namespace: "default", Name: "nowhere"}, configMap("", nil))
				}
			})
		})
		w.Create(configMap("m", nil))
	})
	for _, says := range []string{
		"1 keys of manager-1 are in queues", "copier default/m of manager-1 has failed ", " times in a row, the last time with error: ",
		`configmaps "nowhere" not found`, "its last requests:", "GET /api/v1/namespaces/default/configmaps/nowhere: 404",
	} {
		finds(t, h, "V7", says)
	}
}

// A failure reports where the run differs from a correct one.
func TestKit_FailureSaysWhereItPartsFromAGoodRun_K7(t *testing.T) {
	cfg := kit.Config{Faults: kit.Plan{kit.Reject(1, 500).BeforeWrite("update ConfigMap", 2), kit.Duplicate().At(time.Second)}}
	h := kit.Run(t, cfg, 3, forgetfulChanges)
	text := kit.Shrink(t, cfg, h, forgetfulChanges).String()
	for _, says := range []string{
		"of 2 operations 1 lead to it", "kit.Reject(1, 500).BeforeWrite(\"update ConfigMap\", 2),",
		"manager asks to update ConfigMap default/copy-of-m, and is answered with 500",
	} {
		if !strings.Contains(text, says) {
			t.Errorf("it does not say %q:\n%s", says, text)
		}
	}
}
