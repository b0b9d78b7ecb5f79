// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate"
)

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
var deeds = map[Verb]func(*World, target) (over func()){
	cut: func(w *World, t target) func() { t.process.eachNetwork((*simulate.Network).Cut); return nil },
	blackHole: func(w *World, t target) func() {
		t.process.eachNetwork((*simulate.Network).BlackHole)
		t.process.outside.checkHealth(0)
		return nil
	},
	refuse: func(w *World, t target) func() {
		t.process.refuse(true)
		return func() { t.process.refuse(false) }
	},
	partition: func(w *World, t target) func() {
		t.process.eachNetwork((*simulate.Network).BlackHole)
		t.process.part(true)
		t.process.outside.checkHealth(t.op.For)
		return func() { t.process.part(false) }
	},
	delay: func(w *World, t target) func() {
		t.process.eachNetwork(func(n *simulate.Network) { n.Delay(time.Duration(t.op.Amount)) })
		return func() { t.process.eachNetwork(func(n *simulate.Network) { n.Delay(0) }) }
	},
	loseResponse: func(w *World, t target) func() {
		switch {
		case t.request != nil && t.op.When.Event == "":
			w.server.LoseResponseTo(*t.request)
		case t.op.Kind != "":
			w.server.LoseResponseOf(slices.DeleteFunc(w.server.Kinds(), func(k schema.GroupKind) bool { return !ofKind(k.String(), t.op.Kind) })...)
		default:
			w.server.LoseResponse(int(t.op.Amount))
		}
		return nil
	},

	lag: func(w *World, t target) func() {
		w.server.LagTo(w.server.Revision())
		return w.server.CatchUp
	},
	slow: func(w *World, t target) func() { return w.slow(t.kind, time.Duration(t.op.Amount)) },
	dropEvent: func(w *World, t target) func() {
		w.server.DropEvent(t.kind, int(t.op.Amount))
		if w.cfg.Manager.Informers.Audit == 0 {
			w.record.mislead()
		}
		return nil
	},
	duplicate: func(w *World, t target) func() { w.server.Duplicate(t.kind, int(t.op.Amount)); return nil },
	reorder:   func(w *World, t target) func() { w.server.Reorder(t.kind); return nil },
	coalesce:  func(w *World, t target) func() { w.server.Coalesce(t.kind); return nil },
	noEndBookmark: func(w *World, t target) func() {
		w.server.NoEndBookmark(t.kind, true)
		return func() { w.server.NoEndBookmark(t.kind, false) }
	},
	mute:         func(w *World, t target) func() { w.server.Mute(t.kind); return nil },
	closeWatches: func(w *World, t target) func() { w.server.CloseWatches(t.kind); return nil },
	compact:      func(w *World, t target) func() { w.server.Compact(); return nil },
	restartCache: func(w *World, t target) func() { w.server.RestartCache(); return nil },
	rewind: func(w *World, t target) func() {
		w.server.Rewind(w.undoable(t.op.Amount))
		w.record.forgetForeign() // the annotations may be undone
		w.record.mislead()
		return nil
	},
	overload: func(w *World, t target) func() { w.server.Overload(int(t.op.Amount), t.op.Code, 1); return nil },
	deny: func(w *World, t target) func() {
		words := []string{"list", "watch", "create", "update", "patch", "delete"}
		for _, word := range words {
			w.server.Deny(word, t.kind)
		}
		return func() {
			for _, word := range words {
				w.server.Allow(word, t.kind)
			}
		}
	},
	reject: func(w *World, t target) func() { w.server.Reject(t.kind, int(t.op.Amount), t.op.Code); return nil },
	failConversion: func(w *World, t target) func() {
		w.server.FailConversion(t.kind, true)
		return func() { w.server.FailConversion(t.kind, false) }
	},
	changeSchema: func(w *World, t target) func() {
		_ = w.server.RewriteDefinition(t.kind) // a removed CRD needs none
		return nil
	},
	expireTokens: func(w *World, t target) func() { w.server.AcceptTokens(); return w.server.AcceptAll },
	spoilList:    func(w *World, t target) func() { w.server.Spoil(t.kind, w.spoilage(t)); return nil },
	spoilEvent: func(w *World, t target) func() {
		how := w.spoilage(t)
		if how == simulate.OtherPage { // a page cannot appear within a stream
			how = simulate.Garbage
		}
		w.server.SpoilEvent(t.kind, how)
		return nil
	},
	expireContinue: func(w *World, t target) func() { w.server.ExpireContinue(int(t.op.Amount)); return nil },

	crash: func(w *World, t target) func() { t.process.crash(); return t.process.program.restart },
	timeTravel: func(w *World, t target) func() {
		w.server.LagTo(max(w.server.Revision()-t.op.Amount, 1))
		w.lasting(t.draw+" behind", t.op.For+behind, w.server.CatchUp)
		t.process.crash()
		return t.process.program.restart
	},
	stop:   func(w *World, t target) func() { t.process.stop(t.op.For); return nil },
	pause:  func(w *World, t target) func() { t.process.hold(t.op.For); return nop },
	panics: func(w *World, t target) func() { t.process.next.misbehave(mishap{panics: true}); return nil },
	hang:   func(w *World, t target) func() { t.process.next.misbehave(mishap{hangs: t.op.For}); return nil },
	stall:  func(w *World, t target) func() { t.process.next.stall(t.op.For); return nil },
	jump:   func(w *World, t target) func() { w.hold(t.op.For); return nop },

	clockStep: func(w *World, t target) func() { t.process.stepClock(time.Duration(t.op.Amount)); return nil },

	poison: func(w *World, t target) func() { _ = w.server.Poison(t.kind, t.key); return nil }, // a removed object needs none
	huge:   func(w *World, t target) func() { w.annotate(t, strings.Repeat("x", int(t.op.Amount))); return nil },
	nasty: func(w *World, t target) func() {
		w.annotate(t, nastyTexts[w.draws.Next(t.draw+" text")%uint64(len(nastyTexts))])
		return nil
	},
	foreignWrite: func(w *World, t target) func() { t.writeForeign(w); return nil },
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
func (w *World) fire(op Op, nth int, before *simulate.Request) bool {
	t := target{op: op, draw: fmt.Sprintf("%s %d", op.id, nth), request: before}
	if w.record.healed() || !w.aim(&t) {
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
		what.Kind = w.kindOf(t.kind)
	}
	w.note(what)
	over := deeds[op.Verb](w, t)
	if over == nil {
		return true
	}
	end := Event{What: Over, Who: "fault", Name: what.Name, Kind: what.Kind, Key: what.Key}
	w.lasting(t.draw, op.For, func() {
		over()
		w.note(end)
	})
	return true
}

// aim chooses the subject of an operation; false: there is none.
func (w *World) aim(t *target) bool {
	running := w.running()
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
	if t.op.Verb == rewind && w.undoable(t.op.Amount) < 1 {
		return false
	}
	t.process = running[w.draws.Next(t.draw+" process")%uint64(len(running))]
	if i := slices.IndexFunc(running, func(p *process) bool { return t.request != nil && p.name == t.request.Client }); i >= 0 {
		t.process = running[i] // the process that sends the write
	}
	of := subjects[t.op.Verb]
	if of == theServer || of == aProcess {
		return true
	}
	kinds := w.server.Watched()
	if of == aCustomKind {
		kinds = slices.DeleteFunc(kinds, func(r schema.GroupResource) bool { return !w.server.IsCustom(r) })
	}
	if t.op.Kind == "" && t.request != nil && t.op.When.Event == "" && of == aKind {
		t.kind = t.request.Resource
		return true
	}
	if t.op.Kind != "" {
		kinds = slices.DeleteFunc(kinds, func(r schema.GroupResource) bool { return !ofKind(w.kindOf(r), t.op.Kind) })
	}
	if t.op.Verb == foreignWrite && t.request != nil && t.op.When.Event == "" {
		t.kind, t.key = t.request.Resource, t.request.Key
		return storedAt(w.server, t.kind, t.key) != nil
	}
	if len(kinds) == 0 {
		return false
	}
	t.kind = kinds[w.draws.Next(t.draw+" kind")%uint64(len(kinds))]
	if of != anObject {
		return true
	}
	objects := w.server.Objects(t.kind)
	if len(objects) == 0 {
		return false
	}
	m := objects[w.draws.Next(t.draw+" object")%uint64(len(objects))]
	t.key = types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}
	return true
}

