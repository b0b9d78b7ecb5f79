// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate"
)

// faults carries out the operations of a plan, and those of World.Do.
type faults struct {
	plan     Plan
	audited  bool // informers find by themselves what was hidden
	server   *simulate.Server
	clock    *clock
	record   *record
	programs *programs
	slow     *slowKinds
	foreign  *foreignWrites
	services services
	mu       struct {
		sync.Mutex
		met    map[string]int // counts of triggers, by operation
		did    map[string]int // counts of Do, by operation
		healed bool
		misled bool // something was hidden that no process detects by itself
	}
}

func newFaults(cfg Config, plan Plan, server *simulate.Server, clock *clock, record *record, programs *programs) *faults {
	f := &faults{
		plan: plan, audited: cfg.Manager.Informers.Audit != 0, server: server, clock: clock, record: record,
		programs: programs, slow: newSlowKinds(server, clock), foreign: newForeignWrites(server, record),
	}
	f.mu.met, f.mu.did = map[string]int{}, map[string]int{}
	return f
}

type target struct {
	op      Op
	draw    string // prefix of the names of its draws
	process *process
	kind    schema.GroupResource
	key     types.NamespacedName // of an object
	request *simulate.Request    // the request it happens before; nil: none
}

// deeds carry out each fault; over undoes it at its end. They do not block, because
// they run wherever a trigger fires.
var deeds = map[Verb]func(*faults, target) (over func()){
	cut: func(f *faults, t target) func() { t.process.eachNetwork((*simulate.Network).Cut); return nil },
	blackHole: func(f *faults, t target) func() {
		t.process.eachNetwork((*simulate.Network).BlackHole)
		t.process.outside.checkHealth(0)
		return nil
	},
	refuse: func(f *faults, t target) func() {
		t.process.refuse(true)
		return func() { t.process.refuse(false) }
	},
	partition: func(f *faults, t target) func() {
		t.process.eachNetwork((*simulate.Network).BlackHole)
		t.process.part(true)
		t.process.outside.checkHealth(t.op.For)
		return func() { t.process.part(false) }
	},
	delay: func(f *faults, t target) func() {
		t.process.eachNetwork(func(n *simulate.Network) { n.Delay(time.Duration(t.op.Amount)) })
		return func() { t.process.eachNetwork(func(n *simulate.Network) { n.Delay(0) }) }
	},
	loseResponse: func(f *faults, t target) func() {
		switch {
		case isCall(t.request): // the Service does it
		case t.request != nil && t.op.When.Event == "":
			f.server.LoseResponseTo(*t.request)
		case t.op.Kind != "":
			f.server.LoseResponseOf(slices.DeleteFunc(f.server.Kinds(), func(k schema.GroupKind) bool { return !ofKind(k.String(), t.op.Kind) })...)
		default:
			f.server.LoseResponse(int(t.op.Amount))
		}
		return nil
	},

	lag: func(f *faults, t target) func() {
		f.server.LagTo(f.server.Revision())
		return f.server.CatchUp
	},
	slow: func(f *faults, t target) func() { return f.slow.begin(t.kind, time.Duration(t.op.Amount)) },
	dropEvent: func(f *faults, t target) func() {
		f.server.DropEvent(t.kind, int(t.op.Amount))
		if !f.audited {
			f.mislead()
		}
		return nil
	},
	duplicate: func(f *faults, t target) func() { f.server.Duplicate(t.kind, int(t.op.Amount)); return nil },
	reorder:   func(f *faults, t target) func() { f.server.Reorder(t.kind); return nil },
	coalesce:  func(f *faults, t target) func() { f.server.Coalesce(t.kind); return nil },
	noEndBookmark: func(f *faults, t target) func() {
		f.server.NoEndBookmark(t.kind, true)
		return func() { f.server.NoEndBookmark(t.kind, false) }
	},
	mute:         func(f *faults, t target) func() { f.server.Mute(t.kind); return nil },
	closeWatches: func(f *faults, t target) func() { f.server.CloseWatches(t.kind); return nil },
	compact:      func(f *faults, t target) func() { f.server.Compact(); return nil },
	restartCache: func(f *faults, t target) func() { f.server.RestartCache(); return nil },
	rewind: func(f *faults, t target) func() {
		f.server.Rewind(f.undoable(t.op.Amount))
		f.foreign.forget() // the annotations may be undone
		f.mislead()
		return nil
	},
	overload: func(f *faults, t target) func() { f.server.Overload(int(t.op.Amount), t.op.Code, 1); return nil },
	deny: func(f *faults, t target) func() {
		words := []string{"list", "watch", "create", "update", "patch", "delete"}
		for _, word := range words {
			f.server.Deny(word, t.kind)
		}
		return func() {
			for _, word := range words {
				f.server.Allow(word, t.kind)
			}
		}
	},
	reject: func(f *faults, t target) func() {
		if !isCall(t.request) { // else the Service does it
			f.server.Reject(t.kind, int(t.op.Amount), t.op.Code)
		}
		return nil
	},
	repeat: func(*faults, target) func() { return nil }, // the Service does it
	failConversion: func(f *faults, t target) func() {
		f.server.FailConversion(t.kind, true)
		return func() { f.server.FailConversion(t.kind, false) }
	},
	changeSchema: func(f *faults, t target) func() {
		_ = f.server.RewriteDefinition(t.kind) // a removed CRD needs none
		return nil
	},
	expireTokens: func(f *faults, t target) func() { f.server.AcceptTokens(); return f.server.AcceptAll },
	spoilList:    func(f *faults, t target) func() { f.server.Spoil(t.kind, f.spoilage(t)); return nil },
	spoilEvent: func(f *faults, t target) func() {
		how := f.spoilage(t)
		if how == simulate.OtherPage { // a page cannot appear within a stream
			how = simulate.Garbage
		}
		f.server.SpoilEvent(t.kind, how)
		return nil
	},
	expireContinue: func(f *faults, t target) func() { f.server.ExpireContinue(int(t.op.Amount)); return nil },

	crash: func(f *faults, t target) func() { t.process.crash(); return t.process.program.restart },
	timeTravel: func(f *faults, t target) func() {
		f.server.LagTo(max(f.server.Revision()-t.op.Amount, 1))
		f.clock.lasting(t.draw+" behind", t.op.For+behind, f.server.CatchUp)
		t.process.crash()
		return t.process.program.restart
	},
	stop:   func(f *faults, t target) func() { t.process.stop(t.op.For); return nil },
	pause:  func(f *faults, t target) func() { t.process.hold(t.op.For); return nop },
	panics: func(f *faults, t target) func() { t.process.next.misbehave(mishap{panics: true}); return nil },
	hang:   func(f *faults, t target) func() { t.process.next.misbehave(mishap{hangs: t.op.For}); return nil },
	stall:  func(f *faults, t target) func() { t.process.next.stall(t.op.For); return nil },
	jump:   func(f *faults, t target) func() { f.clock.hold(t.op.For); return nop },

	clockStep: func(f *faults, t target) func() { t.process.stepClock(time.Duration(t.op.Amount)); return nil },

	corrupt: func(f *faults, t target) func() { _ = f.server.Corrupt(t.kind, t.key); return nil }, // a removed object needs none
	huge:    func(f *faults, t target) func() { f.annotate(t, strings.Repeat("x", int(t.op.Amount))); return nil },
	nasty: func(f *faults, t target) func() {
		f.annotate(t, nastyTexts[f.clock.draws.Next(t.draw+" text")%uint64(len(nastyTexts))])
		return nil
	},
	foreignWrite: func(f *faults, t target) func() { f.writeForeign(t); return nil },
}

