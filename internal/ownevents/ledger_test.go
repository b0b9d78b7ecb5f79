// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownevents_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/internal/ownevents"
	"github.com/flyball-dev/flyball/kube"
)

func step(from, to kube.Version) ownevents.Write {
	return ownevents.Write{Kind: schema.GroupKind{Kind: "ConfigMap"}, Key: kube.Key{Namespace: "prod", Name: "web"}, UID: "u", From: from, To: to}
}

func end(from kube.Version) ownevents.Write {
	w := step(from, 0)
	w.Gone = true
	return w
}

func TestLedger_OwnIsWhatOwnStepsLeadTo_R15(t *testing.T) {
	other := func(w ownevents.Write, change func(*ownevents.Write)) ownevents.Write { change(&w); return w }
	for _, row := range []struct {
		name  string
		wrote []ownevents.Write // by a
		event ownevents.Write
		want  bool
	}{
		{"nothing written", nil, step(5, 6), false},
		{"one step", []ownevents.Write{step(5, 7)}, step(5, 7), true},
		{"from an older state: a foreign step between", []ownevents.Write{step(5, 7)}, step(4, 7), false},
		{"to a newer state: a foreign step after", []ownevents.Write{step(5, 7)}, step(5, 8), false},
		{"an older state is given", []ownevents.Write{step(5, 7)}, step(5, 6), false},
		{"two steps in one event", []ownevents.Write{step(5, 7), step(7, 9)}, step(5, 9), true},
		{"the second of two", []ownevents.Write{step(5, 7), step(7, 9)}, step(7, 9), true},
		{"a foreign step between two", []ownevents.Write{step(5, 7), step(8, 9)}, step(5, 9), false},
		{"created", []ownevents.Write{step(0, 7)}, step(0, 7), true},
		{"created and changed", []ownevents.Write{step(0, 7), step(7, 8)}, step(0, 8), true},
		{"known before, and changed", []ownevents.Write{step(6, 7)}, step(0, 7), false},
		{"removed", []ownevents.Write{end(6)}, end(6), true},
		{"changed and removed", []ownevents.Write{step(5, 6), end(6)}, end(5), true},
		{"removed after a foreign step", []ownevents.Write{step(5, 6), end(7)}, end(5), false},
		{"removed by another", []ownevents.Write{step(5, 6)}, end(5), false},
		{"removed in an unknown state", []ownevents.Write{end(0)}, end(0), false},
		{"a change before the end", []ownevents.Write{step(5, 6), end(6)}, step(5, 6), true},
		{"another object of the name", []ownevents.Write{step(0, 7)}, other(step(0, 7), func(w *ownevents.Write) { w.UID = "v" }), false},
		{"the end of another object of the name", []ownevents.Write{end(6)}, other(end(6), func(w *ownevents.Write) { w.UID = "v" }), false},
		{"another name", []ownevents.Write{step(5, 7)}, other(step(5, 7), func(w *ownevents.Write) { w.Key.Name = "x" }), false},
		{"another kind", []ownevents.Write{step(5, 7)}, other(step(5, 7), func(w *ownevents.Write) { w.Kind.Kind = "Secret" }), false},
		{"a write that changed nothing", []ownevents.Write{step(5, 5)}, step(5, 5), false},
		{"a version without order", []ownevents.Write{step(5, 0)}, step(5, 0), false},
	} {
		var l ownevents.Ledger[string]
		for _, w := range row.wrote {
			l.Wrote("a", w)
		}
		if got := l.Own("a", row.event); got != row.want {
			t.Errorf("%s: own is %t, want %t", row.name, got, row.want)
		}
		if l.Own("b", row.event) {
			t.Errorf("%s: an own event of another key than that whose reconcile wrote", row.name)
		}
	}
}

