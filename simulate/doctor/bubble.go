// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/internal/stacks"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/kit"
)

// bubbles runs a program of a test in bubbles, in virtual time.
type bubbles struct {
	setup func(*manager.Manager) error
	main  func(context.Context, *rest.Config) error
	cfg   kit.Config
	// restWithin bounds the wait for rest after a step, in virtual time.
	restWithin time.Duration
}

// margin is how long the fault phase of a run lasts beyond its walk, and roughly what its length is rounded to.
const (
	margin  = 2 * time.Minute
	roughly = 10 * time.Minute
)

// A run with faults ends when it has so many times the events of one without, because it goes round in circles.
const (
	busy        = 12
	leastEvents = 4000
	// A run without faults may have so many events, more for each object of the start, which informers take, and still
	// more for each sample, of which the program makes something.
	usualEvents, eventsOfAnObject, eventsOfASample = 30_000, 10, 200
)

// play runs a walk with a plan. like is a run without faults; nil: this is the first one.
func (b bubbles) play(t *testing.T, w walk, p plan, seed uint64, like *trial) *trial {
	out := &trial{plan: p, seed: seed, peaks: map[ref]int64{}}
	cfg := b.cfg
	cfg.Faults, cfg.Seeds = p.Faults, 1
	if cfg.Faults == nil {
		cfg.Faults = kit.Plan{}
	}
	cfg.FaultPhase = margin + time.Duration(len(w.steps))*b.restWithin
	if like != nil {
		cfg.MaxEvents = max(busy*like.events, leastEvents)
		cfg.FaultPhase = margin
		for _, d := range like.took {
			cfg.FaultPhase += d
		}
	}
	cfg.FaultPhase = cfg.FaultPhase.Truncate(roughly) + roughly // draws depend on it
	lines := &callers{}
	if b.setup != nil {
		given := rest.Config{}
		if cfg.Manager.Config != nil {
			given = *cfg.Manager.Config
		}
		given.Wrap(lines.wrap)
		cfg.Manager.Config = &given
	}
	on := &inBubble{within: b.restWithin}
	bubble := ""
	h := kit.Run(t, cfg, seed, func(world *kit.World) {
		on.world, on.start, bubble = world, time.Now(), stacks.Bubble()
		playing.Store(bubble, out)
		world.Server().RefuseStreams(p.travels())
		b.start(world, out, lines)
		out.begin(world.Server())
		world.Settled(func() error {
			out.last = out.content(world.Server())
			return nil
		})
		world.Never(func() error {
			out.peak(world)
			return nil
		})
		out.play(context.Background(), w, on, like)
	})
	out.read(h, on.begun)
	lines.join(out)
	playing.Delete(bubble)
	out.write = h.Write
	return out
}

// inBubble is a stage in virtual time.
type inBubble struct {
	world  *kit.World
	within time.Duration
	start  time.Time
	begun  []time.Duration // the steps
}

func (b *inBubble) server() *simulate.Server { return b.world.Server() }
func (b *inBubble) client() *client.Client   { return b.world.Client() }
func (b *inBubble) begin(int) {
	b.world.Sleep(time.Second) // so that the steps' times differ
	b.begun = append(b.begun, time.Since(b.start))
}
func (b *inBubble) pause(d time.Duration)           { b.world.Sleep(d) }
func (b *inBubble) hurry(took time.Duration)        { b.world.Sleep(min(took, time.Minute)) }
func (b *inBubble) rest(func() bool) (moves string) { return b.world.AwaitRest(b.within) }

// start starts the program.
func (b bubbles) start(world *kit.World, out *trial, lines *callers) {
	if b.setup != nil {
		world.RunAs(operator, b.setup)
		return
	}
	kit.RunMain(world, operator, func(ctx context.Context, cfg *rest.Config) error {
		cfg = rest.CopyConfig(cfg)
		cfg.Wrap(lines.wrap)
		return b.main(ctx, cfg)
	})
}

// playing are the trials that run, by their bubbles. The context of a reconcile does not come from that of the
// program in controller-runtime.
var playing sync.Map

// A reconcile that panics in controller-runtime calls the handlers of apimachinery, and fails.
func init() {
	utilruntime.PanicHandlers = append(utilruntime.PanicHandlers, func(_ context.Context, value any) {
		if known, ok := playing.Load(stacks.Bubble()); ok {
			t, _ := known.(*trial)
			t.addWrong(wrong{"panic", fmt.Sprintf("a reconcile has panicked: %v%s", value, panicked())})
		}
	})
}

