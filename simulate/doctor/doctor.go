// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/kit"
)

// Operator is the program to examine. Samples and either Setup or Main are required.
type Operator struct {
	// Setup adds the controllers to a Flyball manager, as main does.
	Setup func(*manager.Manager) error
	// Main runs a program without a Flyball manager, such as one of controller-runtime, as for kit.RunMain: it
	// blocks until ctx ends, opens no ports, and leaves nothing in global variables.
	Main func(ctx context.Context, cfg *rest.Config) error
	// CRDs are files or directories of CustomResourceDefinitions, beside those of Cluster.
	CRDs []string
	// Samples are files or directories of objects that a user creates, in their order. The custom resources
	// among them are changed and deleted too; if there is none, all are.
	Samples []string
	// Cluster is everything else: the Scheme, Webhooks, Objects that exist at the start, Actors. Zero: the
	// actors of a cluster are the garbage collector, namespaces and workloads. Seeds and Faults are not used.
	Cluster kit.Config
	// Stubs are files of a status, as YAML or JSON, by kind, such as "Certificate.cert-manager.io", whose controller is
	// missing. Each object of the kind gets that status; observedGeneration in it is that of the object.
	Stubs map[string]string
	// Remedies are other forms of the program, by name, such as one with the bridge's line. Each finding is
	// tried with them, and the report says with which it is gone.
	Remedies map[string]func(ctx context.Context, cfg *rest.Config) error
	// Known is a file of the IDs of known findings, one in a line, with anything after a space. They do not
	// fail the test. Empty: none are known.
	Known string
	// MostPlans bounds the number of plans, the most promising ones first. 0: only Budget bounds it.
	MostPlans int
	// First ends the search at the first finding.
	First bool
	// Budget bounds, in real time, when a run begins. The last quarter of it is for plans alone. 0: ten minutes.
	Budget time.Duration
	// RestWithin bounds, in virtual time, how long the program may take until it rests after a step of the
	// user. 0: ten minutes.
	RestWithin time.Duration
}

var (
	onlyPlan = flag.String("doctor.plan", "", "package doctor: run this plan alone, by its ID")
	budget   = flag.Duration("doctor.budget", 0, "package doctor: how long to try plans, in place of Operator.Budget and MostPlans")
	out      = flag.String("doctor.out", "", "package doctor: where to write doctor.html, doctor.json, doctor.sarif and the histories; empty: nowhere")
)

// Test examines the program, and fails t for each finding that is not known. It returns the report. Misuse
// fails t with what to write instead.
func Test(t *testing.T, op Operator) *Report {
	t.Helper()
	r := Examine(t, op)
	for _, f := range r.Findings {
		if f.Known {
			t.Logf("known: %s [%s] %s", f.Class, f.ID, f.Text)
		} else {
			t.Error(f.text())
		}
	}
	t.Log(r.summary())
	return r
}

// Examine is Test without failing t for findings.
func Examine(t *testing.T, op Operator) *Report {
	t.Helper()
	subject, cfg, err := op.prepare()
	if err != nil {
		t.Fatalf("doctor: %v", err)
	}
	if *budget > 0 {
		op.Budget, op.MostPlans = *budget, 0
	}
	b := bubbles{setup: op.Setup, main: op.Main, cfg: cfg, restWithin: cmp.Or(op.RestWithin, 10*time.Minute)}
	within := func(b bubbles) player {
		return func(w walk, p plan, seed uint64, like *trial) (out *trial) {
			t.Run("plan="+p.ID(), func(t *testing.T) { out = b.play(t, w, p, seed, like) })
			return out
		}
	}
	e := &examination{
		subject: subject, play: within(b), pace: virtual, first: op.First, most: op.MostPlans, workers: runtime.GOMAXPROCS(0), only: *onlyPlan,
		budget: cmp.Or(op.Budget, 10*time.Minute), report: &Report{Test: t.Name(), Patterns: map[Pattern]int{}},
		replay: func(id string) string {
			return fmt.Sprintf("go test -run '^%s$' -doctor.plan=%s", regexp.QuoteMeta(t.Name()), id)
		},
		remedies: map[string]player{}, remedied: map[string]*reference{}, tried: map[string]bool{},
	}
	e.ends = time.Now().Add(e.budget)
	for name, main := range op.Remedies {
		e.remedies[name] = within(bubbles{main: main, cfg: cfg, restWithin: b.restWithin})
	}
	e.run()
	if *onlyPlan != "" && e.report.Ran+len(e.report.Findings) == 0 {
		t.Errorf("doctor: no plan has the ID %q; run the test without -doctor.plan for those of the present program, samples and CRDs", *onlyPlan)
	}
	if *out != "" {
		if err := e.write(*out); err != nil {
			t.Errorf("doctor: write the report: %v", err)
		}
	}
	return e.report
}

// prepare reads what the program is given.
func (op Operator) prepare() (subject, kit.Config, error) {
	if (op.Setup == nil) == (op.Main == nil) {
		return subject{}, kit.Config{}, errors.New("give one of Operator.Setup and Operator.Main: the function that main calls")
	}
	cfg := op.Cluster
	cfg.CRDs = slices.Concat(cfg.CRDs, op.CRDs)
	s, err := read(cfg.CRDs, op.Samples, op.Known)
	if err != nil {
		return s, kit.Config{}, fmt.Errorf("the operator's %w; paths are relative to the directory of the test", err)
	}
	if cfg.Actors == (simulate.Actors{}) {
		cfg.Actors = simulate.Actors{GarbageCollector: true, Namespaces: true, Workloads: true}
	}
	statuses, err := readStubs(op.Stubs)
	if err != nil {
		return s, cfg, err
	}
	if statuses != nil {
		cfg.Actors.Statuses = statuses
	}
	if cfg.Stay > 0 {
		cfg.Stay = max(cfg.Stay, window) // for pollsOf
	}
	cfg.MaxEvents = cmp.Or(cfg.MaxEvents, usualEvents+eventsOfAnObject*len(cfg.Objects)+eventsOfASample*len(s.samples))
	for _, space := range s.namespaces {
		if !slices.Contains(cfg.Namespaces, space) {
			cfg.Namespaces = append(slices.Clone(cfg.Namespaces), space)
		}
	}
	return s, cfg, nil
}
