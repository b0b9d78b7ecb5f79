// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var modelRuns = flag.String("model", "small",
	`what SPIN explores: "small", or "full", some 30 minutes and 4 GB`)

const (
	modelFile = "model/ownership.pml"
	planFile  = "model/plan.pml"
)

// The model says something about the code only as long as both have the same constants and states.
func TestModel_HasTheConstantsOfTheCode(t *testing.T) {
	text, err := os.ReadFile(modelFile)
	if err != nil {
		t.Fatal(err)
	}
	defined := map[string]string{}
	constant := regexp.MustCompile(`(?m)^#define (\w+) +(\w+)`)
	for _, match := range constant.FindAllStringSubmatch(string(text), -1) {
		defined[match[1]] = match[2]
	}
	for name, want := range map[string]int{
		"TRUST_NUMERATOR":   TrustNumerator,
		"TRUST_DENOMINATOR": TrustDenominator,
		"COLLECT_AFTER":     CollectAfter,
	} {
		if defined[name] != strconv.Itoa(want) {
			t.Errorf("%s is %q in the model and %d in the code", name, defined[name], want)
		}
	}
	states := map[string]bool{
		ShardHeld: true, ShardDraining: true,
		"live": true, "ended": true, // members whose Leases name them, and nobody
		"free":      true, // a shard that this process does not work on
		"none":      true, // no Lease
		"releasing": true, // of the model alone: free, and the release is in flight
	}
	for name := range defined {
		for _, prefix := range []string{"MEMBER_", "SHARD_"} {
			if state, ok := strings.CutPrefix(name, prefix); ok {
				if lower := strings.ToLower(state); !states[lower] {
					t.Errorf("the model has the state %s, which the code has not", name)
				} else {
					delete(states, lower)
				}
			}
		}
	}
	for state := range states {
		t.Errorf("the code has the state %q, which the model has not", state)
	}
}

// rulesDropped are the rules whose absence SPIN finds, by what drops them in the model.
var rulesDropped = map[string]string{
	"ABSENT_MEMBER_AT_ONCE": "an absent member counts as ended after a lease duration",
	"ABSENT_SHARD_AT_ONCE":  "a shard is held a lease duration after its Lease was created",
	"CLAIM_FROM_LIVE":       "a shard is claimed from a member that has ended",
	"CLAIM_WITHOUT_CAS":     "a claim replaces the version that was seen",
	"FENCE_AT_ONCE":         "a member is fenced after a lease duration without renewal",
	"FENCE_WITHOUT_CAS":     "a fence replaces the version that was seen",
	"GATE_WITHOUT_TRUST":    "requests pass only while the member trusts itself",
	"NOT_SHUT":              "a shard is lost once the watch shows it",
	"OLD_IDENTITY":          "an identity that has ended is not used again",
	"RELEASE_BEFORE_DRAIN":  "the gate is shut before the release is sent",
	"TRUST_WITHOUT_WATCH":   "trust needs that the own watch has shown the renewal",
	"TWO_WATCHES":           "one watch shows member and shard Leases",
	"UID_IGNORED":           "a Lease with another uid is another Lease",
	"WAIT_BEFORE_CREATE":    "the lease duration is waited for after a Lease was created, not before",
}

// planRulesDropped are those of the change of the plan.
var planRulesDropped = map[string]string{
	"CHANGED_LAST":      "a change is written to the plan Lease first",
	"CREATED_SET":       "a plan Lease that is created has a change to come",
	"GATE_WITHOUT_PLAN": "the gate and claims need that the plan Lease has the own plan",
	"SET_AT_ONCE":       "a change is over a lease duration after the last shard Lease was created",
}

func TestModel_KnowsEachRuleThatIsDropped(t *testing.T) {
	knowsRules(t, modelFile, rulesDropped)
	knowsRules(t, planFile, planRulesDropped)
}

func knowsRules(t *testing.T, file string, rules map[string]string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	options := []string{
		"LIVENESS", "LAPSES", "DELETIONS", "MOVES", "MEMBERS_KEPT", "TWO_GATES_ALONE",
	}
	found := map[string]bool{}
	option := regexp.MustCompile(`(?:ifdef |ifndef |defined\()([A-Z_]{2,})`)
	for _, match := range option.FindAllStringSubmatch(string(text), -1) {
		if !slices.Contains(options, match[1]) {
			found[match[1]] = true
		}
	}
	for name := range found {
		if rules[name] == "" {
			t.Errorf("%s drops a rule by %s, which no test does", file, name)
		}
	}
	for name := range rules {
		if !found[name] {
			t.Errorf("%s has no %s", file, name)
		}
	}
}

