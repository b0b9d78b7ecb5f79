// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/kit"
)

func examinationOf(play player) *examination {
	return &examination{play: play, replay: func(string) string { return "" }, report: &Report{Patterns: map[Pattern]int{}}, tried: map[string]bool{}}
}

var onePlan = plan{Walk: "create", Pattern: Conflict, Faults: kit.Plan{kit.Reject(1, 500).BeforeWrite("create Pod", 1)}}

// referenceOf returns a walk of one step, whose runs without faults show nothing.
func referenceOf() *reference {
	runs := []*trial{{}}
	return &reference{walk: walk{name: "create", steps: make([]step, 1)}, runs: runs, view: learn(runs)}
}

// played returns a run of a plan with something wrong; empty: with nothing.
func played(p plan, text string) *trial {
	t := &trial{plan: p, seed: 1, faults: []happening{{}}}
	if text != "" {
		t.addWrong(wrong{neverRests, text})
	}
	return t
}

// A walk whose second run without faults shows nothing does not have the plan.
func TestExamination_HasNoPlanAfterARunWithoutEnd(t *testing.T) {
	for name, second := range map[string]*trial{"refused": {refused: "no"}, "restless": {}} {
		e := examinationOf(func(_ walk, _ plan, _ uint64, like *trial) *trial {
			if like == nil {
				return &trial{took: []time.Duration{1}}
			}
			return second
		})
		if e.has(referenceOf().walk) {
			t.Errorf("%s: the walk has a plan", name)
		}
	}
	if plans := plansOf("create", &trial{}, nil, byClock, false); len(plans) != 0 {
		t.Errorf("a run without steps has the plans %v", plans)
	}
}

// The time of a suite's runs without faults has not that of its plans.
func TestExamination_PreparedIsTheRunsWithoutFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := examinationOf(func(_ walk, p plan, _ uint64, _ *trial) *trial {
			time.Sleep(time.Second)
			return &trial{plan: p, asks: []ask{{Who: operator, Write: "create Pod", Of: ref{"Pod", "a"}, Code: 201}}, last: objects{}, took: []time.Duration{1}}
		})
		e.walks, e.thrifty, e.budget, e.ends = []walk{{name: "suite", suite: true, steps: make([]step, 1)}}, true, time.Hour, time.Now().Add(time.Hour)
		e.run()
		if r := e.report; r.Ran == 0 || r.Prepared != 3*time.Second || r.Took <= r.Prepared {
			t.Errorf("%d plans were run in %s, and prepared in %s, want three seconds", r.Ran, r.Took, r.Prepared)
		}
	})
}

// After the budget no run of a walk begins, and the only plan has its time whatever the search for it has taken.
func TestExamination_TheBudget(t *testing.T) {
	const took, name = 10 * time.Minute, "Shop size changed"
	field := &fieldOf{sample: &unstructured.Unstructured{Object: map[string]any{"kind": "Shop"}}, mutation: mutation{path: path{"spec"}}}
	made := ask{Who: operator, Write: "create Pod", Of: ref{"Pod", "a"}, Code: 201}
	for budget, faulty := range map[time.Duration]bool{6 * took: false, 20 * took: true} {
		synctest.Test(t, func(t *testing.T) {
			runs := map[string]int{}
			search := func() *examination {
				e := examinationOf(func(w walk, p plan, _ uint64, _ *trial) *trial {
					time.Sleep(took)
					runs[w.name]++
					out := played(p, "")
					out.last, out.took, out.asks = objects{}, make([]time.Duration, len(w.steps)), []ask{made}
					out.changes = []change{{Step: 1, Who: operator, Verb: "created", Of: made.Of}}
					return out
				})
				e.walks = []walk{{name: "create", steps: make([]step, 1)}, {name: name, plain: true, field: field, steps: make([]step, 2)}}
				e.budget, e.ends = budget, time.Now().Add(budget)
				return e
			}
			e := search()
			e.run()
			if runs[name] == 0 || (runs["set "+name] > 0) != faulty {
				t.Errorf("with a budget of %s the runs are %v", budget, runs)
			}
			only := search()
			only.only = plan{Walk: "create", Faults: kit.Plan{kit.Reject(1, 500).BeforeWrite(made.Write, 1)}, Pattern: Conflict}.ID()
			only.budget, only.ends = took, time.Now().Add(took)
			if only.run(); only.report.Ran != 1 {
				t.Errorf("%d plans were run alone, want 1", only.report.Ran)
			}
		})
	}
}