// peak takes note of the highest numbers of replicas.
func (t *trial) peak(world *kit.World) {
	for _, resource := range []string{"statefulsets", "deployments"} {
		for obj := range world.Server().Look(schema.GroupResource{Group: "apps", Resource: resource}) {
			if u, ok := obj.(*unstructured.Unstructured); ok {
				t.raise(u)
			}
		}
	}
}

// read takes from a history what the plans and the judgement need.
func (t *trial) read(h *kit.History, begun []time.Duration) {
	open := map[int]int{} // asks by the number of their request
	t.events = len(h.Events)
	for _, e := range h.Events {
		if e.What == kit.Stopping {
			break
		}
		who, at := whoOf(e.Who), stepAt(begun, e.At)
		switch e.What {
		case kit.Changed:
			t.changes = append(t.changes, change{
				At: e.At, Step: at, Who: who, Verb: e.Name, Of: ref{e.Kind, e.Key}, UID: e.UID, Version: e.Version, Fields: e.Text,
			})
		case kit.Asked:
			if e.Name == "watch" && who == operator && !slices.Contains(t.watched, e.Kind) {
				t.watched = append(t.watched, e.Kind)
			}
			if method(e.Name) == "" {
				continue
			}
			open[e.Request] = len(t.asks)
			t.asks = append(t.asks, ask{At: e.At, Step: at, Who: who, Write: e.Name + " " + e.Kind + e.Subresource(), Of: ref{e.Kind, e.Key}, Run: e.Run, path: pathOf(e.Text)})
		case kit.Answered:
			if i, ok := open[e.Request]; ok {
				t.asks[i].Code, t.asks[i].Done = e.Code, e.At
				delete(open, e.Request)
			}
		default:
			t.readLife(e)
		}
	}
	for i := range t.changes {
		if c := &t.changes[i]; c.Who != user {
			c.Run = t.runOf(*c)
		}
	}
	slices.Sort(t.watched)
	t.polls = mostPolls(pollsOf(h.Events))
	for _, v := range h.Violations {
		t.addWrong(wrong{v.Invariant, v.Text})
	}
}

// pollsOf returns what the program asks for at the end, within window and after the last change and the last fault.
func pollsOf(events []kit.Event) map[string]int {
	all, end := map[string]int{}, time.Duration(0)
	for _, e := range slices.Backward(events[:max(slices.IndexFunc(events, isStopping), 0)]) {
		end = max(end, e.At)
		if e.At <= end-window || e.What == kit.Changed && !excused(e.Kind) || e.What == kit.Fault || e.What == kit.Healed {
			break
		}
		if e.What == kit.Asked && whoOf(e.Who) == operator && !excused(e.Kind) {
			all[pollOf(e.Name, e.Kind, pathOf(e.Text))]++
		}
	}
	return all
}

func isStopping(e kit.Event) bool { return e.What == kit.Stopping }

// readLife reads an event that is no request and no change.
func (t *trial) readLife(e kit.Event) {
	switch e.What {
	case kit.Fault:
		t.faults = append(t.faults, happening{e.At, e.Name + " " + e.Text})
		t.blindUntil = max(t.blindUntil, e.At+e.After)
	case kit.Endless:
		t.circled = e.At
	case kit.Ended:
		if e.Name == "panic" {
			t.addWrong(wrong{"panic", fmt.Sprintf("the reconcile %s %s has panicked: %s", e.Kind, e.Key, e.Text)})
		}
	case kit.Crashed:
		t.lives = append(t.lives, happening{e.At, "the process is gone"})
	case kit.Started:
		t.lives = append(t.lives, happening{e.At, "the process starts"})
	case kit.Exited:
		if e.Text != "" && !e.Quiet {
			t.lives = append(t.lives, happening{e.At, "the process has ended: " + e.Text})
		}
	}
}

// runOf returns the reconcile that has made a change.
func (t *trial) runOf(c change) string {
	for _, a := range slices.Backward(t.asks) {
		if a.At <= c.At && a.Of == c.Of && a.Who == c.Who {
			return a.Run
		}
	}
	return ""
}

func whoOf(name string) string {
	switch {
	case name == user:
		return user
	case strings.HasPrefix(name, operator):
		return operator
	}
	return cluster
}

// stepAt returns the step, from 0, during which something happened.
func stepAt(begun []time.Duration, at time.Duration) int {
	i := 0
	for i+1 < len(begun) && begun[i+1] <= at {
		i++
	}
	return i
}

func pathOf(text string) string {
	path, _, _ := strings.Cut(text, "?")
	return path
}