func TestLedger_EventsBeforeTheAnswerWaitForTheEnd_R15(t *testing.T) {
	var l ownevents.Ledger[string]
	var decided []bool
	decide := func(own bool) { decided = append(decided, own) }
	l.Begin("a")
	for _, event := range []ownevents.Write{step(5, 7), step(7, 8)} { // ours, whose answer is on its way, and a foreign one
		if own, later := l.Classify("a", event, decide); own || !later {
			t.Errorf("%+v: own is %t, later %t; want it to wait for the end of the reconcile", event, own, later)
		}
	}
	if own, later := l.Classify("b", step(5, 7), decide); own || later {
		t.Error("an event waits for the reconcile of another key")
	}
	l.Wrote("a", step(5, 7))
	if own, later := l.Classify("a", step(5, 7), decide); !own || later {
		t.Error("an event after the answer is not an own event at once")
	}
	l.End("a", true)
	if len(decided) != 2 || !decided[0] || decided[1] {
		t.Errorf("at the end own is %v, want true for the own write and false for the foreign one", decided)
	}
	if own, later := l.Classify("a", step(7, 8), decide); own || later {
		t.Error("an event waits although no reconcile is in progress")
	}

	l.Begin("a")
	waiting := 0
	for range 1000 {
		if _, later := l.Classify("a", step(7, 8), decide); later {
			waiting++
		}
	}
	if waiting != 64 {
		t.Errorf("%d events wait for the end of one reconcile, want at most 64", waiting)
	}
}

// A reconcile was done too early if the next one writes more, and nobody else has changed
// anything from its begin to the end of the next one.
func TestLedger_FindsWhoStopsBeforeItsWorkIsDone_V24(t *testing.T) {
	first, second := step(0, 7), step(7, 8)
	news := func(l *ownevents.Ledger[string]) { l.News("a") }
	write := func(w ownevents.Write) func(*ownevents.Ledger[string]) {
		return func(l *ownevents.Ledger[string]) { l.Wrote("a", w) }
	}
	foreign := func(l *ownevents.Ledger[string]) {
		l.Classify("a", step(5, 9), func(own bool) {
			if !own {
				l.News("a")
			}
		})
	}
	ownEvent := func(l *ownevents.Ledger[string]) {
		l.Classify("a", first, func(own bool) {
			if !own {
				l.News("a")
			}
		})
	}
	dropped := func(w ownevents.Write, plain bool) func(*ownevents.Ledger[string]) {
		return func(l *ownevents.Ledger[string]) { l.Dropped(w, plain) }
	}
	type acts []func(*ownevents.Ledger[string])
	for _, row := range []struct {
		name        string
		one         acts
		done        bool
		between     acts
		two         acts
		idle, found bool
	}{
		{"both write", acts{write(first)}, true, nil, acts{write(second)}, true, true},
		{"the first asks for another", acts{write(first)}, false, nil, acts{write(second)}, false, false},
		{"the first writes nothing", nil, true, nil, acts{write(second)}, false, false},
		{"the second writes nothing", acts{write(first)}, true, nil, nil, true, false},
		{"the second changes nothing", acts{write(first)}, true, nil, acts{write(step(7, 7))}, true, false},
		{"news during the first", acts{news, write(first)}, true, nil, acts{write(second)}, false, false},
		{"news between them", acts{write(first)}, true, acts{news}, acts{write(second)}, true, false},
		{"news during the second", acts{write(first)}, true, nil, acts{news, write(second)}, true, false},
		{"an own event overtakes its answer", acts{ownEvent, write(first)}, true, nil, acts{write(second)}, true, true},
		{"a foreign event is dropped during the first", acts{dropped(step(5, 9), true), write(first)}, true, nil, acts{write(second)}, false, false},
		{"a foreign event is dropped between them", acts{write(first)}, true, acts{dropped(step(5, 9), true)}, acts{write(second)}, true, false},
		{"a foreign event is dropped during the second", acts{write(first)}, true, nil, acts{dropped(step(5, 9), true), write(second)}, true, false},
		{"an own event is dropped", acts{write(first), dropped(first, true)}, true, acts{dropped(first, true)}, acts{write(second), dropped(second, true)}, true, true},
		{"an own step is dropped with more than it", acts{write(first)}, true, acts{dropped(first, false)}, acts{write(second)}, true, false},
		{"an event waits for the end of the first, and is foreign", acts{foreign, write(first)}, true, nil, acts{write(second)}, false, false},
		{"an event waits for the end of the second, and is foreign", acts{write(first)}, true, nil, acts{foreign, write(second)}, true, false},
	} {
		var l ownevents.Ledger[string]
		do := func(a acts) {
			for _, f := range a {
				f(&l)
			}
		}
		l.Begin("a")
		do(row.one)
		idle, none := l.End("a", row.done)
		do(row.between)
		l.Begin("a")
		do(row.two)
		_, found := l.End("a", true)
		if idle != row.idle || none != nil || (found != nil) != row.found {
			t.Errorf("%s: after the first idle %t (want %t) and found %v; after the second found %+v (want one: %t)", row.name, idle, row.idle, none, found, row.found)
		}
		if found != nil && (found.Last != first || found.More != second) {
			t.Errorf("%s: found %+v, want the first's write and the second's", row.name, found)
		}
	}
}

