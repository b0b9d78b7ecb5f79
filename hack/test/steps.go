// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const module = "github.com/flyball-dev/flyball"

// sequential.txt lists packages of the library that start no goroutine, and whose tests
// start none. The race detector finds nothing in them and costs several times as much; a
// rule of the house holds the list.
//
//go:embed sequential.txt
var sequential string

// heavy.txt lists tests that weigh, decode or compare much in one goroutine. The race detector
// costs them five to thirty times their time, so they run once without it. `make nightly` runs
// them under it.
//
//go:embed heavy.txt
var heavy string

// heavyTests returns the packages of heavy.txt, and a pattern of its tests.
func heavyTests() (packages []string, pattern string) {
	var names []string
	for line := range strings.Lines(heavy) {
		in, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		packages, names = append(packages, "./"+in), append(names, name)
	}
	return slices.Compact(packages), "^(" + strings.Join(names, "|") + ")$"
}

// A step is one run of the go command.
type step struct {
	name  string
	after string // the step that must have passed, if any
	dir   string // below the root
	env   []string
	args  []string
	named bool // only run if it is named
}

// String returns the command as one would type it, with the number of packages in place of
// their names.
func (s step) String() string {
	var words []string
	packages := 0
	for _, arg := range s.args {
		if strings.HasPrefix(arg, module) {
			packages++
			continue
		}
		words = append(words, arg)
	}
	text := strings.Join(append(slices.Clone(s.env), "go"), " ") + " " + strings.Join(words, " ")
	if packages > 0 {
		text += fmt.Sprintf(" (%d packages)", packages)
	}
	_, names := heavyTests()
	text = strings.ReplaceAll(text, names, "(those in hack/test/heavy.txt)")
	if s.dir != "" {
		text = "cd " + s.dir + " && " + text
	}
	return text
}

// packages are those of the workspace by how they are tested.
type packages struct {
	plain    []string // without the race detector
	programs []string // without it, and with a real control plane
	race     []string
	servers  []string // with the race detector and a real control plane
}

// programRuns are packages whose tests run whole programs, or compare a server with what it is to
// answer. The race detector costs them three to six times as much, and what runs at once in
// them is the library's, which its own tests run under it. `make nightly` runs them under it.
var programRuns = regexp.MustCompile("^" + module + "/(cmd|examples|hack|envtest|internal/house|bridge/controllerruntime/zoo|simulate/(cmd|conformance|doctor|kit|simtest|internal/transcript))(/|$)")

// slow are tests and packages that start servers or processes, or sweep seeds.
const slow = "^(TestControlPlane|TestIntegration|TestEnvtest|TestClient_OnARealControlPlane)$"

var slowPackages = regexp.MustCompile(`/(hack|examples|bridge/controllerruntime)(/|$)|/cmd/flyball$|/internal/(crds|pack)$|/internal/house$|clientgo/factory$|integration$|envtest$|simulate/(doctor|kit|internal/transcript)`)

// quick are packages for the inner loop.
func (p packages) quick() []string {
	return slices.DeleteFunc(slices.Concat(p.plain, p.programs, p.race, p.servers), slowPackages.MatchString)
}

// options are those of the command.
type options struct {
	fresh bool
	seeds int
}

// Sweeps run one program under many seeds. A seed costs six times as much with the race
// detector, so each sweep runs with two seeds under it and with the rest without.
const sweeps = "^Test(Kit|RunMain)_Swarm|^TestKit_ReplicasShareObjects|^TestSimulation_"

// members are the seeds of replicas that have nothing but their Leases.
const members = "^TestOwnership_NoShardIsOpenTwice_M31$"

// long are tests of doctor that run for half a minute. `make doctor` runs them.
const long = "^TestCommand_ExaminesASuite$|^TestDoctor_(FindsClassicBugs|AClusterOf10000Objects)$"

