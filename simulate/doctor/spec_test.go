// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/internal/aim"
	"github.com/flyball-dev/flyball/simulate/kit"
)

func TestSpecsOf_ReadsGinkgoAndGoTest(t *testing.T) {
	report := filepath.Join(t.TempDir(), "report.json")
	text := `[{"SpecReports": [
		{"ContainerHierarchyTexts": ["A book", "when new"], "LeafNodeText": "has pages", "State": "failed",
		 "Failure": {"Message": "Timed out", "Location": {"FileName": "/src/book/book_test.go", "LineNumber": 7}}},
		{"LeafNodeType": "AfterSuite", "State": "panicked", "Failure": {"Message": "nil"}},
		{"LeafNodeText": "passes", "State": "passed"}, {"LeafNodeText": "waits", "State": "pending"}]}]`
	if err := os.WriteFile(report, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	said := "=== RUN   TestAll\nnoise\n--- FAIL: TestAll (0.10s)\n"
	want := []failure{{"A book when new has pages", "Timed out (book/book_test.go:7)"}, {"AfterSuite", "nil (.:0)"}}
	if got := specsOf(report, said); len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("the failures are %v, want %v", got, want)
	}
	said = "=== RUN   TestA\n=== RUN   TestA/b\n    a_test.go:3: two, want one\n=== RUN   TestA/c\nnoise\n--- FAIL: TestA (0.10s)\n" +
		"    --- FAIL: TestA/b (0.00s)\n    --- PASS: TestA/c (0.00s)\n=== RUN   TestD\n--- FAIL: TestD (0.00s)\n"
	want = []failure{{"TestA/b", "a_test.go:3: two, want one"}, {"TestD", ""}}
	if got := specsOf("", said); len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("the failures are %q, want %q", got, want)
	}
}

func TestFramesIn_IsTheNearestOfTheUser(t *testing.T) {
	stack := "goroutine 7 [select]:\nnet/http.(*Client).do(0xc0, 0x1)\n\t/go/src/net/http/client.go:1 +0x1\n" +
		"sigs.k8s.io/controller-runtime/pkg/client.(*client).Create(0xc0, {0x1, 0x2})\n\t/mod/client.go:2 +0x1\n" +
		"example.com/op/internal/web.(*R).Reconcile(0xc0, {0x1, 0x2}, {{0x3}})\n\t/op/internal/web/web.go:42 +0x1f\n" +
		"created by example.com/op/internal/web.Start in goroutine 1\n\t/op/internal/web/web.go:9 +0x1\n"
	if got, want := framesIn(stack, 1), "web/web.go:42 (web.(*R).Reconcile)"; len(got) != 1 || got[0] != want {
		t.Errorf("the lines are %q, want %q", got, want)
	}
	if got := framesIn("goroutine 7 [select]:\nnet/http.(*Client).do(0xc0)\n\t/go/src/net/http/client.go:1 +0x1\ncreated by example.com/op.Start in goroutine 1\n\t/op/op.go:9 +0x1\n", 1); len(got) > 0 {
		t.Errorf("without code of the user the lines are %q", got)
	}
}

// The control of a plan happens at the same write and lasts as long.
func TestPlan_SlowlyIsADelayAtTheSamePlace(t *testing.T) {
	p := plan{Faults: kit.Plan{kit.Slow(3*time.Second, 3*time.Second).BeforeWrite("create Pod", 2), kit.LoseResponse().AfterWrite("update Pod", 1)}}
	slow := p.slowly(&trial{})
	next := &trial{asks: []ask{{Who: operator, Write: "create Pod", Code: 201}, {At: time.Minute, Who: operator, Write: "create Pod", Code: 201},
		{At: time.Minute + time.Second, Who: operator, Write: "create Job", Code: 201}, {At: time.Hour, Who: operator, Write: "create Job", Code: 201}}}
	if got := (plan{Faults: p.Faults[:1]}).slowly(next).Faults; len(got) != 2 || got[1].When.Before != "create Job" || got[1].When.Nth != 1 || got[0].For+got[1].For != p.Faults[0].For {
		t.Errorf("the delays are %v, want one more at the write that follows soon, and %s in all", got, p.Faults[0].For)
	}
	for i, want := range []time.Duration{3 * time.Second, time.Second} {
		if got := slow.Faults[i]; got.Verb != kit.Delay(0, 0).Verb || got.For != want || got.When != p.Faults[i].When {
			t.Errorf("in place of %v there is %v, want a delay for %s", p.Faults[i], got, want)
		}
	}
	if p.Faults[0].Verb == slow.Faults[0].Verb {
		t.Error("the plan itself has changed")
	}
	faults, atRest := aimed(slow)
	if len(atRest) > 0 {
		t.Errorf("of %v no write is known", atRest)
	}
	for _, f := range faults {
		if err := f.Check(); err != nil {
			t.Error(err)
		}
	}
}