// At the end only time passes for as long as polls are counted, whatever Stay is.
func TestOperator_StaysWhilePollsAreCounted(t *testing.T) {
	for stay, want := range map[time.Duration]time.Duration{0: 0, time.Second: window, time.Hour: time.Hour} {
		op := Operator{Setup: func(*manager.Manager) error { return nil }, Samples: []string{"testdata/gate.yaml"}, Cluster: kit.Config{Stay: stay}}
		if _, cfg, err := op.prepare(); err != nil || cfg.Stay != want {
			t.Errorf("Stay is %s for %s, want %s: %v", cfg.Stay, stay, want, err)
		}
	}
}

// One finding that is enough may be one of the first walk without faults.
func TestExamination_TheFirstWalkMayHaveTheFinding(t *testing.T) {
	for _, first := range []bool{false, true} {
		others := 0
		e := examinationOf(func(w walk, p plan, _ uint64, _ *trial) *trial {
			if w.name != "create" {
				others++
			}
			return &trial{plan: p, last: objects{}, took: []time.Duration{1}, polls: map[string]int{"get Pod": manyPolls + 1}}
		})
		e.first, e.walks = first, []walk{{name: "create", steps: make([]step, 1)}, {name: "delete", steps: make([]step, 1)}}
		if e.run(); len(e.report.Findings) != 1 || (others == 0) != first {
			t.Errorf("if one is enough (%t), there are %d findings, and %d runs of the second walk", first, len(e.report.Findings), others)
		}
	}
}

// What only one run shows does not end the search, not even for a while.
func TestTryBatch_ChanceDoesNotEndTheSearch(t *testing.T) {
	runs, always := 0, false
	var e *examination
	e = examinationOf(func(_ walk, p plan, _ uint64, _ *trial) *trial {
		if e.ended() {
			t.Error("the search is over before the finding is confirmed")
		}
		if runs++; runs == 1 || always {
			return played(p, "it writes without end")
		}
		return played(p, "")
	})
	e.first = true
	for _, always = range []bool{false, true} {
		runs = 0
		e.tryBatch(referenceOf(), []plan{onePlan}, time.Now().Add(time.Hour))
		if e.ended() != always || runs != 2 {
			t.Errorf("after %d runs the end of the search is %t, want 2 and %t", runs, e.ended(), always)
		}
	}
}

// A repetition whose fault hits a spec itself does not say that the plans of a batch are right.
func TestTryBatch_ARepetitionThatSaysNothing(t *testing.T) {
	runs := 0
	e := examinationOf(func(_ walk, p plan, _ uint64, _ *trial) *trial {
		out := played(p, "")
		out.addWrong(wrong{specRule + "TestShop", "it fails"})
		runs++
		out.own = runs == 2
		return out
	})
	r := referenceOf()
	r.walk.suite = true
	other := onePlan
	other.Hurry = 1
	e.tryBatch(r, []plan{onePlan, other}, time.Now().Add(time.Hour))
	if len(e.found.all) != 1 || runs != 4 {
		t.Errorf("there are %d findings after %d runs, want one after 4", len(e.found.all), runs)
	}
}