func TestLedger_IsBounded_R15(t *testing.T) {
	var l ownevents.Ledger[string]
	at := func(i int) ownevents.Write {
		w := step(kube.Version(i+1), kube.Version(i+2))
		w.Key.Name = fmt.Sprint("web-", i/3)
		return w
	}
	for i := range 5000 {
		l.Wrote("a", at(i))
	}
	known := 0
	for i := range 5000 {
		if l.Own("a", at(i)) {
			known++
			if i < 5000-1024 {
				t.Fatalf("write %d of 5000 is remembered, want the last 1024 alone", i)
			}
		}
	}
	if known != 1024 {
		t.Errorf("%d writes are remembered, want 1024", known)
	}
}

// by is the Run of a reconcile of key.
type by struct {
	*ownevents.Ledger[string]
	key string
}

func (b by) Wrote(w ownevents.Write) { b.Ledger.Wrote(b.key, w) }

func TestContext_CarriesRunAndFilter_R15(t *testing.T) {
	ctx := context.Background()
	if run, f := ownevents.RunOf(ctx), ownevents.FilterOf[string](ctx); run != nil || f.Ledger != nil || f.Absent != nil {
		t.Error("a context without a run and a filter has them")
	}
	var l ownevents.Ledger[string]
	ctx = ownevents.WithFilter(ctx, ownevents.Filter[string]{Ledger: &l})
	if ownevents.FilterOf[string](ctx).Ledger != &l || ownevents.FilterOf[int](ctx).Ledger != nil {
		t.Error("the filter is not that of the keys' type")
	}
	ownevents.RunOf(context.WithValue(ctx, contextvalues.TaskKey{}, by{&l, "a"})).Wrote(step(5, 7))
	if !l.Own("a", step(5, 7)) {
		t.Error("the write of a context's run is not in its ledger")
	}
}

// FuzzLedger_NoForeignStepIsOwn_R15 has two writers of one object, and a handler that is given
// some of its states: each event with a foreign step in it is news.
func FuzzLedger_NoForeignStepIsOwn_R15(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 0))
		var l ownevents.Ledger[string]
		foreign := []bool{false} // by version
		given := kube.Version(0)
		for range 50 {
			last := kube.Version(len(foreign) - 1)
			switch r.IntN(3) {
			case 0:
				foreign = append(foreign, true)
			case 1: // as often as not, the request did not say on what it was based
				foreign = append(foreign, false)
				if r.IntN(2) == 0 {
					l.Wrote("a", step(last, last+1))
				} else {
					foreign[last+1] = true
				}
			case 2:
				to := given + kube.Version(r.IntN(int(last-given)+1))
				if to == given {
					continue
				}
				want := true
				for v := given + 1; v <= to; v++ {
					want = want && !foreign[v]
				}
				if got := l.Own("a", step(given, to)); got != want {
					t.Fatalf("the event from %d to %d is own: %t, want %t; foreign or unknown by version: %v", given, to, got, want, foreign)
				}
				given = to
			}
		}
	})
}

// Nothing finds what is remembered of a NaN, so nothing would ever forget it.
func TestLedger_RemembersNothingOfAKeyThatIsNotItself_R15(t *testing.T) {
	var l ownevents.Ledger[float64]
	nan := math.NaN()
	for range 3 {
		l.Begin(nan)
		l.Wrote(nan, step(5, 7))
		if own, later := l.Classify(nan, step(5, 7), nil); own || later {
			t.Errorf("an event for a NaN is an own event %t, postponed %t; want news at once", own, later)
		}
		if idle, found := l.End(nan, true); idle || found != nil {
			t.Errorf("a NaN is idle %t, unfinished %v; nothing can be known of it", idle, found)
		}
	}
	l.Begin(1)
	l.Wrote(1, step(5, 7))
	l.End(1, true)
	if !l.Own(1, step(5, 7)) {
		t.Error("the write of another key is not remembered")
	}
}
