// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import "testing"

func TestStreamOrder_JudgesEachEvent_A7(t *testing.T) {
	a, b := Key{Name: "a"}, Key{Name: "b"}
	for _, test := range []struct {
		name   string
		before []shown // of the stream
		newest Version
		known  Version
		event  shown
		want   anomaly
		stale  bool
	}{
		{"newer", []shown{{a, 5, false}}, 5, 5, shown{a, 6, false}, sound, false},
		{"the first after a list", nil, 5, 0, shown{a, 6, false}, sound, false},
		{"without a version", []shown{{a, 5, false}}, 5, 5, shown{a, 0, false}, sound, false},
		{"where versions cannot be compared", []shown{{a, 0, false}}, 0, 0, shown{a, 3, false}, sound, false},
		{"the same again", []shown{{a, 5, false}}, 5, 5, shown{a, 5, false}, doubled, false},
		{"the same again, later", []shown{{a, 5, false}, {b, 6, false}}, 6, 5, shown{a, 5, false}, doubled, false},
		{"what a list had, again", nil, 6, 5, shown{a, 5, false}, doubled, false},
		{"the same again, of what is gone meanwhile", []shown{{a, 5, false}, {a, 6, true}}, 6, 0, shown{a, 5, false}, late, true},
		{"the same end again", []shown{{a, 5, true}, {b, 6, false}}, 6, 0, shown{a, 5, true}, doubled, false},
		{"an end at the object's last version", []shown{{a, 5, false}}, 5, 5, shown{a, 5, true}, sound, false},
		{"and long after it", nil, 9, 5, shown{a, 5, true}, sound, false},
		{"another object at the same version", []shown{{a, 5, true}}, 5, 3, shown{b, 5, true}, sound, false},
		{"that an own write has made anew", []shown{{a, 5, true}}, 5, 7, shown{b, 5, true}, sound, false},
		{"older than what the stream has shown of it", []shown{{a, 5, false}}, 5, 5, shown{a, 4, false}, late, true},
		{"older than what is known of it", nil, 9, 7, shown{a, 6, false}, late, false},
		{"older than the stream, newer than its object", []shown{{b, 6, false}}, 6, 3, shown{a, 5, false}, disordered, false},
		{"a new object older than the stream", []shown{{b, 6, false}}, 6, 0, shown{a, 5, false}, disordered, false},
		{"an end older than the stream", []shown{{b, 6, false}}, 6, 3, shown{a, 5, true}, disordered, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var o streamOrder
			for _, e := range test.before {
				o.note(e)
			}
			if got := o.judge(test.event, test.newest, func(Key) Version { return test.known }); got != test.want {
				t.Errorf("the event is %s, want %s", got, test.want)
			}
			if got := o.stale(test.event); got != test.stale {
				t.Errorf("stale is %v, want %v: of a key that is gone only the stream knows", got, test.stale)
			}
		})
	}
}

func TestStreamOrder_RemembersTheLastEvents_A7(t *testing.T) {
	var o streamOrder
	o.note(shown{Key{Name: "a"}, 2, true})
	for n := range Version(shownEvents - 1) {
		o.note(shown{Key{Name: "b"}, n + 3, false})
	}
	if !o.stale(shown{Key{Name: "a"}, 1, false}) {
		t.Errorf("an event %d places back is forgotten", shownEvents)
	}
	o.note(shown{Key{Name: "b"}, 100, false})
	if o.stale(shown{Key{Name: "a"}, 1, false}) {
		t.Error("more is remembered than there is place for")
	}
}
