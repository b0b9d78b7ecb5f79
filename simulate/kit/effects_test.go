// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simulate/kit"
)

// edits is a scenario in which a ConfigMap is created at the start, changed twice at
// three and a half seconds, and once more at six and a half.
func edits(w *kit.World) {
	w.Run(setUpCopier)
	w.Settled(copied(w))
	m := configMap("m", map[string]string{"v": "0"})
	w.Create(m)
	w.Sleep(3500 * time.Millisecond)
	w.Edit(m, func() { m.Data["v"] = "1" })
	w.Edit(m, func() { m.Data["v"] = "2" })
	w.Sleep(3 * time.Second)
	w.Edit(m, func() { m.Data["v"] = "3" })
}

// annotated is edits with a check of the annotation that a fault has left by 3.2 s.
func annotated(verb string, says func(string) bool) func(*kit.World) {
	return func(w *kit.World) {
		w.Run(setUpCopier)
		w.Settled(copied(w))
		w.Create(configMap("m", nil))
		w.Sleep(3200 * time.Millisecond)
		for _, name := range []string{"m", prefix + "m"} {
			m := configMap(name, nil)
			if text, there := "", false; w.Get(m) {
				if text, there = m.Annotations["kit.flyball.dev/"+verb]; there && says(text) {
					return
				}
			}
		}
		w.Errorf("no object has the annotation of %s", verb)
	}
}

// paged makes informers list in pages of one object.
var paged = manager.Options{Informers: informer.Options{PagedLists: true, PageSize: 1}}