func nop() {}

// behind is how long the server of a restarted process lags.
const behind = 5 * time.Second

// nastyTexts are texts that people and programs write into objects.
var nastyTexts = []string{
	"", "\u0000", "\U0001F9A5 été \u202Eright to left", `"}]}',;--`, "null", "1e999", "<script>", "line\r\nbreak\ttab", strings.Repeat("é", 5000), "\ufeffbyte order",
}

// fire carries out an operation for the nth time, and reports whether it did. It does
// not if the fault phase is over or there is no subject. before is the request that it
// happens before; nil: none. It does not block.
func (f *faults) fire(op Op, nth int, before *simulate.Request) bool {
	t := target{op: op, draw: fmt.Sprintf("%s %d", op.id, nth), request: before}
	if f.healed() || !f.chooseTarget(&t) {
		return false
	}
	what := Event{What: Fault, Who: "fault", Name: op.String(), Text: op.When.String(), After: op.For}
	if op.Verb == delay {
		what.Delay = time.Duration(op.Amount)
	}
	switch subjects[op.Verb] {
	case aProcess:
		what.Key = t.process.name
	case anObject:
		what.Key = t.key.String()
	}
	if t.kind.Resource != "" {
		what.Kind = f.server.KindOf(t.kind).String()
	}
	f.record.add(what)
	over := deeds[op.Verb](f, t)
	if over == nil {
		return true
	}
	end := Event{What: Over, Who: "fault", Name: what.Name, Kind: what.Kind, Key: what.Key}
	f.clock.lasting(t.draw, op.For, func() {
		over()
		f.record.add(end)
	})
	return true
}