// instance is a run of SPIN.
type instance struct {
	name    string
	model   string // modelFile by default
	defines string
	compile string // in addition
	run     string
	broken  bool // SPIN has to find an error
}

const (
	safetyRun = "-DSAFETY -DNOCLAIM"
	cyclesRun = "-DNP"
)

var small = []instance{
	{name: "safety", defines: "-DN=2 -DS=1", compile: safetyRun},
	{name: "liveness", defines: "-DN=2 -DS=1 -DLIVENESS", compile: safetyRun},
	{name: "no endless run", defines: "-DN=2 -DS=1 -DLIVENESS", compile: cyclesRun, run: "-l"},
}

var full = []instance{
	{
		name: "safety of 3", defines: "-DN=3 -DS=1 -DMEMBERS_KEPT", compile: safetyRun,
		run: "-m20000000 -w26",
	},
	{
		name: "no endless run of 3", defines: "-DN=3 -DS=1 -DLIVENESS -DLAPSES=2", compile: cyclesRun,
		run: "-l",
	},
	{name: "safety of the plan", model: planFile, defines: "-DN=2", compile: safetyRun},
	{name: "liveness of 3", defines: "-DN=3 -DS=1 -DLIVENESS -DLAPSES=2", compile: safetyRun},
	{name: "liveness of 2 shards", defines: "-DN=2 -DS=2 -DLIVENESS", compile: safetyRun},
	{
		name: "no endless run with 2 shards", defines: "-DN=2 -DS=2 -DLIVENESS", compile: cyclesRun,
		run: "-l",
	},
}

func TestModel_SafetyAndLiveness(t *testing.T) {
	needSpin(t)
	runs := small
	switch *modelRuns {
	case "small":
	case "full":
		runs = append(runs, full...)
	default:
		t.Fatalf("-model is %q, want small or full", *modelRuns)
	}
	for _, run := range runs {
		t.Run(run.name, func(t *testing.T) { explore(t, run) })
	}
}

// A rule that can be dropped is superfluous, or the model is too weak.
func TestModel_EachRuleIsNeeded(t *testing.T) {
	needSpin(t)
	some := map[string]bool{"TRUST_WITHOUT_WATCH": true, "FENCE_AT_ONCE": true}
	for name, rule := range rulesDropped {
		if *modelRuns == "small" && !some[name] {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Logf("without the rule: %s", rule)
			explore(t, instance{
				defines: "-DN=2 -DS=1 -DTWO_GATES_ALONE -D" + name, compile: safetyRun, broken: true,
			})
		})
	}
	for name, rule := range planRulesDropped {
		if *modelRuns == "small" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Logf("without the rule: %s", rule)
			identities := 2
			if name == "CHANGED_LAST" {
				identities = 3 // one that has ended, with a request in flight
			}
			explore(t, instance{
				model: planFile, defines: fmt.Sprintf("-DN=%d -D%s", identities, name),
				compile: safetyRun, run: "-m70", broken: true, // a run to the error is short
			})
		})
	}
}

func needSpin(t *testing.T) {
	t.Helper()
	for _, program := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the model is not explored: there is no %s on this machine", program)
		}
	}
}

// explore runs SPIN, and fails unless it explores all states and finds what it has to.
func explore(t *testing.T, run instance) {
	t.Helper()
	dir := t.TempDir()
	model, err := filepath.Abs(cmp.Or(run.model, modelFile))
	if err != nil {
		t.Fatal(err)
	}
	command(t, dir, "spin "+run.defines+" -a "+model)
	command(t, dir, "gcc -w -O1 -DNOREDUCE -DCOLLAPSE -DMEMLIM=10000 "+run.compile+" -o pan pan.c")
	out := command(t, dir, "./pan -m3000000 "+run.run)
	errors := regexp.MustCompile(`errors: (\d+)`).FindStringSubmatch(out)
	switch {
	case errors == nil:
		t.Fatalf("SPIN prints no number of errors:\n%s", out)
	case errors[1] == "0" && run.broken:
		t.Errorf("SPIN finds no error, want one:\n%s", out)
	case errors[1] != "0" && !run.broken:
		trail := command(t, dir, "spin "+run.defines+" -t -p -g -k "+filepath.Base(model)+".trail "+model)
		t.Errorf("SPIN finds an error:\n%s\n%s", out, trail)
	case strings.Contains(out, "Search not completed") || strings.Contains(out, "max search depth"):
		if !run.broken {
			t.Errorf("SPIN has not explored all states:\n%s", out)
		}
	}
	states := regexp.MustCompile(`\d+ states, stored`).FindString(out)
	t.Logf("%s, %s", states, regexp.MustCompile(`pan: elapsed time.*`).FindString(out))
}

func command(t *testing.T, dir, line string) string {
	t.Helper()
	words := strings.Fields(line)
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}
