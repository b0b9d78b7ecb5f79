// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/flyball-dev/flyball/internal/manifest"
	"github.com/flyball-dev/flyball/simulate"
)

// subject is what is known about a program before it runs.
type subject struct {
	crds, samples []*unstructured.Unstructured
	namespaces    []string // of the samples
	owners        []string // kinds of the custom resources among the samples
	walks         []walk
	known         map[string]bool // IDs of findings
}

// read reads the files of a subject.
func read(crds, samples []string, known string) (s subject, err error) {
	if len(samples) == 0 {
		return s, errors.New("samples are missing; name files of objects that a user of the program creates, such as config/samples")
	}
	if s.samples, err = manifest.Read(samples, "objects", isObject); err != nil {
		return s, fmt.Errorf("samples: %w", err)
	}
	if len(crds) > 0 {
		isDefinition := func(u *unstructured.Unstructured) bool { return u.GetKind() == manifest.Definition }
		if s.crds, err = manifest.Read(crds, manifest.Definition, isDefinition); err != nil {
			return s, fmt.Errorf("definitions: %w", err)
		}
	}
	if s.known, err = readKnown(known); err != nil {
		return s, fmt.Errorf("known findings: %w", err)
	}
	var custom []*unstructured.Unstructured
	for _, sample := range s.samples {
		if space := sample.GetNamespace(); space != "" && space != "default" && !slices.Contains(s.namespaces, space) {
			s.namespaces = append(s.namespaces, space)
		}
		if schemaOf(s.crds, sample) != nil {
			custom = append(custom, sample)
		}
	}
	if len(custom) == 0 { // the program is about built-in kinds
		custom = s.samples
	}
	var fields []fieldOf
	for _, sample := range custom {
		if owner := sample.GroupVersionKind().GroupKind().String(); !slices.Contains(s.owners, owner) {
			s.owners = append(s.owners, owner)
		}
		schema := schemaOf(s.crds, sample)
		if schema == nil {
			schema = schemaLike(sample.Object)
		}
		for _, m := range mutationsOf(schema, sample) {
			fields = append(fields, fieldOf{sample: sample, mutation: m})
		}
	}
	s.walks = walksOf(s.samples, custom, different(fields))
	return s, nil
}

// isObject leaves out what kustomize reads.
func isObject(u *unstructured.Unstructured) bool {
	return u.GetKind() != "Kustomization" && u.GetKind() != "" && u.GetName() != ""
}

// readStubs reads the statuses of kinds, from a file each.
func readStubs(files map[string]string) (*simulate.Statuses, error) {
	if len(files) == 0 {
		return nil, nil
	}
	all := simulate.Statuses{}
	for kind, name := range files {
		var status map[string]any
		text, err := os.ReadFile(name)
		if err == nil {
			err = yaml.Unmarshal(text, &status)
		}
		if err == nil && len(status) == 0 {
			err = errors.New("there is no field; write those of the status, such as {phase: Ready}")
		}
		if err != nil {
			return nil, fmt.Errorf("the stub of %s: %s: %w", kind, name, err)
		}
		all[schema.ParseGroupKind(kind)] = status
	}
	return &all, nil
}

// readKnown returns the first words of a file's lines.
func readKnown(name string) (map[string]bool, error) {
	known := map[string]bool{}
	if name == "" {
		return known, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // read only
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if id, _, _ := strings.Cut(strings.TrimSpace(lines.Text()), " "); id != "" && !strings.HasPrefix(id, "#") {
			known[id] = true
		}
	}
	return known, lines.Err()
}

// player runs a walk with a plan. like is a run without faults; nil: this is the first one.
type player func(w walk, p plan, seed uint64, like *trial) *trial

// examination is the search for findings.
type examination struct {
	subject
	play     player
	remedies map[string]player
	remedied map[string]*reference // walks with a remedy, by both names
	pace     pace
	workers  int
	only     string    // the ID of the only plan; empty: all
	ends     time.Time // of the budget
	budget   time.Duration
	first    bool // one finding is enough
	most     int  // plans; 0: all
	// repetitions of each plan with a finding; at least the constant
	repetitions int
	// thrifty: a run takes real time. There are fewer runs without faults, and the first half of the budget is for plans.
	thrifty  bool
	names    *view   // of the first walk, for those that have one run; nil: not known yet
	made     objects // by that walk
	replay   func(planID string) string
	progress func(done, of int, findings int) // nil: nobody looks
	report   *Report
	found    collection
	telling  sync.Mutex      // held around progress, whose calls are one after the other
	mu       sync.Mutex      // guards found, tried and report
	tried    map[string]bool // plans by their IDs; false: refused
}

