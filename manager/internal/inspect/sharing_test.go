// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package inspect_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/manager/internal/inspect"
	"github.com/flyball-dev/flyball/reconcile"
)

// shared returns eight shards, of which a holds the even ones and b the odd ones. a gives the
// answer.
func shared(plan string) *inspect.Sharing {
	s := &inspect.Sharing{
		Lease: "ops/website", Identity: "website-a", Plan: plan, LeaseSeconds: 15,
		Replicas: []inspect.Replica{{Name: "website-a", Me: true}, {Name: "website-b", Address: "https://10.0.0.7:8443"}},
	}
	for n := range 8 {
		one := inspect.Shard{Shard: n, Holder: "website-b", Since: time.Now()}
		if n%2 == 0 {
			one.Holder, one.Stage = "website-a", "held"
		}
		s.Shards = append(s.Shards, one)
	}
	return s
}

// A shard that nobody holds, one that cannot move, and a replica that waits are problems, but not
// at once.
func TestOf_SharingProblems_M32(t *testing.T) {
	now := time.Now()
	s := shared("8/namespace")
	s.Waits = "the others divide into 16/uid, token=hunter2-canary"
	for n, ago := range map[int]time.Duration{1: 29 * time.Second, 2: 31 * time.Second, 3: 40 * time.Second, 5: 50 * time.Second} {
		s.Shards[n].Holder, s.Shards[n].Stage, s.Shards[n].Since = "", "", now.Add(-ago)
	}
	for n, ago := range map[int]time.Duration{0: 59 * time.Second, 4: 90 * time.Second} {
		s.Shards[n].Stage, s.Shards[n].Since = "draining", now.Add(-ago)
	}
	s.Shards[7].Since = time.Time{}
	key := ""
	for n := 0; key == ""; n++ {
		if namespace := "n" + strings.Repeat("x", n); shards.Of(namespace, 8) == 4 {
			key = namespace + "/web"
		}
	}
	all := []reconcile.Snapshot{{Name: "website", Running: []reconcile.Running{{Key: key, Since: now}}}}
	p := inspect.Parts{Now: now, Phase: "running", Since: now.Add(-20 * time.Minute), Sharing: s, Controllers: []reconcile.Snapshot{{Name: "asleep", Workers: 1}}}
	s.NameKeys(program{}, all)
	problems := func() (got []string) {
		for _, problem := range p.Of().Problems {
			got = append(got, problem.Of+" "+problem.Name+": "+problem.Text)
			if problem.Hint == "" {
				t.Errorf("%q does not say what to do", problem.Text)
			}
		}
		return got
	}
	want := []string{
		"sharing website-a: this replica takes no shards: (hidden)",
		"sharing shard 4: it cannot move, because reconciles have not ended: website " + key,
		"sharing shards 2-3,5: no replica holds them, and their keys are not reconciled",
	}
	if got := problems(); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if hidden := p.Of().Sharing.Waits; strings.Contains(hidden, "canary") {
		t.Errorf("the view shows %q", hidden)
	}
	p.Phase = "stopping"
	if got := problems(); len(got) > 0 {
		t.Errorf("a program that stops has the problems %q, want none: its shards move", got)
	}
	p.Phase, s.Waits = "running", ""
	s.Shards[6].Holder, s.Shards[6].Since = "", time.Time{} // its Lease has never been seen
	if got := strings.Join(problems(), "\n"); !strings.Contains(got, "shards 2-3,5-6") {
		t.Errorf("got %s, want shard 6, which has no Lease, among those that nobody holds", got)
	}
}

