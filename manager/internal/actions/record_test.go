// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/go-logr/logr/funcr"

	"github.com/flyball-dev/flyball/manager/internal/inspect"
	"github.com/flyball-dev/flyball/reconcile"
)

func pausing(controller, key, by string) inspect.Action {
	return inspect.Action{Name: inspect.ActionPause, Controller: controller, Key: key, By: by}
}

func resuming(controller, key string) inspect.Action {
	return inspect.Action{Name: inspect.ActionResume, Controller: controller, Key: key}
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 5000, time.UTC)

// Pauses and resumes in any order leave what the last of each says, and the first pause its user.
func TestRecord_After_M27(t *testing.T) {
	for name, c := range map[string]struct {
		actions []inspect.Action
		changed string // + or - for each
		want    string
	}{
		"a controller":      {[]inspect.Action{pausing("a", "", "alice")}, "+", `{"a":{"all":{"by":"alice","at":"2026-03-01T12:00:00Z"}}}`},
		"twice":             {[]inspect.Action{pausing("a", "", "alice"), pausing("a", "", "bob")}, "+-", `{"a":{"all":{"by":"alice","at":"2026-03-01T12:00:00Z"}}}`},
		"and resumed":       {[]inspect.Action{pausing("a", "", "alice"), resuming("a", ""), resuming("a", "")}, "++-", ``},
		"a key":             {[]inspect.Action{pausing("a", "x/y", "alice"), pausing("a", "x/y", "bob")}, "+-", `{"a":{"keys":{"x/y":{"by":"alice","at":"2026-03-01T12:00:00Z"}}}}`},
		"a key and resumed": {[]inspect.Action{pausing("a", "x/y", "alice"), resuming("a", "x/y"), resuming("a", "x/y")}, "++-", ``},
		"the key is kept":   {[]inspect.Action{pausing("a", "x/y", "alice"), pausing("a", "", "bob"), resuming("a", "")}, "+++", `{"a":{"keys":{"x/y":{"by":"alice","at":"2026-03-01T12:00:00Z"}}}}`},
		"another's stays":   {[]inspect.Action{pausing("b", "", "alice"), pausing("a", "", "bob"), resuming("a", "")}, "+++", `{"b":{"all":{"by":"alice","at":"2026-03-01T12:00:00Z"}}}`},
		"nothing to resume": {[]inspect.Action{resuming("a", ""), resuming("a", "x")}, "--", ``},
		"a long name of a user": {[]inspect.Action{pausing("a", "", strings.Repeat("é", 100))}, "+",
			`{"a":{"all":{"by":"` + strings.Repeat("é", 62) + `…","at":"2026-03-01T12:00:00Z"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var r record
			changes := ""
			for _, a := range c.actions {
				before, _ := r.encode()
				next, changed, err := r.after(a, noon)
				if err != nil {
					t.Fatal(err)
				}
				if after, _ := r.encode(); after != before {
					t.Errorf("%+v has modified the record from %s to %s", a, before, after)
				}
				if r = next; changed {
					changes += "+"
				} else {
					changes += "-"
				}
			}
			got, err := r.encode()
			if got != c.want || changes != c.changed || err != nil {
				t.Errorf("%s %s, %v; want %s %s", changes, got, err, c.changed, c.want)
			}
			again, err := decode(got)
			if text, _ := again.encode(); text != got || err != nil {
				t.Errorf("it is decoded as %s, %v", text, err)
			}
		})
	}
}

// What a Lease takes along with each renewal is bounded.
func TestRecord_IsBounded_M27(t *testing.T) {
	var r record
	for n := range mostKeys {
		next, _, err := r.after(pausing(fmt.Sprint("c", n%3), fmt.Sprint("x/", n), "alice"), noon)
		if err != nil {
			t.Fatal(err)
		}
		r = next
	}
	if _, changed, err := r.after(pausing("other", "x/y", "alice"), noon); changed || inspect.StatusOf(err) != http.StatusConflict {
		t.Errorf("key %d: %v, want a refusal", mostKeys+1, err)
	}
	if _, changed, err := r.after(pausing("other", "", "alice"), noon); !changed || err != nil {
		t.Errorf("a controller beside all keys: %v, want it to be paused", err)
	}
	if _, changed, err := r.after(pausing("c0", "x/0", "bob"), noon); changed || err != nil {
		t.Errorf("a key that is paused: %v, want no change", err)
	}
	long := record{"c": {Keys: map[string]pause{}}}
	for n := range mostKeys {
		long["c"].Keys[fmt.Sprint(strings.Repeat("x", 900), n)] = pause{By: "alice"}
	}
	if _, err := long.encode(); inspect.StatusOf(err) != http.StatusConflict {
		t.Errorf("the longest keys: %v, want a refusal", err)
	}
	for _, text := range []string{"{", `[]`, strings.Repeat(" ", mostRecord+1), `{"a":{"keys":{"x":{"at":"noon"}}}}`} {
		if got, err := decode(text); err == nil {
			t.Errorf("%.20q is decoded as %v", text, got)
		}
	}
}

// paused is a controller that notes what it is to pause.
type paused struct {
	inspect.Controllable
	name string
	set  []reconcile.Pauses
}

func (p *paused) Name() string { return p.name }

func (p *paused) SetPauses(to reconcile.Pauses) { p.set = append(p.set, to) }

func leaseOf(version, annotation string) *coordinationv1.Lease {
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version, UID: "u"}}
	if annotation != "" {
		metav1.SetMetaDataAnnotation(&l.ObjectMeta, Annotation, annotation)
	}
	return l
}

// Leases come in any order, and most say nothing new: the newest one counts, and each change once.
func TestPauses_TheNewestLeaseCounts_M27(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	a, b := &paused{name: "a"}, &paused{name: "b"}
	p := NewPauses(log, func() []inspect.Controllable { return []inspect.Controllable{a, b} })
	const all, key = `{"a":{"all":{"by":"alice","at":"2026-03-01T12:00:00Z"}}}`, `{"a":{"keys":{"x/y":{"by":"bob","at":"2026-03-01T12:00:00Z"}}}}`
	for _, l := range []*coordinationv1.Lease{leaseOf("5", ""), leaseOf("7", all), leaseOf("6", ""), leaseOf("8", all), leaseOf("9", "{"), leaseOf("10", "{"), leaseOf("11", key), leaseOf("8", all)} {
		p.Learn(l)
	}
	if len(a.set) != 2 || len(b.set) != 2 || a.set[0].All == nil || a.set[1].All != nil || a.set[1].Keys["x/y"].By != "bob" || b.set[0].All != nil {
		t.Errorf("a was set to %+v and b to %+v, want a paused, then one key of it", a.set, b.set)
	}
	if len(lines) != 4 || !strings.Contains(lines[0], `"Paused" "controller"="a" "by"="alice"`) || !strings.Contains(lines[1], "malformed") ||
		!slices.ContainsFunc(lines, func(l string) bool {
			return strings.Contains(l, `"Resumed" "controller"="a"`) && !strings.Contains(l, "alice")
		}) {
		t.Errorf("the log has %q", lines)
	}
	late := &paused{name: "a"}
	if p.Set(late); len(late.set) != 1 || late.set[0].Keys["x/y"].By != "bob" {
		t.Errorf("a controller that joins is set to %+v", late.set)
	}
	p.Set("no controller")
	(*Pauses)(nil).Set(late)
	fresh, kept := leaseOf("", ""), leaseOf("12", "")
	fresh.UID = ""
	p.Sign(fresh)
	p.Sign(kept)
	if fresh.Annotations[Annotation] != key || kept.Annotations[Annotation] != "" {
		t.Errorf("a new Lease says %q and one that is there %q", fresh.Annotations[Annotation], kept.Annotations[Annotation])
	}
}