func (e *examination) run() {
	began := time.Now()
	defer func() { e.report.Took = time.Since(began) }()
	if e.only != "" {
		e.finish(e.alone())
		return
	}
	var base, fields, fresh []walk
	for _, w := range e.walks {
		switch {
		case !w.plain:
			base = append(base, w)
		case w.field != nil:
			fields = append(fields, w)
		default:
			fresh = append(fresh, w)
		}
	}
	references := e.referAll(base[:1]) // the others then know what the first one leads to
	e.noteForeign(references[base[0].name])
	if first := references[base[0].name]; first != nil {
		if e.names = first.view; !first.first().rested() {
			e.skip("everything else: the program does not come to rest without a fault, so nothing can be compared", false)
			e.finish(references)
			return
		}
		e.made = first.first().last
	}
	if !e.ended() {
		maps.Copy(references, e.referAll(base[1:]))
	}
	if e.thrifty { // the most promising plans come before the walks of fields
		e.try(references, base, e.ends.Add(-e.budget/2))
	}
	if !e.ended() {
		maps.Copy(references, e.referAll(fields))
		maps.Copy(references, e.referAll(slices.DeleteFunc(fresh, func(w walk) bool { return !isAskedFor(w, references) })))
	}
	if changed := e.judgeWalks(references); !e.ended() {
		if time.Now().Before(e.ends) {
			more := effective(changed)
			e.walks = append(e.walks, more...)
			maps.Copy(references, e.referAll(more))
			base = append(base, more...)
		}
		e.try(references, base, e.ends)
	}
	all := coverage{}
	all.plans(e.plans(references, base), e.tried)
	all.fields(e.walks, references)
	e.report.Coverage = all.list()
	e.finish(references)
}

// judgeWalks judges the walks without faults, and returns those of fields.
func (e *examination) judgeWalks(references map[string]*reference) (fields []*reference) {
	for _, w := range e.walks {
		r := references[w.name]
		if r == nil {
			continue
		}
		e.judge(r.judgeDeclarations(references[w.fresh]), r.first(), Declarative)
		if w.field != nil {
			fields = append(fields, r)
		}
	}
	return fields
}

// isAskedFor reports whether a walk that the server accepts is compared with a fresh one, which creates the same at once.
func isAskedFor(fresh walk, references map[string]*reference) bool {
	for _, r := range references {
		if r.walk.fresh == fresh.name {
			return true
		}
	}
	return false
}

// noteForeign takes note of kinds whose objects have no status: the controllers are others, and there is no stub, or the
// server refuses its status.
func (e *examination) noteForeign(r *reference) {
	if r == nil {
		return
	}
	known := map[string]bool{}
	for _, owner := range e.owners {
		known[owner] = true
	}
	for _, kind := range slices.Sorted(maps.Keys(r.first().stubs)) {
		known[kind] = true
		e.skip(fmt.Sprintf("what the program does when %s has a status: the server refuses that of the stub: %s", kind, r.first().stubs[kind]), false)
	}
	for _, of := range sortedRefs(r.first().last) {
		u := &unstructured.Unstructured{Object: r.first().last[of]}
		if u.Object["status"] == nil && !known[of.Kind] && properties(schemaOf(e.crds, u))["status"] != nil {
			known[of.Kind] = true
			e.skip(fmt.Sprintf("what the program does when %s has a status: nothing here writes one; a stub of the kind does", of), false)
		}
	}
}

