// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"strings"
	"testing"
	"time"
)

// Each invariant finds the planted violation, names the event, and finds nothing in the
// same history without it.
func TestInvariants_FindWhatIsPlanted(t *testing.T) {
	const m = "ConfigMap"
	changed := func(name, key, uid string, version uint64) Event {
		return Event{What: Changed, Who: "p", Kind: m, Name: name, Key: key, UID: uid, Version: version}
	}
	stored := func(key, uid string, version, reached uint64) Event {
		return Event{What: Stored, Who: "p", Kind: m, Name: "*ConfigMap", Key: key, UID: uid, Version: version, Reached: reached, Whole: true}
	}
	queue := func(what string) Event { return Event{What: what, Who: "p", Kind: "c", Key: "k"} }
	ended := func(outcome string, after time.Duration) Event {
		return Event{What: Ended, Who: "p", Kind: "c", Key: "k", Name: outcome, After: after}
	}
	delivered := func(key string, version uint64) Event {
		return Event{What: Delivered, Who: "p", Kind: m, Name: "source kind ConfigMap", Key: key, UID: "u", Version: version, Count: 1}
	}
	evaluated := Event{What: Evaluated, Who: "p", Kind: m, Name: "kind ConfigMap", Key: "k", Count: 1}
	started, healed, rest, finished := Event{What: Started, Who: "p"}, Event{What: Healed}, Event{What: Rest}, Event{What: Finished}
	other := Event{What: Started, Who: "q"}
	leads := func(who string) Event {
		return Event{What: Changed, Who: who, Kind: leases, Name: "updated", Key: "l", Holder: who + "_5"}
	}
	counted := func(what, kind, how string) Event {
		return Event{What: what, Who: "p", Kind: kind, Name: how, Key: "n"}
	}
	later := func(at time.Duration, e Event) Event {
		e.At = at
		return e
	}
	asked := func(name, text string, n int) Event {
		return Event{What: Asked, Who: "p", Kind: m, Name: name, Text: text, Request: n}
	}
	held := Event{What: Fault, Name: "delay", Key: "p", Delay: time.Second}
	over, exited := Event{What: Over, Name: "delay", Key: "p"}, Event{What: Exited, Who: "p"}
	for name, c := range map[string]struct {
		invariant string
		audit     time.Duration
		lease     string
		sound     []Event
		planted   []Event // instead of the last of sound's events, or before it
		says      string
	}{
		"V1 another version": {invariant: "V1", says: "version 1",
			sound:   []Event{started, changed("created", "k", "u", 1), changed("updated", "k", "u", 2), stored("k", "u", 1, 1), stored("k", "u", 2, 2), rest},
			planted: []Event{started, changed("created", "k", "u", 1), changed("updated", "k", "u", 2), stored("k", "u", 1, 1), rest}},
		"V1 an object lacks": {invariant: "V1", says: "lacks k",
			sound:   []Event{started, changed("created", "k", "u", 1), stored("k", "u", 1, 1), rest},
			planted: []Event{started, changed("created", "k", "u", 1), stored("", "", 0, 1), rest}},
		"V1 an object is left": {invariant: "V1", says: "holds k",
			sound:   []Event{started, changed("created", "k", "u", 1), stored("k", "u", 1, 1), changed("deleted", "k", "u", 2), stored("k", "", 0, 2), rest},
			planted: []Event{started, changed("created", "k", "u", 1), stored("k", "u", 1, 1), changed("deleted", "k", "u", 2), stored("", "", 0, 2), rest}},
		"V2 a state that never was": {invariant: "V2", says: "reached version 3",
			sound:   []Event{changed("created", "k", "u", 1), changed("updated", "k", "u", 3), stored("k", "u", 3, 3)},
			planted: []Event{changed("created", "k", "u", 1), changed("updated", "k", "u", 3), stored("k", "u", 1, 3)}},
		"V2 something is hidden of another kind": {invariant: "V2", says: "reached version 3",
			sound:   []Event{{What: Fault, Name: "drop event", Kind: m}, changed("created", "k", "u", 1), changed("updated", "k", "u", 3), stored("k", "u", 1, 3)},
			planted: []Event{{What: Fault, Name: "drop event", Kind: "Secret"}, changed("created", "k", "u", 1), changed("updated", "k", "u", 3), stored("k", "u", 1, 3)}},
		"V2 something was hidden": {invariant: "V2", says: "reached version 3",
			sound:   []Event{{What: Fault, Name: "reorder ConfigMap", Kind: m}, changed("created", "k", "u", 1), changed("updated", "k", "u", 3), stored("k", "u", 1, 3), healed},
			planted: []Event{{What: Fault, Name: "reorder ConfigMap", Kind: m}, healed, changed("created", "k", "u", 1), changed("updated", "k", "u", 3), stored("k", "u", 1, 3)}},
		"V2 an audit found it": {invariant: "V2", says: "reached version 3", audit: time.Minute,
			sound:   []Event{{What: Fault, Name: "drop event", Kind: m}, healed, changed("created", "k", "u", 1), changed("updated", "k", "u", 3), stored("k", "u", 1, 3), rest},
			planted: []Event{{What: Fault, Name: "drop event", Kind: m}, healed, rest, changed("created", "k", "u", 1), changed("updated", "k", "u", 3), stored("k", "u", 1, 3)}},
		"V2 time was undone": {invariant: "V2", says: "reached version 3",
			sound: []Event{stored("", "", 0, 1), {What: Fault, Name: "rewind"}, changed("created", "k", "u", 1), changed("updated", "k", "u", 3), stored("k", "u", 1, 3),
				{What: Epoch, Who: "p", Kind: m}, stored("k", "u", 3, 3)},
			planted: []Event{stored("", "", 0, 1), {What: Fault, Name: "rewind"}, changed("created", "k", "u", 1), changed("updated", "k", "u", 3),
				{What: Epoch, Who: "p", Kind: m}, stored("k", "u", 1, 3)}},
		"V2 what was undone is held": {invariant: "V2", says: "reached version 2",
			sound:   []Event{changed("created", "k", "u", 1), changed("updated", "k", "u", 2), {What: Changed, Kind: m, Name: "updated", Key: "k", UID: "u", Version: 1, Quiet: true}, stored("k", "u", 1, 2)},
			planted: []Event{changed("created", "k", "u", 1), changed("updated", "k", "u", 2), {What: Changed, Kind: m, Name: "updated", Key: "k", UID: "u", Version: 1, Quiet: true}, stored("k", "u", 2, 2)}},
		"V2 a version is given again": {invariant: "V2", says: "reached version 2",
			sound: []Event{changed("created", "k", "u", 4), {What: Changed, Kind: m, Name: "deleted", Key: "k", UID: "u", Version: 3, Quiet: true},
				changed("created", "k", "w", 2), stored("k", "w", 2, 2)},
			planted: []Event{changed("created", "k", "u", 4), {What: Changed, Kind: m, Name: "deleted", Key: "k", UID: "u", Version: 3, Quiet: true},
				changed("created", "k", "w", 2), stored("k", "u", 2, 2)}},
		"V3 the store goes back": {invariant: "V3", says: "from version 3 to 2",
			sound:   []Event{stored("", "", 0, 2), stored("", "", 0, 3)},
			planted: []Event{stored("", "", 0, 3), stored("", "", 0, 2)}},
		"V3 an object goes back": {invariant: "V3", says: "with k from version 3 to 2",
			sound:   []Event{stored("k", "u", 2, 2), {What: Epoch, Who: "p", Kind: m}, stored("k", "u", 1, 1)},
			planted: []Event{stored("k", "u", 3, 3), stored("k", "u", 2, 3)}},
		"V4 an addition is lost": {invariant: "V4", says: "never reconciled",
			sound:   []Event{started, queue(Enqueued), queue(Taken), queue(Begun), ended("done", 0), rest},
			planted: []Event{started, queue(Taken), queue(Begun), queue(Enqueued), ended("done", 0), rest}},
		"V4 nobody decides": {invariant: "V4", says: "never decided",
			sound:   []Event{started, stored("k", "u", 1, 1), delivered("k", 1), evaluated, rest},
			planted: []Event{started, stored("k", "u", 1, 1), delivered("k", 1), rest}},
		"V4 told before stored": {invariant: "V4", says: "no store",
			sound:   []Event{started, stored("k", "u", 1, 1), delivered("k", 1), evaluated, rest},
			planted: []Event{started, delivered("k", 1), evaluated, stored("k", "u", 1, 1), rest}},
		"V4 the last is not told": {invariant: "V4", says: "its store holds another",
			sound:   []Event{started, stored("k", "u", 1, 1), delivered("k", 1), evaluated, stored("k", "u", 2, 2), delivered("k", 2), evaluated, rest},
			planted: []Event{started, stored("k", "u", 1, 1), delivered("k", 1), evaluated, stored("k", "u", 2, 2), rest}},
		"V5 two workers": {invariant: "V5", says: "while it is",
			sound:   []Event{queue(Begun), ended("done", 0), queue(Begun)},
			planted: []Event{queue(Begun), queue(Begun)}},
		"V6 nobody has added it": {invariant: "V6", says: "without having been added",
			sound:   []Event{queue(Enqueued), queue(Taken), ended("error", 0), queue(Taken)},
			planted: []Event{queue(Enqueued), queue(Taken), ended("done", 0), queue(Taken)}},
		"V7 no rest": {invariant: "V7", says: "no rest",
			sound: []Event{started, rest}, planted: []Event{started, {What: Restless, Text: "a key"}}},
		"V7 a reconcile at rest": {invariant: "V7", says: "no timer says so",
			sound:   []Event{started, ended("after", time.Second), rest, queue(Begun), finished},
			planted: []Event{started, ended("done", 0), rest, queue(Begun), finished}},
		"V7 a write at rest": {invariant: "V7", says: "writes",
			sound:   []Event{started, rest, finished, changed("updated", "k", "u", 2)},
			planted: []Event{started, rest, changed("updated", "k", "u", 2), finished}},
		"V7 an event is counted again at rest": {invariant: "V7", says: "writes Event n at rest",
			sound:   []Event{started, rest, counted(Changed, "Event", "updated"), finished},
			planted: []Event{started, rest, counted(Changed, "Event", "updated"), counted(Changed, "Event", "updated"), finished}},
		"V7 an event is told at rest": {invariant: "V7", says: "writes Event n at rest",
			sound:   []Event{started, rest, counted(Changed, "Event", "updated"), finished},
			planted: []Event{started, rest, counted(Changed, "Event", "created"), finished}},
		"V10 an event is counted again at rest": {invariant: "V10", says: "asks to patch Event.events.k8s.io n at rest",
			sound:   []Event{started, rest, counted(Asked, "Event.events.k8s.io", "patch"), finished},
			planted: []Event{started, rest, counted(Asked, "Event.events.k8s.io", "patch"), counted(Asked, "Event.events.k8s.io", "patch"), finished}},
		"V8 too early": {invariant: "V8", says: "early",
			sound:   []Event{later(0, ended("after", time.Minute)), later(time.Second, queue(Enqueued)), later(2*time.Second, queue(Begun))},
			planted: []Event{later(0, ended("after", time.Minute)), later(2*time.Second, queue(Begun))}},
		"V8 lost": {invariant: "V8", says: "and has not",
			sound:   []Event{started, healed, ended("after", time.Minute), rest, later(time.Minute, queue(Begun)), later(5*time.Minute, finished)},
			planted: []Event{started, healed, ended("after", time.Minute), rest, later(5*time.Minute, finished)}},
		"V10 the dead write": {invariant: "V10", says: "has ended",
			sound:   []Event{started, {What: Crashed, Who: "p"}, later(time.Microsecond, asked("update", "", 1))},
			planted: []Event{started, {What: Crashed, Who: "p"}, later(time.Second, asked("update", "", 1))}},
		"V10 a write after the return": {invariant: "V10", says: "has ended",
			sound:   []Event{started, asked("update", "", 1), {What: Exited, Who: "p"}},
			planted: []Event{started, {What: Exited, Who: "p"}, later(time.Second, asked("update", "", 1))}},
		"V11 what was held up": {invariant: "V11", says: "returned from its Run",
			sound:   []Event{started, {What: Fault, Name: "delay", Key: "p", Delay: time.Second}, {What: Exited, Who: "p"}, later(time.Second, asked("get", "", 1))},
			planted: []Event{started, {What: Fault, Name: "delay", Key: "q", Delay: time.Second}, {What: Exited, Who: "p"}, later(time.Second, asked("get", "", 1))}},
		"V10 what a paused process had sent": {invariant: "V10", says: "has ended",
			sound:   []Event{started, {What: Fault, Name: "pause for 1s", Key: "p", After: time.Second}, {What: Crashed, Who: "p"}, later(time.Second, asked("update", "", 1))},
			planted: []Event{started, {What: Fault, Name: "pause for 1s", Key: "p", After: time.Second}, {What: Crashed, Who: "p"}, later(1100*time.Millisecond, asked("update", "", 1))}},
		"V11 the delay was over": {invariant: "V11", says: "returned from its Run",
			sound:   []Event{started, held, later(time.Minute, over), later(time.Minute, exited), later(time.Minute+time.Second, asked("get", "", 1))},
			planted: []Event{started, held, later(time.Minute, over), later(2*time.Minute, exited), later(2*time.Minute+time.Second, asked("get", "", 1))}},
		"V11 one of two delays is over": {invariant: "V11", says: "returned from its Run",
			sound:   []Event{started, held, held, over, later(time.Minute, exited), later(time.Minute+time.Second, asked("get", "", 1))},
			planted: []Event{started, held, held, over, over, later(time.Minute, exited), later(time.Minute+time.Second, asked("get", "", 1))}},
		"V10 a write at rest that nobody called for": {invariant: "V10", says: "reconciles nothing",
			sound:   []Event{started, rest, queue(Begun), asked("patch", "", 1), ended("done", 0), finished, asked("patch", "", 2)},
			planted: []Event{started, queue(Begun), ended("done", 0), rest, asked("patch", "", 1), finished}},
		"V10 a write by who has lost the lease": {invariant: "V10", lease: "l", says: "p writes ConfigMap k, and the Lease is q's",
			sound:   []Event{started, other, leads("p"), changed("created", "k", "u", 1), leads("q"), {What: Changed, Who: "p", Kind: "Secret", Name: "updated", Key: "s"}},
			planted: []Event{started, other, leads("p"), leads("q"), changed("created", "k", "u", 1)}},
		"V10 a write before the first election": {invariant: "V10", lease: "l", says: "no process's",
			sound:   []Event{started, leads("p"), changed("created", "k", "u", 1)},
			planted: []Event{started, changed("created", "k", "u", 1), leads("p")}},
		"V10 a write after the lease was given back": {invariant: "V10", lease: "l", says: "no process's",
			sound:   []Event{started, leads("p"), {What: Changed, Who: "user", Kind: leases, Name: "updated", Key: "l"}, changed("created", "k", "u", 1)},
			planted: []Event{started, leads("p"), {What: Changed, Who: "p", Kind: leases, Name: "updated", Key: "l"}, changed("created", "k", "u", 1)}},
		"V4 the leader does not do it": {invariant: "V4", lease: "l", says: "never reconciled",
			sound:   []Event{started, other, leads("q"), queue(Enqueued), rest},
			planted: []Event{started, other, leads("p"), queue(Enqueued), rest}},
		"V7 a write at rest, save of the lease": {invariant: "V7", lease: "l", says: "writes ConfigMap",
			sound:   []Event{started, rest, leads("p"), finished},
			planted: []Event{started, rest, leads("p"), changed("updated", "k", "u", 2), finished}},
		"V7 another lease is written at rest": {invariant: "V7", lease: "l", says: "writes Lease.coordination.k8s.io other",
			sound:   []Event{started, rest, leads("p"), finished},
			planted: []Event{started, rest, leads("p"), {What: Changed, Who: "p", Kind: leases, Name: "updated", Key: "other"}, finished}},
		"V7 a lease is written at rest, and nobody elects": {invariant: "V7", says: "writes Lease.coordination.k8s.io l",
			sound:   []Event{started, leads("p"), rest, finished},
			planted: []Event{started, rest, leads("p"), finished}},
		"V10 another lease is asked for at rest": {invariant: "V10", lease: "l", says: "update Lease.coordination.k8s.io other",
			sound:   []Event{started, rest, {What: Asked, Who: "p", Kind: leases, Name: "update", Key: "l"}, finished},
			planted: []Event{started, rest, {What: Asked, Who: "p", Kind: leases, Name: "update", Key: "other"}, finished}},
		"V15 who is elected hangs": {invariant: "V15", lease: "l", says: "was taken up 1m0s",
			sound:   []Event{started, queue(Enqueued), later(time.Hour, leads("p")), later(time.Hour, queue(Begun))},
			planted: []Event{started, queue(Enqueued), later(time.Hour, leads("p")), later(time.Hour+time.Minute, queue(Begun))}},
		"V11 a log line after the end": {invariant: "V11", says: "returned from its Run",
			sound:   []Event{started, {What: Logged, Who: "p"}, {What: Exited, Who: "p"}},
			planted: []Event{started, {What: Exited, Who: "p"}, {What: Logged, Who: "p"}}},
		"V12 a connection is left": {invariant: "V12", says: "left 1 connections",
			sound: []Event{started}, planted: []Event{started, {What: Leftover, Who: "p", Name: "connections", Count: 1}}},
		"V13 more than there is": {invariant: "V13", says: "holds 2",
			sound:   []Event{changed("created", "k", "u", 1), {What: Counted, Who: "p", Kind: m, Count: 1}},
			planted: []Event{changed("created", "k", "u", 1), {What: Counted, Who: "p", Kind: m, Count: 2}}},
		"V13 something waits": {invariant: "V13", says: "holds 1",
			sound:   []Event{changed("created", "k", "u", 1), {What: Counted, Who: "p", Kind: m, Quiet: true}},
			planted: []Event{changed("created", "k", "u", 1), {What: Counted, Who: "p", Kind: m, Count: 1, Quiet: true}}},
		"V14 a second list": {invariant: "V14", says: "list 2",
			sound:   []Event{started, asked("list", "/x?limit=5", 1), asked("list", "/x?limit=5&continue=y", 2), {What: Fault}, asked("watch", "sendInitialEvents=true", 3)},
			planted: []Event{started, asked("list", "/x?limit=5", 1), asked("list", "/x?limit=5", 2)}},
		"V14 a leader lists once more": {invariant: "V14", lease: "l", says: "list 2",
			sound:   []Event{started, asked("list", "/x", 1), leads("p"), asked("list", "/x", 2)},
			planted: []Event{started, asked("list", "/x", 1), leads("q"), asked("list", "/x", 2)}},
		"V14 a fault of another process": {invariant: "V14", says: "after 0 faults",
			sound:   []Event{started, asked("list", "/x", 1), {What: Fault, Name: "cut", Key: "p"}, asked("list", "/x", 2)},
			planted: []Event{started, asked("list", "/x", 1), {What: Fault, Name: "cut", Key: "q"}, asked("list", "/x", 2)}},
		"V14 a fault that harms no list": {invariant: "V14", says: "after 0 faults",
			sound:   []Event{started, asked("list", "/x", 1), {What: Fault, Name: "spoil list", Kind: m}, asked("list", "/x", 2)},
			planted: []Event{started, asked("list", "/x", 1), {What: Fault, Name: "panic", Key: "p"}, asked("list", "/x", 2)}},
		"V14 more than audits ask for": {invariant: "V14", says: "list 5", audit: time.Minute,
			sound: []Event{started, asked("list", "/x", 1), later(time.Minute, asked("list", "/x", 2)), later(time.Minute, asked("list", "/x", 3)), later(time.Minute, asked("list", "/x", 4))},
			planted: []Event{started, asked("list", "/x", 1), later(time.Minute, asked("list", "/x", 2)), later(time.Minute, asked("list", "/x", 3)),
				later(time.Minute, asked("list", "/x", 4)), later(time.Minute, asked("list", "/x", 5))}},
		"V15 another process is cut off": {invariant: "V15", says: "was taken up",
			sound:   []Event{{What: Fault, Name: "cut", Key: "p"}, queue(Enqueued), later(time.Minute, queue(Begun))},
			planted: []Event{{What: Fault, Name: "cut", Key: "q"}, queue(Enqueued), later(time.Minute, queue(Begun))}},
		"V15 it was long ago": {invariant: "V15", says: "was taken up",
			sound:   []Event{{What: Fault, Name: "partition for 5s", Key: "p", After: 5 * time.Second}, later(11*time.Minute, queue(Enqueued)), later(12*time.Minute, queue(Begun))},
			planted: []Event{{What: Fault, Name: "partition for 5s", Key: "p", After: 5 * time.Second}, later(12*time.Minute, queue(Enqueued)), later(13*time.Minute, queue(Begun))}},
		"V15 another key waits": {invariant: "V15", says: "was taken up",
			sound:   []Event{queue(Enqueued), later(time.Second, queue(Begun))},
			planted: []Event{queue(Enqueued), later(time.Minute, queue(Begun))}},
		"V17 a check fails": {invariant: "V17", says: "no page",
			sound: []Event{{What: Check, Name: "settled 1"}}, planted: []Event{{What: Check, Name: "settled 1", Text: "no page"}}},
		"V24 work was left": {invariant: "V24", says: "p's c k returned after writing ConfigMap a, and nothing will call it again",
			sound: []Event{ended("done", 0)}, planted: []Event{{What: Unfinished, Who: "p", Kind: "c", Key: "k", Name: "ConfigMap a", Text: "ConfigMap b"}}},
		"V29 no cause": {invariant: "V29", says: "p's c k runs and does not know why",
			sound: []Event{queue(Enqueued), {What: Begun, Who: "p", Kind: "c", Key: "k", Count: 1}}, planted: []Event{queue(Enqueued), queue(Begun)}},
		"V29 a cause that never was": {invariant: "V29", says: "because of ConfigMap k at version 3, which",
			sound: []Event{changed("created", "k", "u", 1), changed("updated", "k", "u", 2),
				{What: Begun, Who: "p", Kind: "c", Key: "k", Count: 1, Causes: []Cause{{Kind: m, Key: "k", OldVersion: 1, Version: 2}}}},
			planted: []Event{changed("created", "k", "u", 1), changed("updated", "k", "u", 2),
				{What: Begun, Who: "p", Kind: "c", Key: "k", Count: 1, Causes: []Cause{{Kind: m, Key: "k", OldVersion: 1, Version: 3}}}}},
		"V22 a shared object is changed": {invariant: "V22", says: "in place",
			sound: []Event{started}, planted: []Event{started, {What: Mutated, Who: "p", Text: "data"}}},
		"V23 a write without a version": {invariant: "V23", says: "p's update of ConfigMap k removes",
			sound: []Event{started}, planted: []Event{started, {What: Erased, Who: "p", Name: "update", Kind: "ConfigMap", Key: "k"}}},
	} {
		t.Run(name, func(t *testing.T) {
			holds := func(*History) []Violation { return nil }
			for _, v := range invariants {
				if v.name == c.invariant {
					holds = v.holds
				}
			}
			history := func(events []Event) *History {
				return &History{Audit: c.audit, Lease: c.lease, Unguarded: []string{leases, "Secret"}, Events: events}
			}
			if found := holds(history(c.sound)); len(found) > 0 {
				t.Errorf("a sound history violates it: %v", found)
			}
			found := holds(history(c.planted))
			if len(found) == 0 || !strings.Contains(found[0].Text, c.says) {
				t.Errorf("found %v, want a violation that says %q", found, c.says)
			}
		})
	}
}