// steps returns every step, those that others wait for first.
func steps(p packages, o options) []step {
	test := func(args ...string) []string {
		all := []string{"test", "-vet=off", "-timeout=20m"}
		if o.fresh {
			all = append(all, "-count=1")
		}
		return append(all, args...)
	}
	race := []string{"CGO_ENABLED=1"}
	alone := []string{"GOWORK=off"}
	seeds := func(n int) string { return fmt.Sprintf("-sim.seeds=%d", n) }
	// Two replicas, and webhooks, take ten times as long as one process.
	few := o.seeds/10 + 1
	weighing, weights := heavyTests()
	return []step{
		{name: "control-plane", args: []string{"run", "./hack/controlplane"}},
		{name: "plain", args: test(append([]string{"-skip", sweeps + "|" + members + "|" + long}, p.plain...)...)},
		{name: "race", env: race, args: test(append([]string{"-race", "-skip", sweeps + "|" + weights}, p.race...)...)},
		// These mostly wait for servers and leases.
		{name: "servers", after: "control-plane", env: race, args: test(append([]string{"-race", "-p=4", "-skip", sweeps + "|" + weights}, p.servers...)...)},
		{name: "programs", after: "control-plane", args: test(append([]string{"-p=4", "-skip", sweeps + "|" + long}, p.programs...)...)},
		{name: "heavy", args: test(append([]string{"-run", weights}, weighing...)...)},
		{name: "sweeps-race", env: race, args: test("-race", "-run", sweeps, "-skip", "SwarmTriggers", "./simulate/kit", seeds(2))},
		{name: "sweeps-website", args: test("-run", "^TestSimulation", "-skip", "^TestSimulation_(Replicas|Webhooks)", "./examples/website", seeds(o.seeds))},
		{name: "sweeps-replicas", args: test("-run", "^TestSimulation_(Replicas|Webhooks)", "./examples/website", seeds(few))},
		{name: "sweeps-doubts", args: test("-run", "^TestKit_Swarm(OfDoubts|LeavesTheCopier)", "./simulate/kit", seeds(o.seeds))},
		{name: "sweeps-kit", args: test("-run", "^Test(Kit|RunMain)_Swarm|^TestKit_ReplicasShareObjects", "-skip", "OfDoubts|TheCopier", "./simulate/kit", seeds(few))},
		{name: "sweeps-members", env: []string{fmt.Sprintf("SEEDS=%d", o.seeds)}, args: test("-timeout=2h", "-run", members, "./simulate/simtest")},
		{name: "tools", dir: "hack/tools", env: alone, args: test("-short", "./bench/ratios", "./licenses", "./observability", "./release")},
		{name: "programs-race", after: "control-plane", named: true, env: race, args: test(slices.Concat([]string{"-race", "-p=4", "-skip", sweeps}, p.plain, p.programs)...)},
		{name: "website-race", named: true, env: race, args: test("-race", "-run", sweeps, "-skip", "^TestSimulation_FindsALostWrite", "./examples/website", seeds(2))},
		{name: "heavy-race", named: true, env: race, args: test(append([]string{"-race", "-run", weights}, weighing...)...)},
		{name: "quick", named: true, args: append([]string{"test", "-short", "-skip", slow}, p.quick()...)},
	}
}

// choose returns the steps with the given names and those that they need. Without a name, it
// returns all that need not be named.
func choose(all []step, names []string) ([]step, error) {
	if len(names) == 0 {
		return slices.DeleteFunc(slices.Clone(all), func(s step) bool { return s.named }), nil
	}
	wanted := map[string]bool{}
	for _, name := range names {
		i := slices.IndexFunc(all, func(s step) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no step is called %q; go run ./hack/test -list names them", name)
		}
		wanted[name] = true
		if all[i].after != "" {
			wanted[all[i].after] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(s step) bool { return !wanted[s.name] }), nil
}

// find asks the go command which packages of the workspace have tests, and which of these
// use a real control plane.
func find(ctx context.Context, root string) (packages, error) {
	listed, err := output(ctx, root, "go", "list", "-test", "-f", `{{.ImportPath}}{{range .Deps}} {{.}}{{end}}`, module+"/...")
	if err != nil {
		return packages{}, fmt.Errorf("list the packages: %w", err)
	}
	var found packages
	quiet := strings.Fields(sequential)
	for line := range strings.Lines(listed) {
		fields := strings.Fields(line)
		name, isTest := strings.CutSuffix(fields[0], ".test")
		if !isTest {
			continue
		}
		real := slices.Contains(fields[1:], module+"/envtest")
		switch {
		case programRuns.MatchString(name) && real:
			found.programs = append(found.programs, name)
		case programRuns.MatchString(name), slices.Contains(quiet, name):
			found.plain = append(found.plain, name)
		case name == module+"/integration": // it waits for minutes, so it begins first
			found.servers = slices.Insert(found.servers, 0, name)
		case real:
			found.servers = append(found.servers, name)
		default:
			found.race = append(found.race, name)
		}
	}
	return found, nil
}
