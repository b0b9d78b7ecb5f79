// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/internal/aim"
	"github.com/flyball-dev/flyball/simulate/kit"
)

// failure is a spec that fails.
type failure struct{ name, text string }

// ginkgoReport is what is read of a report of ginkgo.
type ginkgoReport struct {
	SpecReports []struct {
		ContainerHierarchyTexts    []string
		LeafNodeType, LeafNodeText string
		State                      string
		Failure                    struct {
			Message  string
			Location struct {
				FileName   string
				LineNumber int
			}
		}
	}
}

// specsOf returns the specs that fail: of ginkgo's report, or of the output of go test.
func specsOf(report, said string) (failed []failure) {
	text, err := os.ReadFile(report)
	var reports []ginkgoReport
	if err == nil {
		err = json.Unmarshal(text, &reports)
	}
	for _, r := range reports {
		for _, spec := range r.SpecReports {
			switch spec.State {
			case "", "passed", "skipped", "pending":
				continue
			}
			name := strings.Join(append(slices.Clone(spec.ContainerHierarchyTexts), spec.LeafNodeText), " ")
			at := spec.Failure.Location
			failed = append(failed, failure{
				cmp.Or(strings.TrimSpace(name), spec.LeafNodeType), fmt.Sprintf("%s (%s:%d)", spec.Failure.Message, lastTwo(at.FileName), at.LineNumber),
			})
		}
	}
	if len(failed) > 0 && err == nil {
		return failed // the tests that run the specs fail too
	}
	return append(failed, testsOf(said)...)
}