// alone runs the only plan, and the walk without faults that it belongs to.
func (e *examination) alone() map[string]*reference {
	const enough = 24 * time.Hour // the budget is for many plans
	e.ends = time.Now().Add(enough)
	for _, w := range e.walks { // walks are plans without faults too
		if (plan{Walk: w.name, Pattern: Declarative}).ID() != e.only {
			continue
		}
		if e.thrifty { // such a walk has one run
			if first := e.refer(e.walks[0]); first != nil {
				e.names = first.view
			}
		}
		alike := slices.DeleteFunc(slices.Clone(e.walks), func(other walk) bool { return other.name != w.name && other.name != w.fresh })
		references := e.referAll(alike)
		if r := references[w.name]; r != nil {
			e.judge(r.judgeDeclarations(references[w.fresh]), r.first(), Declarative)
		}
		return references
	}
	for _, w := range e.walks {
		if w.field != nil {
			e.walks = append(e.walks, w.faulty()...)
		}
	}
	for _, w := range e.walks {
		if w.plain || !e.has(w) {
			continue
		}
		references := e.referAll([]walk{w})
		e.try(references, []walk{w}, e.ends)
		return references
	}
	return nil
}

// has reports whether a walk has the only plan. It takes fewer runs than refer.
func (e *examination) has(w walk) bool {
	seeds, none := e.seeds(w), plan{Walk: w.name, Pattern: Declarative}
	like := e.play(w, none, seeds[0], nil)
	if like.refused != "" {
		return false
	}
	t := e.play(w, none, seeds[len(seeds)-1], like)
	if t.refused != "" || len(t.took) < len(w.steps) {
		return false
	}
	return slices.ContainsFunc(e.plansFor(w, t), func(p plan) bool { return p.ID() == e.only })
}

// try runs the plans of walks that were not run yet, until a time.
func (e *examination) try(references map[string]*reference, walks []walk, until time.Time) {
	plans := e.plans(references, walks)
	e.report.Plans = len(plans)
	plans = slices.DeleteFunc(ordered(plans), func(p plan) bool {
		_, known := e.tried[p.ID()]
		return known || e.only != "" && p.ID() != e.only
	})
	if e.most > 0 {
		plans = plans[:min(len(plans), e.most-len(e.tried))]
	}
	each(e.workers, batches(plans, references), func(batch []plan) { e.tryBatch(references[batch[0].Walk], batch, until) })
}

// tryBatch runs plans together, and if something is wrong then, each half of them, until a time.
func (e *examination) tryBatch(r *reference, batch []plan, until time.Time) {
	if time.Now().After(until) || e.ended() {
		return
	}
	t := e.play(r.walk, together(batch), 1, r.first())
	verdicts := r.judge(t)
	if len(verdicts) > 0 && (e.first || len(batch) > 1) {
		verdicts = e.confirm(r, t, verdicts)
	}
	switch {
	case t.refused == searchEnded:
	case t.refused != "":
		e.skip(fmt.Sprintf("plans of walk %q: %s", r.walk.name, t.refused), false)
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, p := range batch {
			e.tried[p.ID()] = false
		}
	case len(batch) == 1:
		e.judge(verdicts, t, batch[0].Pattern)
		e.count(batch[0], t, e.report.Plans)
	case len(verdicts) == 0 && !t.own:
		for i, p := range batch {
			e.count(p, &trial{plan: p, faults: t.faults[:min(max(len(t.faults)-i, 0), 1)]}, e.report.Plans)
		}
	default:
		e.tryBatch(r, batch[:len(batch)/2], until)
		e.tryBatch(r, batch[len(batch)/2:], until)
	}
}

// confirm returns the verdicts on a run that another run of its plan shows too, so that no chance ends the search or
// divides a batch.
func (e *examination) confirm(r *reference, t *trial, verdicts []verdict) []verdict {
	again := e.play(r.walk, t.plan, t.seed, r.first())
	if again.refused != "" || again.own || !again.aimed() || again.isBlind() { // it says nothing
		return verdicts
	}
	shown := r.judge(again)
	return slices.DeleteFunc(verdicts, func(v verdict) bool {
		return !slices.ContainsFunc(shown, func(other verdict) bool { return other.alike(v) })
	})
}

// plansFor returns the plans of a walk by a run without faults.
func (e *examination) plansFor(w walk, t *trial) []plan {
	all := e.only != "" // which plan of a state is left depends on the times of this run
	if w.suite {
		return suitePlans(w.name, t, all)
	}
	return plansOf(w.name, t, e.owners, e.pace, all)
}