// Each fault happens at its time, with its effect and no other. The lines are regular
// expressions of events in order; an event after "! " must not happen before the next
// line. Versions: m is created as 2, its copy as 3, and m is changed to 4 and 5.
//
// TestKit_PausedProcessDoesNothing tests Pause, TestKit_ClockOfOneProcessIsStepped_K3
// ClockStep.
func TestKit_EachFaultHasItsEffect(t *testing.T) {
	const (
		three = 3 * time.Second
		anew  = `asked manager-1 ConfigMap watch: .*resourceVersion=3`
	)
	restarted := func(op kit.Op) kit.Plan { return kit.Plan{op.At(2 * time.Second), kit.Crash(time.Second).At(three)} }
	behind := func(op kit.Op) kit.Plan { // the watch from version 3 is requested when 4 and 5 exist
		return kit.Plan{kit.Refuse(2 * time.Second).At(2900 * time.Millisecond), kit.Cut().At(three), op.At(4 * time.Second)}
	}
	cases := map[string]struct {
		faults   kit.Plan
		manager  manager.Options
		scenario func(*kit.World)
		follows  []string
	}{
		"cut":        {faults: kit.Plan{kit.Cut().OnEvent("ConfigMap", 3)}, follows: []string{`3.5s fault fault cut manager-1`, `answered manager-1 ConfigMap watch`, `logged .*broke off`, anew, `sent .* default/m @4`}},
		"black hole": {faults: kit.Plan{kit.BlackHole().At(three)}, follows: []string{`3s fault fault black hole manager-1`, `sent .* @5`, `! (stored|asked|begun) manager-1`, anew, `stored .* default/m @4`}},
		"refuse": {faults: kit.Plan{kit.Refuse(2 * time.Second).At(2900 * time.Millisecond), kit.Cut().At(three)},
			follows: []string{`2.9s fault fault refuse`, `3s fault fault cut`, `! asked manager-1`, `4.9s over fault refuse`, anew}},
		"partition": {faults: kit.Plan{kit.Partition(5 * time.Second).At(three), kit.Cut().At(4 * time.Second)},
			follows: []string{`3s fault fault partition`, `! (stored|asked|begun) manager-1`, `8s over fault partition`, anew}},
		"delay": {faults: kit.Plan{kit.Delay(50*time.Millisecond, three).At(three)},
			follows: []string{`3s fault fault delay`, `3.5s sent .* @4`, `! stored`, `3.55s stored .* @4`, `3.6s asked .* update`, `! ended`, `3.65s ended`, `6s over fault delay`, `6.5s stored`, `6.5s asked .* update`, `6.5s ended`}},
		"lose response": {faults: kit.Plan{kit.LoseResponse().OnWrite("ConfigMap", 2)},
			follows: []string{`fault fault lose response`, `changed manager-1 ConfigMap created default/copy-of-m`, `answered manager-1 ConfigMap create default/$`, `ended manager-1 copier (retry|error|conflict) default/m`}},
		"lag": {faults: kit.Plan{kit.Lag(2 * time.Second).At(three)},
			follows: []string{`3s fault fault lag`, `3.5s changed user .* @5`, `! sent`, `5s over fault lag`, `sent .* @4`, `sent .* @5`}},
		"slow": {faults: kit.Plan{kit.Slow(2*time.Second, 10*time.Second).Of("ConfigMap").At(three)},
			follows: []string{`3s fault fault ConfigMap slow`, `3.5s changed user .* @4`, `! sent`, `5.5s sent .* @4`, `5.5s sent .* @5`, `6.5s changed user`, `! sent .* default/m `, `8.5s sent .* default/m `, `13s over fault ConfigMap slow`}},
		"drop event": {faults: kit.Plan{kit.DropEvent().OnWrite("ConfigMap", 3)},
			follows: []string{`3.5s fault fault ConfigMap drop event`, `changed user .* @4`, `! (sent|stored) .* @4`, `sent .* @5`, `20s crashed manager-1`, `started manager-2`}},
		"duplicate": {faults: kit.Plan{kit.Duplicate().At(three)},
			follows: []string{`3s fault fault ConfigMap duplicate`, `sent .* MODIFIED default/m @4`, `! sent .* @5`, `sent .* MODIFIED default/m @4`, `! sent .* @4`, `sent .* @5`, `! sent .* @5`, `6.5s sent`}},
		"reorder": {faults: kit.Plan{kit.Reorder().At(three)},
			follows: []string{`3s fault fault ConfigMap reorder`, `! sent .* @4`, `sent .* MODIFIED default/m @5`, `sent .* MODIFIED default/m @4`, `! sent .* @[45]$`, `6.5s sent`}},
		"no end bookmark": {faults: restarted(kit.NoEndBookmark(15 * time.Second)),
			follows: []string{`2s fault fault ConfigMap no end bookmark`, `asked manager-2 ConfigMap watch: .*sendInitialEvents=true`, `sent manager-2 ConfigMap ADDED default/m`, `! sent manager-2 ConfigMap BOOKMARK|begun`, `logged .*streaming list`, `! begun`, `sent manager-2 ConfigMap BOOKMARK`, `begun manager-2`}},
		"mute": {faults: kit.Plan{kit.Mute().At(three)},
			follows: []string{`3s fault fault ConfigMap mute`, `changed user .* @5`, `! sent manager-1|answered manager-1 ConfigMap`, `logged .*sent nothing more on an open stream`, `! sent`, anew, `sent .* @4`}},
		"close watches": {faults: kit.Plan{kit.CloseWatches().OnEvent("ConfigMap", 3)},
			follows: []string{`3.5s fault fault ConfigMap close watches`, `! logged .*broke off`, `answered manager-1 ConfigMap watch 200`, `! logged .*broke off`, `asked manager-1 ConfigMap watch: .*resourceVersion=4`}},
		"compact":       {faults: behind(kit.Compact()), follows: []string{`4s fault fault compact`, anew, `asked manager-1 ConfigMap watch: .*sendInitialEvents=true`}},
		"restart cache": {faults: behind(kit.RestartCache()), follows: []string{`4s fault fault restart cache`, anew, `asked manager-1 ConfigMap watch: .*sendInitialEvents=true`}},
		"rewind": {faults: kit.Plan{kit.Rewind(5).At(three)},
			follows: []string{`3s fault fault rewind`, `changed ConfigMap deleted default/copy-of-m @2`, `answered manager-1 ConfigMap watch`, anew, `3.5s changed user .* @3`, `20s crashed manager-1`, `started manager-2`}},
		"overload": {faults: kit.Plan{kit.Overload(2, 429).At(three)},
			follows: []string{`3s fault fault overload`, `3.5s answered .* 429`, `! asked .* update`, `4.5s asked`, `4.5s answered .* 429`, `! answered .* 429`, `5.5s answered .* update .* 200`, `! answered .* 429`, `finished`}},
		"overload 503": {faults: kit.Plan{kit.Overload(1, 503).OnWrite("ConfigMap", 3)}, follows: []string{`3.5s fault fault overload`, `answered manager-1 .* update .* 503`, `4.5s answered .* update .* 200`, `! answered .* 503`, `finished`}},
		"deny": {faults: kit.Plan{kit.Deny(2 * time.Second).At(three)},
			follows: []string{`3s fault fault ConfigMap deny`, `! answered manager-1 .* update .* 200`, `answered manager-1 .* update .* 403`, `! answered manager-1 .* update .* 200`, `5s over fault ConfigMap deny`, `! answered .* 403`, `answered manager-1 .* update .* 200`}},
		"expire tokens": {faults: kit.Plan{kit.ExpireTokens(2 * time.Second).At(three)},
			follows: []string{`3s fault fault expire tokens`, `! answered manager-1 .* 200`, `answered manager-1 .* update .* 401`, `! answered manager-1 .* 200`, `5s over fault expire tokens`, `! answered .* 401`, `answered manager-1 .* update .* 200`}},
		"spoil list": {faults: restarted(kit.SpoilList()), manager: paged,
			follows: []string{`2s fault fault ConfigMap spoil list`, `asked manager-2 ConfigMap list: [^&]*$`, `! (stored|asked) manager-2 .*(ConfigMap .*@|continue)`, `asked manager-2 ConfigMap list: [^&]*$`, `asked manager-2 ConfigMap list: .*continue=`, `stored manager-2 .* @`}},
		"spoil event": {faults: kit.Plan{kit.SpoilEvent().At(three)},
			follows: []string{`3s fault fault ConfigMap spoil event`, `sent .* @4`, `! stored .* @4`, `answered manager-1 ConfigMap watch`, `! stored .* @4`, anew, `sent .* @4`, `stored .* @4`}},
		"expire continue": {faults: restarted(kit.ExpireContinue()), manager: paged,
			follows: []string{`2s fault fault expire continue`, `asked manager-2 ConfigMap list: [^&]*$`, `asked manager-2 ConfigMap list: .*continue=`, `answered manager-2 ConfigMap list 410`, `! stored manager-2 .* @`, `asked manager-2 ConfigMap list`, `answered manager-2 ConfigMap list 200`}},
		"crash": {faults: kit.Plan{kit.Crash(time.Second).OnEvent("ConfigMap", 3)},
			follows: []string{`3.5s fault fault crash`, `3.5s crashed manager-1`, `! (asked|stored|told|begun|ended) manager-1`, `4.5s started manager-2`, `asked manager-2 ConfigMap watch: .*sendInitialEvents=true`}},
		"time travel": {faults: kit.Plan{kit.TimeTravel(2, time.Second).OnEvent("ConfigMap", 3)},
			follows: []string{`3.5s fault fault time travel`, `3.5s crashed manager-1`, `! (asked|stored|told|begun|ended) manager-1`, `4.5s started manager-2`, `asked manager-2 ConfigMap watch: .*sendInitialEvents=true`}},
		"reject": {faults: kit.Plan{kit.Reject(2, 422).OnWrite("ConfigMap", 3)},
			follows: []string{`3.5s fault fault ConfigMap reject`, `changed user .* @4`, `asked manager-1 .* update`, `answered manager-1 .* update .* 422`, `ended manager-1 copier error`, `answered manager-1 .* update .* 422`, `! answered .* 422`, `answered manager-1 .* update .* 200`, `! answered .* 422`, `finished`}},
		"reject 409": {faults: kit.Plan{kit.Reject(1, 409).OnWrite("ConfigMap", 3)},
			follows: []string{`3.5s fault fault ConfigMap reject`, `answered manager-1 .* update .* 409`, `ended manager-1 copier conflict`, `answered manager-1 .* update .* 200`}},
		"coalesce": {faults: kit.Plan{kit.Coalesce().At(three)},
			follows: []string{`3s fault fault ConfigMap coalesce`, `changed user .* default/m @4`, `! (sent|stored) .* default/m @4`, `sent .* MODIFIED default/m @5`, `! (sent|stored) .* default/m @4`, `6.5s sent .* MODIFIED default/m`}},
		"stop": {faults: kit.Plan{kit.Stop(time.Second).OnEvent("ConfigMap", 3)},
			follows: []string{`3.5s fault fault stop`, `! crashed`, `3.5s exited manager-1`, `! (asked|stored|told|begun|ended) manager-1`, `4.5s started manager-2`, `asked manager-2 ConfigMap watch: .*sendInitialEvents=true`}},
		"stall": {faults: kit.Plan{kit.Stall(2*time.Second).OnEvent("ConfigMap", 3)},
			follows: []string{`3.5s fault fault stall`, `! told`, `3.5s stored manager-1 .* @4`, `! told`, `5.5s told manager-1 .* default/m @4`, `! told`, `5.5s told manager-1 .* default/m @5`, `begun`}},
		"panic": {faults: kit.Plan{kit.Panic().At(three)},
			follows: []string{`3s fault fault panic`, `begun manager-1`, `! asked`, `ended manager-1 copier panic default/m`, `begun`, `ended manager-1 copier done`, `! ended .* panic`, `finished`}},
		"hang": {faults: kit.Plan{kit.Hang(5*time.Second).OnEvent("ConfigMap", 3)},
			follows: []string{`3.5s fault fault hang`, `3.5s begun manager-1`, `! (ended manager-1|asked manager-1 ConfigMap)`, `8.5s asked manager-1 ConfigMap update`, `ended`}},
		"jump": {faults: kit.Plan{kit.Jump(10 * time.Second).At(three)},
			follows: []string{`3s fault fault jump`, `3.5s changed user .* @5`, `! (stored|told|begun|ended|asked) manager-1`, `13s stored manager-1 .* @4`, `13s begun`}},
		"corrupt": {faults: kit.Plan{kit.Corrupt().At(three + 4*time.Second)},
			follows: []string{`7s fault fault ConfigMap corrupt default/`, `changed ConfigMap updated default/`, `logged .*cannot be decoded`, `ended manager-1 copier terminal`, `20s changed ConfigMap updated default/`, `ended manager-1 copier done`}},
		"huge": {faults: kit.Plan{kit.Huge().At(three)}, scenario: annotated("huge", func(text string) bool { return len(text) == 200<<10 }),
			follows: []string{`3s fault fault ConfigMap huge default/`, `changed ConfigMap updated default/.* @4`, `stored .* @4`}},
		"nasty": {faults: kit.Plan{kit.Nasty().At(three)}, scenario: annotated("nasty", func(string) bool { return true }),
			follows: []string{`3s fault fault ConfigMap nasty default/`, `changed ConfigMap updated default/.* @4`, `stored .* @4`}},
		"foreign write": {faults: kit.Plan{kit.ForeignWrite().BeforeWrite("update ConfigMap", 1)},
			follows: []string{`3.5s asked manager-1 ConfigMap update default/copy-of-m`, `3.5s fault fault ConfigMap foreign write default/copy-of-m`, `changed ConfigMap updated default/copy-of-m`,
				`answered manager-1 ConfigMap update default/copy-of-m 409`, `ended manager-1 copier conflict`, `answered manager-1 ConfigMap update default/copy-of-m 200`}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if c.scenario == nil {
				c.scenario = edits
			}
			h := kit.Run(t, kit.Config{Faults: c.faults, Manager: c.manager}, 1, c.scenario)
			sound(t, h)
			follow(t, h, c.follows)
		})
	}
	for _, op := range kit.Swarm() {
		if _, held := cases[string(op.Verb)]; !held && op.Verb != "pause" && op.Verb != "clock step" {
			t.Errorf("no row holds what %s does; add one", op.Verb)
		}
	}
}