// testsOf returns the tests that fail, by the output of go test -v. A test with subtests that fail is not among them.
func testsOf(said string) (failed []failure) {
	texts, running := map[string]string{}, ""
	var names []string
	for line := range strings.Lines(said) {
		words := strings.Fields(line)
		switch {
		case len(words) == 3 && words[0] == "===": // RUN, NAME or CONT
			running = words[2]
		case len(words) > 2 && words[0] == "---" && words[1] == "FAIL:":
			names = append(names, words[2])
		case strings.HasPrefix(line, "    ") && len(words) > 0 && words[0] != "---": // else the program writes it
			texts[running] += line
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(names, func(other string) bool { return strings.HasPrefix(other, name+"/") }) {
			failed = append(failed, failure{name, lastOf(texts[name])})
		}
	}
	return failed
}

// lastOf returns the end of a text.
func lastOf(text string) string {
	const most = 600
	text = strings.TrimSpace(text)
	if len(text) > most {
		text = "…" + text[len(text)-most:]
	}
	return text
}

// errorOfFault is what a client reads that gets the error of a fault itself.
var errorOfFault = regexp.MustCompile(`etcdserver: request timed out|\bEOF\b|connection reset|stream error|http2: |the object has been modified|already exists`)

// focused is how ginkgo exits if the code chooses specs, and none of them fails.
const focused = 197

// outcome takes note of how a run of a suite has ended. sure: it is certain who has sent each write.
func (t *trial) outcome(failed []failure, said *tail, exit error, sure bool) {
	text, complaints := said.text(), said.complaints()
	if strings.Contains(text, "Your Test Panicked") { // of ginkgo, about an assertion in a goroutine
		complaints = slices.DeleteFunc(complaints, func(w wrong) bool { return w.rule == "panic" })
	}
	for _, w := range complaints {
		t.addWrong(w)
	}
	if code := (&exec.ExitError{}); errors.As(exit, &code) && code.ExitCode() == focused {
		exit = nil
	}
	if exit != nil && len(failed)+len(complaints) == 0 {
		failed = []failure{{"the suite", fmt.Sprintf("%v: %s", exit, lastOf(text))}}
	}
	for _, f := range failed {
		if !sure && len(t.faults) > 0 && errorOfFault.MatchString(f.text) || t.leavesOrphans() {
			t.own = true
		}
	}
	for _, f := range failed {
		t.addWrong(wrong{specRule + f.name, fmt.Sprintf("the spec %q fails: %s", f.name, f.text)})
	}
}

// replay reads the trace of a server. sure: it is certain who has sent each write.
func (t *trial) replay(events []aim.Event) (sure bool) {
	t.attributed, t.requests, sure = true, map[string]int{}, true
	told := false // who has sent some write
	begun, at := time.Now(), time.Duration(0)
	r := newRecorder(t, func() time.Time { return begun.Add(at) })
	asked := map[int]simulate.Request{}
	first := slices.IndexFunc(events, func(e aim.Event) bool { return e.Asked != nil })
	for _, e := range events[max(first, 0):] { // what the server has at the start is nobody's
		at = e.At
		switch {
		case e.Asked != nil:
			q := *e.Asked
			t.requests[q.Verb+" "+q.Kind.String()]++
			n := len(t.asks)
			r.Asked(q)
			if q.Writes() {
				asked[q.Number+1] = q
				told, t.attributed, sure = told || e.Stack != "", t.attributed && e.Stack != "", sure && !e.Unsure
			}
			if lines := framesIn(e.Stack, 1); len(t.asks) > n && len(lines) > 0 {
				t.asks[n].Line = lines[0]
			}
		case e.Stored != nil:
			r.Stored(*e.Stored)
		case e.Answering > 0:
			r.Answering(asked[e.Answering])
		case e.Answered > 0:
			r.Answered(asked[e.Answered], e.Code)
			delete(asked, e.Answered)
		case e.Fault != "":
			r.happen(ofFaults, e.Fault)
		}
	}
	r.end()
	if len(t.plan.Faults) == 0 && len(t.asks) > 0 && !told {
		t.refused = "it is not known who sends its writes, as no stacks come from its process; if the path of temporary files is long, set TMPDIR to a short one"
	}
	return sure
}

// bySuite is the pace of suites: a spec may wait for some seconds, and often for ten.
var bySuite = pace{blind: 1500 * time.Millisecond}

// suitePlans returns the plans for a suite. The operator is in the process of the specs, so it is not ended. A change that
// is hidden until there is another one would be hidden for ever where a spec waits for its effect.
func suitePlans(walk string, t *trial, all bool) []plan {
	left := []kit.Verb{kit.Crash(0).Verb, kit.TimeTravel(0, 0).Verb, kit.Pause(0).Verb, kit.Coalesce().Verb}
	plans := slices.DeleteFunc(plansOf(walk, t, nil, bySuite, all), func(p plan) bool {
		return slices.ContainsFunc(p.Faults, func(op kit.Op) bool { return slices.Contains(left, op.Verb) })
	})
	a := analysis{walk: walk, t: t, moments: momentsOf(t), pace: bySuite}
	for _, m := range a.of(0, operator) {
		if m.done > 0 {
			a.add(Stale, "listed "+m.Write, 0, m.after(kit.RestartCache()))
		}
	}
	return append(plans, a.plans...)
}

// apart is how far from each other the faults of one run of a suite are, and mostTogether how many there are.
const (
	apart        = 4 * time.Second
	mostTogether = 16
)

// batches returns plans that are tried in one run, because their faults are over before the next one begins.
func batches(plans []plan, references map[string]*reference) (out [][]plan) {
	var times [][]time.Duration // of the plans of each batch
	for _, p := range plans {
		r := references[p.Walk]
		if !r.walk.suite {
			out, times = append(out, []plan{p}), append(times, nil)
			continue
		}
		at := r.first().timeOf(p)
		fits := func(i int) bool {
			return out[i][0].Walk == p.Walk && len(out[i]) < mostTogether &&
				!slices.ContainsFunc(times[i], func(other time.Duration) bool { return (at - other).Abs() < apart })
		}
		i := 0
		for i < len(out) && !fits(i) {
			i++
		}
		if i == len(out) {
			out, times = append(out, nil), append(times, nil)
		}
		out[i], times[i] = append(out[i], p), append(times[i], at)
	}
	return out
}

// timeOf returns when the write of a plan's first fault was asked for.
func (t *trial) timeOf(p plan) time.Duration {
	when := p.Faults[0].When
	for _, m := range momentsOf(t) {
		if (m.Who == user) == when.User && (m.Write == when.Before && m.asked == when.Nth || m.Write == when.After && m.done == when.Nth) {
			return m.At
		}
	}
	return 0
}

// together returns a plan with the faults of all.
func together(batch []plan) plan {
	if len(batch) == 1 {
		return batch[0]
	}
	p := plan{Walk: batch[0].Walk, Pattern: batch[0].Pattern}
	for _, one := range batch {
		p.Faults = append(p.Faults, one.Faults...)
	}
	return p
}

// slowly returns a plan in which each fault is a delay of the same length, which it shares with the operator's writes
// that follow in a run without faults. A spec that fails with it fails because of the time.
func (p plan) slowly(like *trial) plan {
	var faults kit.Plan
	moments := momentsOf(like)
	for _, op := range p.Faults {
		slow := kit.Delay(0, max(op.For, time.Second))
		slow.When = op.When
		begun, from := len(faults), like.timeOf(p)
		faults = append(faults, slow)
		for _, m := range moments {
			if m.Who == operator && m.At > from && m.At < from+slow.For && len(faults) < mostTogether {
				faults = append(faults, m.before(slow))
			}
		}
		for i := begun; i < len(faults); i++ {
			faults[i].For = slow.For / time.Duration(len(faults)-begun)
		}
	}
	p.Faults = faults
	return p
}