// plans returns those of walks.
func (e *examination) plans(references map[string]*reference, walks []walk) (plans []plan) {
	for _, w := range walks {
		if r := references[w.name]; r != nil {
			plans = append(plans, r.plans...)
		}
	}
	return plans
}

// ended reports whether the search is over, because one finding is enough.
func (e *examination) ended() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.first && len(e.found.all) > 0
}

// referAll runs walks without faults. A walk that the server refuses has no reference.
func (e *examination) referAll(walks []walk) map[string]*reference {
	began := time.Now()
	defer func() { e.report.Prepared += time.Since(began) }()
	var mu sync.Mutex
	references := map[string]*reference{}
	each(e.workers, walks, func(w walk) {
		if r := e.refer(w); r != nil {
			mu.Lock()
			defer mu.Unlock()
			references[w.name] = r
		}
	})
	return references
}

// each calls f for each element, several at a time, in their order.
func each[T any](workers int, all []T, f func(T)) {
	next := make(chan T)
	var work sync.WaitGroup
	for range min(max(workers, 1), len(all)) {
		work.Go(func() {
			for one := range next {
				f(one)
			}
		})
	}
	for _, one := range all {
		next <- one
	}
	close(next)
	work.Wait()
}

// refer runs a walk without faults. It returns nil if the server refuses it.
func (e *examination) refer(w walk) *reference {
	r := &reference{walk: w}
	if w.plain && (e.thrifty && e.names == nil || time.Until(e.ends) < e.budget/4) {
		e.leave(w)
		return nil
	}
	for _, seed := range e.seeds(w) {
		like := e.guess(w)
		if len(r.runs) > 0 {
			like = r.runs[0]
			like.view = learn(r.runs)
		}
		t := e.play(w, plan{Walk: w.name, Pattern: Declarative}, seed, like)
		if w.plain && t.refused == searchEnded {
			e.leave(w)
			return nil
		}
		if undo := len(w.steps) - 1; t.refused != "" && w.plain && undo == 2 && len(t.ends) == undo {
			return e.refer(w.withoutUndo())
		}
		if t.refused != "" {
			e.skip(fmt.Sprintf("walk %q: %s", w.name, t.refused), w.plain)
			return nil
		}
		r.runs = append(r.runs, t)
		if !t.rested() {
			break
		}
	}
	e.analyse(r)
	return r
}

// analyse makes the view and the plans of a walk, and judges its runs without faults.
func (e *examination) analyse(r *reference) {
	w := r.walk
	slices.Reverse(r.runs)
	r.view = learn(r.runs)
	if len(r.runs) == 1 && e.names != nil {
		r.view = e.names.with(r.view)
	}
	r.first().view = r.view
	switch {
	case w.suite:
		r.plans = e.plansFor(w, r.first())
		e.skipFailing(r)
		return
	case w.plain:
	case !r.first().rested() && (e.thrifty || len(r.first().took) < len(w.steps)):
		e.skip(fmt.Sprintf("walk %q: the program does not come to rest without faults, so its end states are not compared, and no faults are tried", w.name), false)
	default:
		r.plans = e.plansFor(w, r.first())
	}
	alone := &reference{walk: w, runs: []*trial{{}}, view: r.view}
	e.judge(alone.judgeRules(r.first()), r.first(), Declarative)
	for _, run := range r.runs { // usually one is watched for that long
		e.judge(alone.judgePolls(run), run, Declarative)
	}
}

// guess returns what the first walk says about another one, as if that had been run; nil: nothing.
func (e *examination) guess(w walk) *trial {
	if e.made == nil || !e.thrifty {
		return nil
	}
	t := &trial{view: e.names, ends: make([]objects, len(w.steps))}
	if w.steps[0].text == e.walks[0].steps[0].text {
		t.ends[0] = e.made
		if w.returns {
			t.ends[len(t.ends)-1] = e.made
		}
	}
	return t
}

// seeds are those of the runs of a walk without faults.
func (e *examination) seeds(w walk) []uint64 {
	switch {
	case w.suite:
		return []uint64{1, 2, 3}
	case e.thrifty && w.plain:
		return []uint64{1}
	case !e.thrifty && !w.plain:
		return []uint64{1, 2, 3, 1} // the first one does not know how long it takes
	}
	return []uint64{1, 2}
}