// lasting calls over when d has passed, or when the faults end.
func (w *World) lasting(draw string, d time.Duration, over func()) {
	ends := w.faultyFor(draw, d)
	w.group.Go(func() {
		ends()
		over()
	})
}

// faultyFor returns a function that blocks until d from now has passed, or the faults
// end.
func (w *World) faultyFor(draw string, d time.Duration) (wait func()) {
	now := time.Now()
	over := w.instants.Place(now, now.Add(d+w.draws.UpTo(draw+" over", time.Millisecond)), draw+" over")
	return func() {
		if !w.instants.SleepAs(w.faulty, over) { // all end at the same time, but one after the other
			w.instants.Rest(w.ctx, draw+" healed", w.draws.UpTo(draw+" healed", time.Millisecond))
		}
	}
}

// schedule makes op happen at its times during the fault phase. Operations triggered by
// writes and events happen where those are counted.
func (w *World) schedule(op Op) {
	switch {
	case op.When.counts():
	case op.When.Rate > 0:
		w.group.Go(func() {
			for nth := 0; ; nth++ {
				gap := time.Duration(-math.Log(1-w.draws.Float(op.id+" gap")) / op.When.Rate * float64(time.Second))
				if !w.instants.Rest(w.faulty, op.id, gap) {
					return
				}
				w.fire(op, nth, nil)
			}
		})
	default:
		w.group.Go(func() {
			if w.instants.Rest(w.faulty, op.id, time.Until(w.start.Add(op.When.At))) {
				w.fire(op, 0, nil)
			}
		})
	}
}