func follow(t *testing.T, h *kit.History, follows []string) {
	t.Helper()
	var not *regexp.Regexp
	at, said := 0, []string{}
	for _, e := range h.Events {
		line := strings.Fields(e.String())
		line[0] = e.At.Truncate(10 * time.Millisecond).String()
		said = append(said, strings.Join(line, " "))
	}
	for _, want := range follows {
		if text, ok := strings.CutPrefix(want, "! "); ok {
			not = regexp.MustCompile(text)
			continue
		}
		is, from := regexp.MustCompile(want), at
		for ; at < len(said) && !is.MatchString(said[at]); at++ {
			if not != nil && not.MatchString(said[at]) {
				t.Fatalf("%s comes before %q, which is not to be:\n%s", said[at], want, strings.Join(said[from:at+1], "\n"))
			}
		}
		if at == len(said) {
			t.Fatalf("there is no %q; from the event before it on:\n%s", want, strings.Join(said[from:min(from+60, at)], "\n"))
		}
		at, not = at+1, nil
	}
}

// An explicit rate is the average number per second, at other moments for each seed.
func TestKit_RateIsPerSecond(t *testing.T) {
	first := map[time.Duration]bool{}
	for seed := range uint64(3) {
		h := kit.Run(t, kit.Config{Faults: kit.Plan{kit.Duplicate().Rate(2)}, FaultPhase: 100 * time.Second}, seed, edits)
		sound(t, h)
		n := 0
		for _, e := range h.Events {
			if e.What != kit.Fault {
				continue
			}
			if n++; n == 1 {
				first[e.At] = true
			}
		}
		if n < 150 || n > 250 { // 200 are expected, 14 is the standard deviation
			t.Errorf("seed %d: %d times in 100 seconds at a rate of 2", seed, n)
		}
	}
	if len(first) != 3 {
		t.Errorf("three seeds begin at %v, want each at a time of its own", first)
	}
}