// Plans whose faults are far from each other share a run.
func TestBatches_FaultsAreApart(t *testing.T) {
	first := &trial{}
	for i, at := range []time.Duration{0, time.Second, 10 * time.Second} {
		first.asks = append(first.asks, ask{At: at, Who: operator, Write: "create Pod", Of: ref{"Pod", string(rune('a' + i))}, Code: 201})
	}
	references := map[string]*reference{
		"suite": {walk: walk{suite: true}, runs: []*trial{first}}, "other": {walk: walk{}, runs: []*trial{first}},
	}
	var plans []plan
	for _, name := range []string{"suite", "other"} {
		for nth := range 3 {
			plans = append(plans, plan{Walk: name, Faults: kit.Plan{kit.Reject(1, 500).BeforeWrite("create Pod", nth+1)}})
		}
	}
	var sizes []int
	for _, batch := range batches(plans, references) {
		sizes = append(sizes, len(batch))
	}
	if want := []int{2, 1, 1, 1, 1}; !slices.Equal(sizes, want) {
		t.Errorf("the batches have %v plans, want %v: the first and third write are apart, and only those of a suite", sizes, want)
	}
	if got := together(batches(plans, references)[0]); len(got.Faults) != 2 || got.Walk != "suite" {
		t.Errorf("together they are %v", got)
	}
}

// A batch is divided until the plan that makes a spec fail is alone.
func TestTryBatch_FindsThePlan(t *testing.T) {
	var batch []plan
	for nth := range 5 {
		batch = append(batch, plan{Walk: "suite", Pattern: Conflict, Faults: kit.Plan{kit.Reject(1, 500).BeforeWrite("create Pod", nth+1)}})
	}
	runs := 0
	e := examinationOf(nil)
	e.play = func(_ walk, p plan, _ uint64, _ *trial) *trial {
		runs++
		out := &trial{plan: p}
		for _, op := range p.Faults {
			out.faults = append(out.faults, happening{})
			if op.When.Nth == 4 {
				out.addWrong(wrong{specRule + "a", "it fails"})
			}
		}
		return out
	}
	r := &reference{walk: walk{name: "suite", suite: true}, runs: []*trial{{}}}
	e.tryBatch(r, batch, time.Now().Add(time.Hour))
	found := e.found.sorted()
	if e.report.Ran != len(batch) || len(found) != 1 || found[0].PlanID != batch[3].ID() {
		t.Errorf("%d of %d plans are counted, and the findings are %v; want one of %s", e.report.Ran, len(batch), found, batch[3].ID())
	}
	if most := 10; runs > most { // of 5 plans, twice; 2, 3, twice; 1, 2, twice; 1, 1
		t.Errorf("it took %d runs, want at most %d", runs, most)
	}
	chance := examinationOf(nil)
	runs = 0
	chance.play = func(_ walk, p plan, _ uint64, _ *trial) *trial {
		out := &trial{plan: p, faults: make([]happening, len(p.Faults))}
		if runs++; runs == 1 {
			out.addWrong(wrong{specRule + "a", "it fails"})
		}
		return out
	}
	chance.tryBatch(r, batch, time.Now().Add(time.Hour))
	if chance.report.Ran != len(batch) || runs != 2 {
		t.Errorf("of what one run alone shows %d plans are counted after %d runs, want %d after 2", chance.report.Ran, runs, len(batch))
	}
	e.play = func(walk, plan, uint64, *trial) *trial { return &trial{refused: searchEnded} }
	e.tryBatch(r, batch, time.Now().Add(time.Hour))
	if e.report.Ran != len(batch) {
		t.Error("plans are counted although the search has ended")
	}
}