// A key belongs to a shard by its namespace, by the UID of its object if a cache has that, or to
// shard 0.
func TestKeyOf_Place_M32(t *testing.T) {
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "0b1d"}}
	self := func(s *reconcile.Snapshot) { s.Sources[0].Self = true }
	for name, c := range map[string]struct {
		plan  string
		edit  func(*reconcile.Snapshot)
		key   string
		cache bool
		want  int // -1: not known
	}{
		"by namespace":                {"8/namespace", nil, "shop/web", false, shards.Of("shop", 8)},
		"by namespace, without one":   {"8/namespace", nil, "web", false, shards.Of("", 8)},
		"by UID":                      {"8/uid", self, "shop/web", true, shards.Of("0b1d", 8)},
		"by UID, not cached":          {"8/uid", self, "shop/web", false, -1},
		"by UID, of no object":        {"8/uid", nil, "shop/web", true, -1},
		"a singleton":                 {"8/uid", func(s *reconcile.Snapshot) { s.Singleton = true }, "shop/web", false, 0},
		"by a function of the reader": {"8/namespace", func(s *reconcile.Snapshot) { s.OwnShards = true }, "shop/web", false, -1},
		"a plan that is none":         {"many", nil, "shop/web", false, -1},
	} {
		p := program{parts: inspect.Parts{Sharing: shared(c.plan)}}
		p.edit = c.edit
		p.controlled.kind, p.kind = schema.GroupKind{Kind: "ConfigMap"}, schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
		if c.cache {
			p.obj = obj
		}
		got := inspect.PlaceOf(p, "website", c.key)
		var missing struct{ Error string }
		code := get(t, p, "controllers/website/key?key="+c.key, &missing)
		if c.want < 0 {
			if got != nil || code != 404 || !strings.HasSuffix(missing.Error, "kubectl flyball why asks the one that does") {
				t.Errorf("%s: %v, and the answer is %d %q; want that the shard is not known, and who can tell", name, got, code, missing.Error)
			}
			continue
		}
		if got == nil || got.Shard != c.want || got.Here != (c.want%2 == 0) || got.Here == (got.Address != "") {
			t.Errorf("%s: the place is %+v, want shard %d and who holds it", name, got, c.want)
			continue
		}
		if code != 404 || !strings.HasSuffix(missing.Error, "; it belongs to "+got.String()) {
			t.Errorf("%s: %d %q, want where the key belongs", name, code, missing.Error)
		}
		p.recorded = []reconcile.KeyRuns{{Key: c.key}}
		var key inspect.Key
		if code := get(t, p, "controllers/website/key?key="+c.key, &key); code != 200 || key.Place == nil || *key.Place != *got {
			t.Errorf("%s: %d, and the key has the place %+v, want %+v", name, code, key.Place, got)
		}
	}
	p := program{parts: inspect.Parts{}}
	if got := inspect.PlaceOf(p, "website", "shop/web"); got != nil {
		t.Errorf("a program that shares nothing has the place %+v", got)
	}
	for from, want := range map[string]string{"": inspect.MovedUnheld, "website-b": inspect.MovedEnded} {
		if got := inspect.ReasonOf(from, false); got != want {
			t.Errorf("the reason of a move from %q is %q, want %q", from, got, want)
		}
	}
	if got := inspect.ReasonOf("website-b", true); got != inspect.MovedPlanned {
		t.Errorf("the reason of a planned move is %q", got)
	}
}

// The overview has who selects the objects of an informer, and which part of them.
func TestOf_Division_M32(t *testing.T) {
	p := inspect.Parts{
		Informers: []state.Informer{
			{Kind: schema.GroupVersionKind{Kind: "A"}, Division: state.Division{Form: state.FormWire, By: "uid", Count: 8, Held: "0-3", Foreign: 7, ForeignBytes: 700}},
			{Kind: schema.GroupVersionKind{Kind: "B"}, Division: state.Division{Form: state.FormWhole}},
			{Kind: schema.GroupVersionKind{Kind: "C"}},
		},
		Controllers: []reconcile.Snapshot{{Name: "one", Singleton: true, Foreign: 3}},
	}
	o := p.Of()
	if i := o.Informers[0]; i.Division != "shards 0-3 of 8 by uid" || i.Form != "wire" || i.Dropped != 7 || i.DroppedBytes != 700 {
		t.Errorf("got %+v", i)
	}
	if b, c := o.Informers[1], o.Informers[2]; b.Division != "" || b.Form != "whole" || c.Form != "" {
		t.Errorf("got %+v and %+v", b, c)
	}
	if c := o.Controllers[0]; !c.Singleton || c.Foreign != 3 {
		t.Errorf("got %+v", c)
	}
	if len(o.Problems) > 0 {
		t.Errorf("got the problems %+v: that the server does not select is none", o.Problems)
	}
}