func (w *World) spoilage(t target) simulate.Spoilage {
	all := []simulate.Spoilage{simulate.Truncated, simulate.Garbage, simulate.OtherPage}
	return all[w.draws.Next(t.draw+" how")%uint64(len(all))]
}

// annotate writes text into an object as another client would.
func (w *World) annotate(t target, text string) {
	_ = w.server.Change(t.kind, t.key, func(m metav1.Object) { // a removed object needs none
		annotations := m.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[annotationOf(t.op.Verb)] = text
		m.SetAnnotations(annotations)
	})
}

func annotationOf(v Verb) string {
	return "kit.flyball.dev/" + strings.ReplaceAll(string(v), " ", "-")
}

// foreign is an annotation that was added to an object before a request for it was
// carried out.
type foreign struct {
	uid     types.UID
	text    string
	request int // the server's number of the request
}

type storedKey struct {
	kind schema.GroupResource
	key  types.NamespacedName
}

// writeForeign annotates the object, and remembers the annotation until the request
// that it precedes has been carried out.
func (t target) writeForeign(w *World) {
	text := fmt.Sprint(w.server.Revision()) // no two are equal
	w.annotate(t, text)
	if is := storedAt(w.server, t.kind, t.key); t.request != nil && t.op.When.Before != "" && is != nil {
		w.record.expectForeign(storedKey{t.kind, t.key}, foreign{is.GetUID(), text, t.request.Number})
	}
}

// erased records that the request has removed a foreign annotation that its sender
// cannot have seen: the request arrived before the annotation was written.
func (t tracer) erased(r simulate.Request) {
	at := storedKey{r.Resource, r.Key}
	wrote, known := t.w.record.foreignAt(at)
	if !known {
		return
	}
	is := storedAt(t.w.server, r.Resource, r.Key)
	gone := is == nil || is.GetUID() != wrote.uid
	kept := !gone && is.GetAnnotations()[annotationOf(foreignWrite)] == wrote.text
	if !gone && !kept && r.Number <= wrote.request && programOf(r.Client) != "" {
		t.w.note(Event{What: Erased, Who: r.Client, Name: r.Verb, Kind: kindText(r), Key: keyText(r.Key.Namespace, r.Key.Name), Request: t.w.record.numbered(r)})
	}
	if !kept || r.Number == wrote.request {
		t.w.record.forgetForeign(at)
	}
}

// storedAt returns a stored object; nil: there is none.
func storedAt(s *simulate.Server, of schema.GroupResource, key types.NamespacedName) metav1.Object {
	for _, m := range s.Objects(of) {
		if m.GetNamespace() == key.Namespace && m.GetName() == key.Name {
			return m
		}
	}
	return nil
}

// met counts a request for each operation that waits for it, fires those whose count is
// reached, and reports whether one breaks the connection of the request. The request
// continues at another instant than the effects of the faults.
func (w *World) met(r simulate.Request, what meeting) (broken bool) {
	fired := false
	for _, op := range w.history.Plan {
		if !op.meets(r, what) || !w.turn(op) || !w.fire(op, 0, &r) {
			continue
		}
		fired = true
		if what == leaving {
			broken = broken || op.Verb == cut || op.Verb == crash || op.Verb == timeTravel
		}
	}
	if fired {
		w.instants.Rest(w.serving, fmt.Sprintf("met %d %s %s %s", what, r.Client, r.Verb, r.Path), 0)
	}
	return broken
}

func (w *World) turn(op Op) bool {
	w.record.mu.Lock()
	defer w.record.mu.Unlock()
	w.record.mu.met[op.id]++
	return w.record.mu.met[op.id] == op.When.Nth
}