// chooseTarget chooses the subject of an operation; false: there is none.
func (f *faults) chooseTarget(t *target) bool {
	running := f.programs.running()
	if t.op.Process != "" {
		running = slices.DeleteFunc(running, func(p *process) bool { return p.program.name != t.op.Process })
	}
	if t.op.Verb == stop {
		running = slices.DeleteFunc(running, (*process).stops)
	}
	running = slices.DeleteFunc(running, func(p *process) bool { return !p.outside.takes(t.op.Verb) })
	if len(running) == 0 {
		return false
	}
	if t.op.Verb == rewind && f.undoable(t.op.Amount) < 1 {
		return false
	}
	t.process = running[f.clock.draws.Next(t.draw+" process")%uint64(len(running))]
	if i := slices.IndexFunc(running, func(p *process) bool { return t.request != nil && p.name == t.request.Client }); i >= 0 {
		t.process = running[i] // the process that sends the write
	}
	if t.op.Verb == repeat || isCall(t.request) && t.op.Verb == reject {
		return isCall(t.request)
	}
	of := subjects[t.op.Verb]
	return of == theServer || of == aProcess || f.chooseKind(t, of)
}

// chooseKind chooses the kind and the object of an operation with such a subject.
func (f *faults) chooseKind(t *target, of about) bool {
	kinds := f.server.Watched()
	if of == aCustomKind {
		kinds = slices.DeleteFunc(kinds, func(r schema.GroupResource) bool { return !f.server.IsCustom(r) })
	}
	if t.op.Kind == "" && t.request != nil && t.op.When.Event == "" && of == aKind {
		t.kind = t.request.Resource
		return true
	}
	if t.op.Kind != "" {
		kinds = slices.DeleteFunc(kinds, func(r schema.GroupResource) bool { return !ofKind(f.server.KindOf(r).String(), t.op.Kind) })
	}
	if t.op.Verb == foreignWrite && t.request != nil && t.op.When.Event == "" {
		t.kind, t.key = t.request.Resource, t.request.Key
		return storedAt(f.server, t.kind, t.key) != nil
	}
	if len(kinds) == 0 {
		return false
	}
	t.kind = kinds[f.clock.draws.Next(t.draw+" kind")%uint64(len(kinds))]
	if of != anObject {
		return true
	}
	objects := f.server.Objects(t.kind)
	if len(objects) == 0 {
		return false
	}
	m := objects[f.clock.draws.Next(t.draw+" object")%uint64(len(objects))]
	t.key = types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}
	return true
}