// Apply is the user's server-side apply, which takes ownership of its fields and leaves
// the rest; a refusal ends the scenario.
func TestWorld_Apply(t *testing.T) {
	h := kit.Run(t, kit.Config{Faults: kit.Plan{}}, 1, func(w *kit.World) {
		w.Run(setUpCopier)
		w.Settled(copied(w))
		w.Create(configMap("m", map[string]string{"mine": "0", "theirs": "0"}))
		w.Apply(configMap("m", map[string]string{"mine": "1"}))
		m := configMap("m", nil)
		if !w.Get(m) || fmt.Sprint(m.Data) != "map[mine:1 theirs:0]" {
			w.Errorf("m has %v, want what was applied beside what was there", m.Data)
		}
		w.Apply(configMap("new", map[string]string{"mine": "1"}))
		if m = configMap("new", nil); !w.Get(m) || len(m.ManagedFields) != 1 || m.ManagedFields[0].Manager != "user" || m.ManagedFields[0].Operation != "Apply" {
			w.Errorf("new is managed by %v, want it applied by the user", m.ManagedFields)
		}
	})
	sound(t, h)
	h = kit.Run(t, kit.Config{Faults: kit.Plan{}}, 1, func(w *kit.World) {
		w.Run(setUpCopier)
		w.Apply(&corev1.ConfigMap{})
		w.Errorf("the scenario goes on")
	})
	if len(h.Violations) != 1 || !strings.Contains(h.Violations[0].Text, "apply *v1.ConfigMap") {
		t.Errorf("violations %v, want the apply that was refused alone", h.Violations)
	}
}

// Wait runs what is due, such as the checks after a change, and lets no time pass.
func TestWorld_Wait(t *testing.T) {
	h := kit.Run(t, kit.Config{Faults: kit.Plan{}}, 1, func(w *kit.World) {
		w.Run(setUpCopier)
		seen, late := 0, false
		w.Never(func() error {
			if w.Get(configMap("m", nil)) {
				seen++
			}
			return nil
		})
		w.Create(configMap("m", nil))
		timer := time.AfterFunc(time.Nanosecond, func() { late = true })
		now := time.Now()
		w.Wait()
		if seen == 0 || late || !time.Now().Equal(now) {
			w.Errorf("after Wait the check was asked %d times, a timer of later has run out: %v, and %v have passed", seen, late, time.Since(now))
		}
		timer.Stop()
	})
	sound(t, h)
}
