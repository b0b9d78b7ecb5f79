// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"testing"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/kube"
)

func TestStreamOrder_JudgesEachEvent_A7(t *testing.T) {
	a, b := kube.Key{Name: "a"}, kube.Key{Name: "b"}
	for _, test := range []struct {
		name   string
		before []shown // of the stream
		newest kube.Version
		known  kube.Version
		event  shown
		want   base.Anomaly
		stale  bool
	}{
		{"newer", []shown{{a, 5, false}}, 5, 5, shown{a, 6, false}, base.Sound, false},
		{"the first after a list", nil, 5, 0, shown{a, 6, false}, base.Sound, false},
		{"without a version", []shown{{a, 5, false}}, 5, 5, shown{a, 0, false}, base.Sound, false},
		{"where versions cannot be compared", []shown{{a, 0, false}}, 0, 0, shown{a, 3, false}, base.Sound, false},
		{"the same again", []shown{{a, 5, false}}, 5, 5, shown{a, 5, false}, base.Doubled, false},
		{"the same again, later", []shown{{a, 5, false}, {b, 6, false}}, 6, 5, shown{a, 5, false}, base.Doubled, false},
		{"what a list had, again", nil, 6, 5, shown{a, 5, false}, base.Doubled, false},
		{"the same again, of what is gone meanwhile", []shown{{a, 5, false}, {a, 6, true}}, 6, 0, shown{a, 5, false}, base.Late, true},
		{"the same end again", []shown{{a, 5, true}, {b, 6, false}}, 6, 0, shown{a, 5, true}, base.Doubled, false},
		{"an end at the object's last version", []shown{{a, 5, false}}, 5, 5, shown{a, 5, true}, base.Sound, false},
		{"and long after it", nil, 9, 5, shown{a, 5, true}, base.Sound, false},
		{"another object at the same version", []shown{{a, 5, true}}, 5, 3, shown{b, 5, true}, base.Sound, false},
		{"that an own write has made anew", []shown{{a, 5, true}}, 5, 7, shown{b, 5, true}, base.Sound, false},
		{"older than what the stream has shown of it", []shown{{a, 5, false}}, 5, 5, shown{a, 4, false}, base.Late, true},
		{"older than what is known of it", nil, 9, 7, shown{a, 6, false}, base.Late, false},
		{"older than the stream, newer than its object", []shown{{b, 6, false}}, 6, 3, shown{a, 5, false}, base.Disordered, false},
		{"a new object older than the stream", []shown{{b, 6, false}}, 6, 0, shown{a, 5, false}, base.Disordered, false},
		{"an end older than the stream", []shown{{b, 6, false}}, 6, 3, shown{a, 5, true}, base.Disordered, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			var o streamOrder
			for _, e := range test.before {
				o.record(e)
			}
			if got := o.check(test.event, test.newest, func(kube.Key) kube.Version { return test.known }); got != test.want {
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
	o.record(shown{kube.Key{Name: "a"}, 2, true})
	for n := range kube.Version(shownEvents - 1) {
		o.record(shown{kube.Key{Name: "b"}, n + 3, false})
	}
	if !o.stale(shown{kube.Key{Name: "a"}, 1, false}) {
		t.Errorf("an event %d places back is forgotten", shownEvents)
	}
	o.record(shown{kube.Key{Name: "b"}, 100, false})
	if o.stale(shown{kube.Key{Name: "a"}, 1, false}) {
		t.Error("more is remembered than there is place for")
	}
}