// A plan that could not be run is not counted, and the report says why once.
func TestTryBatch_ARefusedPlanIsNotTried(t *testing.T) {
	for why, want := range map[string]int{"no port is free": 1, searchEnded: 0} {
		runs := 0
		e := examinationOf(func(_ walk, p plan, _ uint64, _ *trial) *trial {
			runs++
			return &trial{plan: p, refused: why}
		})
		r := referenceOf()
		r.plans = []plan{onePlan}
		for range 2 { // each half of the budget
			e.try(map[string]*reference{r.walk.name: r}, []walk{r.walk}, time.Now().Add(time.Hour))
		}
		if e.report.Ran != 0 || len(e.report.Skipped) != want || runs != 2-want {
			t.Errorf("%s: after %d runs %d plans are counted, and %q is not judged", why, runs, e.report.Ran, e.report.Skipped)
		}
	}
}

// A run that the end of the search cuts short is refused because of that alone, whatever it returns.
func TestRealPlayer_ARunThatIsCutShort(t *testing.T) {
	for _, c := range []struct {
		ends bool // the search
		err  error
		want string
	}{{true, nil, searchEnded}, {true, errors.New("it is gone"), searchEnded}, {false, errors.New("no port is free"), "no port is free"}, {false, nil, ""}} {
		ctx, end := context.WithCancel(t.Context())
		run := realPlayer(func(_ context.Context, _ walk, p plan, _ uint64, _ *trial) (*trial, error) {
			if c.ends {
				end()
			}
			return played(p, "it does not rest"), c.err
		})
		for range 2 { // the second one would begin after the end
			if out, err := run.until(ctx, walk{}, onePlan, 1, nil); out.refused != c.want || (err != nil) != (c.err != nil && !c.ends) {
				t.Errorf("it is refused because of %q and returns %v, want %q", out.refused, err, c.want)
			}
		}
		end()
	}
}

// A finding in a suite stays if the search ends before a delay is tried in place of the fault, and the report says so.
func TestFinish_AControlThatIsCutShort(t *testing.T) {
	r := referenceOf()
	r.walk.suite = true
	e := examinationOf(func(_ walk, p plan, _ uint64, _ *trial) *trial {
		if p.Faults[0].Verb == kit.Delay(0, 0).Verb {
			return &trial{plan: p, refused: searchEnded}
		}
		out := played(p, "")
		out.addWrong(wrong{specRule + "a", "it fails"})
		return out
	})
	e.tryBatch(r, []plan{onePlan}, time.Now().Add(time.Hour))
	e.finish(map[string]*reference{"create": r})
	if len(e.report.Findings) != 1 || len(e.report.Skipped) != 1 || !strings.HasPrefix(e.report.Skipped[0], searchEnded+": whether a delay") {
		t.Errorf("the findings are %v, and %q is not judged", e.report.Findings, e.report.Skipped)
	}
}

// A finding stays when the search ends before its repetitions. A run that was cut short is no finding.
func TestFinish_AFindingThatIsNotRepeated(t *testing.T) {
	cut := ""
	e := examinationOf(func(_ walk, p plan, _ uint64, _ *trial) *trial {
		t := played(p, "it writes without end")
		t.refused = cut
		return t
	})
	r := referenceOf()
	e.tryBatch(r, []plan{onePlan}, time.Now().Add(time.Hour))
	cut = searchEnded
	other := onePlan
	other.Hurry = 1
	e.tryBatch(r, []plan{other}, time.Now().Add(time.Hour))
	e.finish(map[string]*reference{"create": r})
	if len(e.report.Findings) != 1 || e.report.Findings[0].Plans != 1 || e.report.Findings[0].Tries != 0 {
		t.Fatalf("the findings are %v, and %q is not judged; want one without repetitions", e.report.Findings, e.report.Skipped)
	}
	if got := e.report.Findings[0].text(); !strings.Contains(got, "it was not repeated") {
		t.Errorf("the text is %s", got)
	}
}