// A suite whose spec fails is judged by that, and not by what it has left behind.
func TestReference_JudgeSuite(t *testing.T) {
	made := func(n int) *trial {
		out := &trial{plan: plan{Faults: kit.Plan{kit.LoseResponse()}}, faults: []happening{{}}, requests: map[string]int{"get Pod": 10}, attributed: true}
		for i := range n {
			out.changes = append(out.changes, change{Who: operator, Verb: "created", Of: ref{"Secret", "a"}, UID: string(rune('a' + i))})
		}
		return out
	}
	r := &reference{walk: walk{suite: true}, runs: []*trial{made(1)}}
	classes := func(t *trial) (out []Class) {
		for _, v := range r.judge(t) {
			out = append(out, v.class)
		}
		return out
	}
	if got := classes(made(1)); len(got) != 0 {
		t.Errorf("the same run has %v", got)
	}
	if got := classes(made(2)); len(got) != 1 || got[0] != TooMany {
		t.Errorf("two objects in place of one are %v, want %s", got, TooMany)
	}
	unknown := made(2)
	unknown.attributed = false
	if got := classes(unknown); len(got) != 0 {
		t.Errorf("two objects of which it is not known who made them are %v", got)
	}
	failed := made(2)
	failed.requests["get Pod"] = 5000
	failed.outcome([]failure{{"a", "etcdserver: request timed out"}}, &tail{}, nil, true)
	if got := classes(failed); len(got) != 1 || got[0] != SpecFails {
		t.Errorf("a failed spec is %v, want %s", got, SpecFails)
	}
	own := made(1)
	own.outcome([]failure{{"a", "etcdserver: request timed out"}}, &tail{}, nil, false)
	if got := classes(own); len(got) != 0 || !own.own {
		t.Errorf("a spec that gets the fault itself is %v", got)
	}
	// Nobody collects what is made for an object whose deletion the operator has not seen.
	for kind, want := range map[string]int{"Book": 0, "Page": 1} {
		orphans := made(1)
		orphans.plan.Faults, orphans.faults[0].at = kit.Plan{kit.Slow(time.Second, time.Second).Of("Book")}, time.Second
		orphans.changes = append(orphans.changes, change{Verb: "deleted", Who: user, Of: ref{kind, "a"}, At: time.Second},
			change{Verb: "created", Who: operator, Of: ref{"Secret", "b"}, At: 2 * time.Second})
		orphans.outcome([]failure{{"a", "it is there"}}, &tail{}, nil, true)
		if got := classes(orphans); len(got) != want || orphans.own != (want == 0) {
			t.Errorf("a spec that fails after a %s was deleted, of which the operator does not see the end, is %v, want %d", kind, got, want)
		}
	}
	hot := made(1)
	hot.requests["get Pod"] = 5000
	if got := classes(hot); len(got) != 1 || got[0] != Restless {
		t.Errorf("5000 requests in place of 10 are %v, want %s", got, Restless)
	}
}

// Ginkgo exits in another way if the code chooses specs.
func TestTrial_OutcomeOfChosenSpecs(t *testing.T) {
	for code, want := range map[string]int{"197": 0, "1": 1} {
		out := &trial{}
		out.outcome(nil, &tail{}, exec.Command("sh", "-c", "exit "+code).Run(), true)
		if got := out.allWrongs(); len(got) != want {
			t.Errorf("after the exit code %s %v are wrong, want %d", code, got, want)
		}
	}
}

// A panic that ginkgo reports hides no data race.
func TestTrial_OutcomeKeepsDataRaces(t *testing.T) {
	said := &tail{}
	if _, err := said.Write([]byte("Your Test Panicked\npanic: no\nWARNING: DATA RACE\n")); err != nil {
		t.Fatal(err)
	}
	out := &trial{}
	out.outcome(nil, said, nil, true)
	if got := out.allWrongs(); len(got) != 1 || got[0].rule != "data race" {
		t.Errorf("what is wrong is %v, want the data race alone", got)
	}
}

// A suite is not judged if none of its writes has a sender.
func TestTrial_ReplayWantsStacks(t *testing.T) {
	for stack, refused := range map[string]bool{"": true, "goroutine 7 [select]:": false} {
		out := &trial{}
		q := &simulate.Request{Verb: "create", Kind: schema.GroupKind{Kind: "Pod"}}
		if out.replay([]aim.Event{{Asked: q, Stack: stack}}); (out.refused != "") != refused || out.attributed == refused {
			t.Errorf("with the stack %q it is refused because of %q", stack, out.refused)
		}
	}
}

// The time of a run is bounded by its driver alone.
func TestKeptAt_LeavesOutTheTimeout(t *testing.T) {
	at := t.TempDir()
	for name, text := range map[string]string{"args": "-test.timeout=10m0s\x00-test.run=A\x00", "env": "A=b\x00", "dir": at, "suite.test": ""} {
		if err := os.WriteFile(filepath.Join(at, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if one, err := keptAt(at, ""); err != nil || !slices.Equal(one.args, []string{"-test.run=A"}) {
		t.Errorf("the arguments are %q (%v)", one.args, err)
	}
}