// leave takes note of a walk for which there is no time.
func (e *examination) leave(w walk) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.report.Untried = append(e.report.Untried, w.name)
}

// skip takes note of what could not be judged, once.
func (e *examination) skip(text string, expected bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if expected {
		e.report.Refused = append(e.report.Refused, text)
	} else if !slices.Contains(e.report.Skipped, text) {
		e.report.Skipped = append(e.report.Skipped, text)
	}
}

// count takes note of a plan that was run.
func (e *examination) count(p plan, t *trial, of int) {
	e.telling.Lock()
	defer e.telling.Unlock()
	e.mu.Lock()
	e.tried[p.ID()] = true
	e.report.Ran++
	e.report.Patterns[p.Pattern]++
	if !t.aimed() {
		e.report.Missed++
	}
	if t.isBlind() {
		e.report.Circled++
	}
	if t.own {
		e.report.Own++
	}
	done, findings := e.report.Ran, len(e.found.all)
	e.mu.Unlock()
	if e.progress != nil {
		e.progress(done, of, findings)
	}
}

// judge adds findings, with an only plan those of that one.
func (e *examination) judge(verdicts []verdict, t *trial, pattern Pattern) {
	if e.only != "" && t.plan.ID() != e.only {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(verdicts) > 0 {
		class := verdicts[0].class
		var same []verdict
		for _, v := range verdicts {
			if v.class == class {
				same = append(same, v)
			}
		}
		verdicts = slices.DeleteFunc(slices.Clone(verdicts), func(v verdict) bool { return v.class == class })
		if f := e.found.add(same, t, pattern); f != nil {
			f.Known, f.After = e.known[f.ID], e.report.Ran
			f.Replay = e.replay(f.PlanID)
		}
	}
}

// repetitions of a plan with a finding, with patience.
const repetitions = 2

// repeat runs the plan of a finding again. It reports whether a run with patience shows it, or none could be run.
func (e *examination) repeat(r *reference, f *Finding) (confirmed bool) {
	runs := make([]plan, max(e.repetitions, repetitions))
	for i := range runs {
		runs[i] = f.plan
		runs[i].patient = i < repetitions
	}
	each(e.workers, runs, func(p plan) {
		t := e.play(r.walk, p, f.seed, r.first())
		if t.refused != "" {
			return
		}
		shown := shows(r, t, f)
		e.mu.Lock()
		defer e.mu.Unlock()
		f.Tries++
		if shown {
			f.Repeated++
			confirmed = confirmed || p.patient
		}
	})
	return f.Tries == 0 || confirmed && (!r.walk.suite || f.Repeated == f.Tries) // a spec that fails by chance may fail again
}

// goes reports whether what a process leaves behind is gone later, and takes note of that.
func (e *examination) goes(r *reference, f *Finding) bool {
	if !e.thrifty {
		return false
	}
	p := f.plan
	p.patient = true
	t := e.play(r.walk, p, f.seed, r.first())
	late := &reference{walk: r.walk, runs: []*trial{t}, view: r.view}
	if t.refused != "" || slices.ContainsFunc(late.judgeDeclarations(nil), func(v verdict) bool { return v.alike(f.verdict) }) {
		return false
	}
	e.skip("not repeatable, as it is gone later: "+f.Text, false)
	return true
}

// finish repeats what was found, tries the remedies, and writes the report.
func (e *examination) finish(references map[string]*reference) {
	for _, f := range e.found.sorted() {
		r := references[f.plan.Walk]
		if r == nil || f.Pattern == Declarative {
			if f.Class == LeftBehind && e.goes(r, f) {
				continue
			}
			f.Repeated, f.Tries = 1, 1 // all runs without faults have been compared
			e.report.Findings = append(e.report.Findings, f)
			continue
		}
		if !e.repeat(r, f) {
			e.report.Skipped = append(e.report.Skipped, fmt.Sprintf("not repeatable: %s: %s (%s)", f.Class, f.Text, f.Plan))
			continue
		}
		if r.walk.suite && e.waits(r, f) {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(e.remedies)) {
			if e.mends(name, r.walk, f) {
				f.Remedies = append(f.Remedies, name)
			} else {
				f.Useless = append(f.Useless, name)
			}
		}
		e.report.Findings = append(e.report.Findings, f)
	}
}

// waits reports whether a delay alone makes the spec of a finding fail too, and takes note of that, or that it is not known.
func (e *examination) waits(r *reference, f *Finding) bool {
	control := e.play(r.walk, f.plan.slowly(r.first()), f.seed, r.first())
	fails := shows(r, control, f)
	switch {
	case fails:
		e.skip(fmt.Sprintf("sensitive to time, a delay alone does it too: %s (%s)", f.Text, f.Plan), false)
	case control.refused != "":
		e.skip(fmt.Sprintf("%s: whether a delay alone does it too: %s (%s)", control.refused, f.Text, f.Plan), false)
	}
	return fails
}

// write writes the report and the histories.
func (e *examination) write(dir string) error {
	for _, f := range e.report.Findings {
		if f.shown.write == nil {
			continue
		}
		files, err := f.shown.write(filepath.Join(dir, f.ID))
		if err != nil {
			return err
		}
		f.Files = files
	}
	return e.report.write(dir)
}

// shows reports whether a run has what is found.
func shows(r *reference, t *trial, f *Finding) bool {
	return slices.ContainsFunc(r.judge(t), func(v verdict) bool { return v.alike(f.verdict) })
}

// mends reports whether a finding is gone with a remedy.
func (e *examination) mends(remedy string, w walk, f *Finding) bool {
	play, key := e.remedies[remedy], remedy+" "+w.name
	r := e.remedied[key]
	if r == nil {
		r = &reference{walk: w}
		r.runs = append(r.runs, play(w, plan{Walk: w.name, Pattern: Declarative}, 1, nil))
		r.runs = append(r.runs, play(w, plan{Walk: w.name, Pattern: Declarative}, 2, r.first()))
		r.view = learn(r.runs)
		e.remedied[key] = r
	}
	t := play(w, f.plan, f.seed, r.first())
	return t.refused == "" && t.aimed() && !shows(r, t, f)
}

// skipFailing takes note of what is wrong in a suite without faults, and if no write is the operator's.
func (e *examination) skipFailing(r *reference) {
	wrongs := map[string]string{}
	for _, run := range r.runs {
		for _, w := range run.allWrongs() {
			wrongs[w.rule] = w.text
		}
	}
	for _, rule := range slices.Sorted(maps.Keys(wrongs)) {
		e.skip(fmt.Sprintf("%s: without faults too: %s", r.walk.name, wrongs[rule]), false)
	}
	if len(r.plans) == 0 {
		e.skip(fmt.Sprintf("%s: no write is the operator's; specs that call a reconciler themselves get its errors", r.walk.name), false)
	}
}

// searchEnded is why a run is refused that would begin, or has ended, after the search.
const searchEnded = "the search has ended"

// mostFaultyFields bounds the fields whose walks have faults.
const mostFaultyFields = 5

// effective returns the walks of fields whose change makes the program create and delete most, those with
// different effects first.
func effective(fields []*reference) (out []walk) {
	type effect struct {
		r     *reference
		score int
		text  string
		again int // how many before it have the same effect
	}
	var all []effect
	for _, r := range fields {
		e := effect{r: r}
		kinds := map[string]bool{}
		for _, c := range r.first().changes {
			if c.Step == 0 || c.Who == user || excused(c.Of.Kind) {
				continue
			}
			kinds[c.Verb+" "+r.view.name(c.Of)] = true
		}
		for kind := range kinds {
			e.score += map[bool]int{true: 1, false: 4}[strings.HasPrefix(kind, "updated")]
		}
		e.text = strings.Join(slices.Sorted(maps.Keys(kinds)), ",")
		for _, other := range all {
			if other.text == e.text {
				e.again++
			}
		}
		if e.score > 0 && r.first().rested() {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b effect) int { return cmp.Or(cmp.Compare(a.again, b.again), cmp.Compare(b.score, a.score)) })
	for _, e := range all[:min(len(all), mostFaultyFields)] {
		out = append(out, e.r.walk.faulty()...)
	}
	return out
}