// A run with a remedy that could not be judged does not say that the finding is gone.
func TestMends_ARefusedRunSaysNothing(t *testing.T) {
	for why, want := range map[string]bool{"": true, "no": false} {
		e := examinationOf(nil)
		e.remedied = map[string]*reference{}
		e.remedies = map[string]player{"bridge": func(_ walk, p plan, _ uint64, _ *trial) *trial {
			out := played(p, "")
			out.refused = why
			return out
		}}
		if got := e.mends("bridge", referenceOf().walk, &Finding{plan: onePlan}); got != want {
			t.Errorf("refused because of %q it is gone: %t", why, got)
		}
	}
}

// The server has not refused the walk of a field for which there is no time.
func TestRefer_NoTimeIsNoRefusal(t *testing.T) {
	e := examinationOf(func(walk, plan, uint64, *trial) *trial { return &trial{refused: searchEnded} })
	w := walk{name: "Shop size changed", plain: true, steps: make([]step, 1)}
	for _, e.thrifty = range []bool{true, false} {
		e.refer(w)
	}
	if len(e.report.Untried) != 2 || len(e.report.Refused)+len(e.report.Skipped) != 0 {
		t.Errorf("the report is %+v", e.report)
	}
	if got := e.report.summary(); !strings.Contains(got, "no time for 2 changes of fields") {
		t.Errorf("the summary is %s", got)
	}
}

// Nothing is said about a kind that has no status.
func TestNoteForeign_OnlyKindsWithAStatus(t *testing.T) {
	for field, want := range map[string]int{"status": 1, "spec": 0} {
		crd := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"group": "example.dev", "names": map[string]any{"kind": "Shop"}, "versions": []any{map[string]any{
				"name": "v1", "schema": map[string]any{"openAPIV3Schema": map[string]any{"properties": map[string]any{field: map[string]any{}}}},
			}},
		}}}
		e := examinationOf(nil)
		e.crds = []*unstructured.Unstructured{crd}
		e.noteForeign(&reference{runs: []*trial{{last: objects{
			{"Shop.example.dev", "default/corner"}: {"apiVersion": "example.dev/v1", "kind": "Shop"},
		}}}})
		if len(e.report.Skipped) != want {
			t.Errorf("with %s, %q is not judged", field, e.report.Skipped)
		}
	}
}

// The user's function may take its time, and nothing else waits for it.
func TestCount_TheProgressIsToldWithoutTheLock(t *testing.T) {
	e, told := examinationOf(nil), 0
	e.progress = func(done, _, _ int) {
		told = done
		if !e.mu.TryLock() {
			t.Fatal("the lock is held")
		}
		e.mu.Unlock()
	}
	e.count(onePlan, played(onePlan, ""), 1)
	if told != 1 {
		t.Errorf("it is told of %d plans, want 1", told)
	}
}

// Samples of built-in kinds, of which no schema is given, are changed in the fields that they have, and deleted as kubectl does.
func TestRead_SamplesOfBuiltInKinds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "job.yaml")
	text := "{apiVersion: batch/v1, kind: Job, metadata: {name: load, namespace: default}, spec: {parallelism: 2, " +
		"template: {spec: {restartPolicy: Never, containers: [{name: main, image: 'load:1'}]}}}}"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := read(nil, []string{file}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Job spec.parallelism lowered", "Job spec.template.spec.containers[0].image changed"} {
		if !slices.ContainsFunc(s.walks, func(w walk) bool { return w.name == name }) {
			t.Errorf("there is no walk %q", name)
		}
	}
	if !slices.Equal(s.owners, []string{"Job.batch"}) {
		t.Errorf("the owners are %v", s.owners)
	}
	server := simulate.New(simulate.Options{})
	as, err := client.New(&rest.Config{Host: "http://simulated", Transport: server.Direct(user)}, clientscheme.Scheme, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, do := range []step{create(s.samples), remove(s.samples)} {
		if err := do.do(t.Context(), as); err != nil {
			t.Fatal(err)
		}
	}
	if left := server.Objects(schema.GroupResource{Group: "batch", Resource: "jobs"}); len(left) > 0 {
		t.Errorf("the Job has %v, and its Pods would be left", left[0].GetFinalizers())
	}
}
