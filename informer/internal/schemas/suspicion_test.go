// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package schemas

import (
	"testing"
	"time"
)

func second(n int) time.Time {
	return time.Unix(1_000_000, 0).Add(time.Duration(n) * time.Second)
}

func TestSuspicion_SaysWhichListsAreOutdated_A9(t *testing.T) {
	same := fingerprint{text: "v1", since: second(5), first: true}
	for _, test := range []struct {
		name   string
		s      suspicion
		hash   fingerprint
		server fingerprint
		want   bool
	}{
		{"nothing is known of the schema", suspicion{listed: second(0), alive: second(100)}, fingerprint{}, same, false},
		{"the schema is the one from before the list", suspicion{listed: second(10), alive: second(100)}, fingerprint{"h", second(5), true}, same, false},
		{"a new schema, seen after the end", suspicion{listed: second(0), alive: second(100)}, fingerprint{"h", second(101), false}, same, true},
		{"a new schema, seen just before the end", suspicion{listed: second(0), alive: second(100)}, fingerprint{"h", second(99), false}, same, true},
		{"a new schema, seen long before: it was of another kind", suspicion{listed: second(0), alive: second(100)}, fingerprint{"h", second(50), false}, same, false},
		{"the list came after the new schema", suspicion{listed: second(102), alive: second(105)}, fingerprint{"h", second(101), false}, same, false},
		{"the first look, long before the end", suspicion{listed: second(0), alive: second(100)}, fingerprint{"h", second(5), true}, same, false},
		{"the first look just before the end: it may have changed before", suspicion{listed: second(0), alive: second(7)}, fingerprint{"h", second(5), true}, same, true},
		{"the first look after the end", suspicion{listed: second(0), alive: second(3)}, fingerprint{"h", second(5), true}, same, true},
		{"cut off, and all is the same", suspicion{listed: second(0), alive: second(3), cut: true}, fingerprint{"h", second(5), true}, same, false},
		{"cut off, and another schema", suspicion{listed: second(0), alive: second(100), cut: true}, fingerprint{"h", second(130), false}, same, true},
		{"cut off, and another schema since long", suspicion{listed: second(0), alive: second(100), cut: true}, fingerprint{"h", second(50), false}, same, true},
		{"ended by a server that is being replaced", suspicion{listed: second(0), alive: second(100)}, fingerprint{"h", second(50), false}, fingerprint{"v2", second(50), false}, true},
		{"and listed from the new one", suspicion{listed: second(60), alive: second(100)}, fingerprint{"h", second(50), false}, fingerprint{"v2", second(50), false}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.s.outdated(test.hash, test.server); got != test.want {
				t.Errorf("outdated is %v, want %v", got, test.want)
			}
		})
	}
}

func TestFingerprint_KnowsSinceWhen_A9(t *testing.T) {
	f := fingerprint{}
	for _, test := range []struct {
		text string
		at   int
		want fingerprint
	}{
		{"", 1, fingerprint{}},
		{"a", 2, fingerprint{"a", second(2), true}},
		{"a", 3, fingerprint{"a", second(2), true}},
		{"", 4, fingerprint{"a", second(2), true}},
		{"b", 5, fingerprint{"b", second(5), false}},
		{"a", 6, fingerprint{"a", second(6), false}},
	} {
		if f = f.seen(test.text, second(test.at)); f != test.want {
			t.Fatalf("after %q at %d it is %+v, want %+v", test.text, test.at, f, test.want)
		}
	}
}

func TestSuspicion_LooksAreFewAndGrowApart_A9(t *testing.T) {
	s := suspicion{listed: second(0), alive: second(100)}
	if _, ok := s.due(); ok {
		t.Error("a look is due before the scope can be watched again: the server may be away")
	}
	s.opened = second(100)
	var gap time.Duration
	for last := second(100); ; s.looks++ {
		due, ok := s.due()
		if !ok {
			break
		}
		if d := due.Sub(last); s.looks > 0 && d <= gap {
			t.Errorf("look %d comes %s after the one before, which came after %s; want a longer pause", s.looks, d, gap)
		} else {
			gap, last = d, due
		}
	}
	if s.looks < 3 || s.looks > 6 {
		t.Errorf("%d looks, want a few: a change is published late", s.looks)
	}
}

func TestPacing_BoundsTheLooks_A9(t *testing.T) {
	var p checkLimit
	now, n := second(0), 0
	for end := now.Add(time.Hour); ; n++ {
		if now = p.allow(now.Add(time.Second)); now.After(end) {
			break
		}
		p.record(now)
	}
	if most := lookBurst * int(time.Hour/lookWindow+1); n > most || n < most/2 {
		t.Errorf("%d looks in an hour of watches that end all the time, want %d at most", n, most)
	}
	p.paused = now.Add(time.Hour)
	if got := p.allow(now); got.Before(p.paused) {
		t.Error("a pause is not kept")
	}
}