// schedule makes op happen at its times during the fault phase. Operations triggered by
// writes and events happen where those are counted.
func (f *faults) schedule(op Op) {
	switch {
	case op.When.counts():
	case op.When.Rate > 0:
		f.clock.group.Go(func() {
			for nth := 0; ; nth++ {
				gap := time.Duration(-math.Log(1-f.clock.draws.Float(op.id+" gap")) / op.When.Rate * float64(time.Second))
				if !f.clock.instants.Rest(f.clock.faulty, op.id, gap) {
					return
				}
				f.fire(op, nth, nil)
			}
		})
	default:
		f.clock.group.Go(func() {
			if f.clock.instants.Rest(f.clock.faulty, op.id, time.Until(f.clock.start.Add(op.When.At))) {
				f.fire(op, 0, nil)
			}
		})
	}
}

func (f *faults) spoilage(t target) simulate.Spoilage {
	all := []simulate.Spoilage{simulate.Truncated, simulate.Garbage, simulate.OtherPage}
	return all[f.clock.draws.Next(t.draw+" how")%uint64(len(all))]
}

// annotate writes text into an object as another client would.
func (f *faults) annotate(t target, text string) {
	_ = f.server.Change(t.kind, t.key, func(m metav1.Object) { // a removed object needs none
		annotations := m.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[annotationOf(t.op.Verb)] = text
		m.SetAnnotations(annotations)
	})
}

// met counts a request for each operation that waits for it, fires those whose count is
// reached, and returns them. The request continues at another instant than the effects of
// the faults.
func (f *faults) met(r simulate.Request, what meeting) (fired []Op) {
	for _, op := range f.plan {
		if !op.meets(r, what) || !f.turn(op) || !f.fire(op, 0, &r) {
			continue
		}
		fired = append(fired, op)
	}
	if len(fired) > 0 {
		f.clock.instants.Rest(f.clock.serving, fmt.Sprintf("met %d %s %s %s", what, r.Client, r.Verb, r.Path), 0)
	}
	return fired
}

// turn counts op, and reports whether this is the time for it.
func (f *faults) turn(op Op) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.met[op.id]++
	return f.mu.met[op.id] == op.When.Nth
}

// nthDone counts an operation of Do from 0.
func (f *faults) nthDone(id string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	nth := f.mu.did[id]
	f.mu.did[id] = nth + 1
	return nth
}

// heal ends all faults but what processes hold for good, and reports whether this is the
// first call.
func (f *faults) heal() bool {
	f.mu.Lock()
	first := !f.mu.healed
	f.mu.healed = true
	f.mu.Unlock()
	if first {
		f.clock.heal()
		f.server.Heal()
	}
	return first
}

func (f *faults) healed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.healed
}

// mislead notes that from now on a process may hold stale state that it cannot detect.
func (f *faults) mislead() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.misled = true
}

func (f *faults) misled() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.misled
}

// undoable returns how many of the last n revisions can be undone without undoing
// changes of the user, or their consequences.
func (f *faults) undoable(n int64) int {
	return int(min(n, f.server.Revision()-f.record.kept()))
}

// writeForeign annotates the object, and expects the annotation until the request that
// it precedes has been carried out.
func (f *faults) writeForeign(t target) {
	text := fmt.Sprint(f.server.Revision()) // no two are equal
	f.annotate(t, text)
	if is := storedAt(f.server, t.kind, t.key); t.request != nil && t.op.When.Before != "" && is != nil {
		f.foreign.expect(storedKey{t.kind, t.key}, foreign{is.GetUID(), text, t.request.Number})
	}
}

// breaks reports whether one of the faults that happened at a request ends its
// connection.
func breaks(fired []Op) bool {
	return slices.ContainsFunc(fired, func(o Op) bool { return o.Verb == cut || o.Verb == crash || o.Verb == timeTravel })
}
