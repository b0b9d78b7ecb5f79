// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

// A bubble's clock stands still while one of its goroutines waits for something outside
// of the bubble, possibly forever. A watchdog outside the bubble then reports the
// goroutine, and the run is abandoned.
const (
	patient  = 10 * time.Second // with the clock standing still and one goroutine waiting
	computed = 20               // times as long while a goroutine computes: it may get little CPU
	looks    = 10               // number of looks within that time
)

// watchdog detects from outside that a testing/synctest bubble stands still for ever, and reports
// which goroutine holds its clock, and what to do about it (K12). It reads the stacks of all
// goroutines at intervals of real time. It is used by one goroutine.
type watchdog struct {
	bubble   string        // as in stacks, such as "synctest bubble 7"
	patience time.Duration // before it complains
	moved    func() uint64 // counts events in the bubble
	last     uint64
	seen     map[string]time.Duration // for how long each goroutine has held the clock
}

// look is called every tick. It returns what holds the clock; empty: nothing is known
// to.
func (d *watchdog) look() string {
	if now := d.moved(); now != d.last {
		d.last, d.seen = now, nil
		return ""
	}
	stuck := map[string]goroutine{}
	for _, g := range goroutinesOf(d.bubble) {
		if !g.durable {
			stuck[g.header()] = g
		}
	}
	seen := map[string]time.Duration{}
	for id := range stuck {
		seen[id] = d.seen[id] + d.tick()
	}
	d.seen = seen
	busy := slices.ContainsFunc(slices.Collect(maps.Values(stuck)), goroutine.computes)
	for _, id := range slices.Sorted(maps.Keys(stuck)) {
		g := stuck[id]
		switch {
		case busy && (!g.computes() || seen[id] < computed*d.patience): // waiting goroutines may wait for it
		case seen[id] >= d.patience:
			return g.complaint(seen[id])
		}
	}
	return ""
}

func (d *watchdog) tick() time.Duration { return d.patience / looks }

// goroutine is one goroutine of a stack dump.
type goroutine struct {
	id      string
	state   string // such as "IO wait"
	durable bool   // it waits within its own bubble
	stack   string
}

func (g goroutine) header() string { return g.id + " " + g.state + " " + g.top() }

func (g goroutine) computes() bool {
	return slices.Contains([]string{"running", "runnable", "preempted", "copystack"}, g.state) || strings.HasPrefix(g.state, "GC ")
}

func (g goroutine) top() string {
	name, _, _ := strings.Cut(g.stack, "\n")
	return name
}

var goroutineLine = regexp.MustCompile(`^goroutine (\d+)(?: gp=\S+ m=\S+(?: mp=\S+)?)? \[([^\]]*)\]:\n`)

func goroutinesOf(bubble string) []goroutine { return parseStacks(allStacks(), bubble) }

func parseStacks(all, bubble string) (out []goroutine) {
	for text := range strings.SplitSeq(all, "\n\n") {
		head := goroutineLine.FindStringSubmatch(text)
		if head == nil {
			continue
		}
		facts := strings.Split(head[2], ", ")
		if !slices.Contains(facts, bubble) {
			continue
		}
		state, durable := strings.CutSuffix(facts[0], " (durable)")
		g := goroutine{id: head[1], state: strings.TrimSuffix(state, " (scan)"), durable: durable, stack: text[len(head[0]):]}
		g.durable = g.durable || g.state == "coroutine" || strings.HasPrefix(g.state, "synctest.")
		out = append(out, g)
	}
	return out
}

func allStacks() string {
	for size := 1 << 20; ; size *= 2 {
		text := make([]byte, size)
		if n := runtime.Stack(text, true); n < size || size >= 1<<28 {
			return string(text[:n])
		}
	}
}

// leftInBubble returns the goroutines that keep a bubble from ending.
func leftInBubble(bubble string) string {
	var text strings.Builder
	for _, g := range goroutinesOf(bubble) {
		fmt.Fprintf(&text, "goroutine %s [%s]:\n%s\n", g.id, g.state, strings.TrimSpace(g.stack))
	}
	return text.String()
}

// complaint describes what the goroutine waits for, and what to do.
func (g goroutine) complaint(since time.Duration) string {
	return fmt.Sprintf("virtual time has stood still for %v of real time, and would stand still forever: a goroutine of the bubble %s.\n%s\n"+
		"goroutine %s [%s]:\n%s", since.Round(time.Second), g.cause().what, g.cause().advice, g.id, g.state, strings.TrimSpace(g.stack))
}

// cause is something that can hold a bubble's clock, with the functions in the stack
// that show it.
type cause struct {
	functions []string
	what      string
	advice    string
}

var causes = []cause{
	{[]string{"net.(*TCPListener).Accept", "net.(*UnixListener).Accept", "net.(*netFD).accept"}, "accepts connections on a real port",
		"Open no listener in a simulation: the webhooks of the manager are served over the simulated network, and metrics and health are off. A server of the program's own is given to setup as an option that the test leaves out."},
	{[]string{"net.(*Dialer).", "net.(*sysDialer).", "net.(*Resolver).", "net.(*netFD).connect"}, "connects to a real address",
		"Reach the API server by mgr.Client, mgr.Config or mgr.Informers, whose connections are simulated. A client of anything else is given to setup as an interface that the test puts a fake in for."},
	{[]string{"os/exec.(*Cmd).", "os.(*Process)."}, "waits for another process",
		"Start no process in a simulation: give what does that to setup as an interface that the test puts a fake in for."},
	{[]string{"internal/poll.(*FD)."}, "waits for a real file or connection",
		"Give what reads and writes there to setup as an interface that the test puts a fake in for, or net.Pipe for a connection."},
	{[]string{"sync.(*Mutex).Lock", "sync.(*RWMutex).Lock", "sync.(*RWMutex).RLock", "internal/sync.(*Mutex).Lock"}, "waits for a lock that another one holds while it waits for time to pass",
		"Hold no lock while waiting: time does not pass for others then. Look for who holds it, and have it unlock before it sleeps, sends a request or uses a channel."},
}

func (g goroutine) cause() cause {
	for _, c := range causes {
		for _, f := range c.functions {
			if strings.Contains(g.stack, f) {
				return c
			}
		}
	}
	switch {
	case g.computes():
		return cause{what: "computes without end, or without ever waiting", advice: "Let the loop end, or wait in it for a timer or a channel."}
	case strings.HasPrefix(g.state, "chan ") || strings.HasPrefix(g.state, "select") || strings.HasPrefix(g.state, "sync."):
		return cause{what: "waits for a channel or another thing that was made outside of the bubble",
			advice: "Make it in setup or in the scenario, not in a package variable, in init or before kit.Test."}
	}
	return cause{what: "is in a system call or waits for something outside of the bubble", advice: "Give what calls there to setup as an interface that the test puts a fake in for."}
}

// bubbleEnd is how a bubble has ended.
type bubbleEnd struct {
	Text      string // empty: normally
	Abandoned bool   // it has not ended: it would stand still forever
}

// guardBubble waits until a bubble has ended, or until the watchdog complains. moved counts
// what happens in it; begun delivers its name, from bubbleOf, and ended why it could
// not end, if so. patience is in real time; 0: the default.
func guardBubble(moved func() uint64, patience time.Duration, begun, ended <-chan string) bubbleEnd {
	d := &watchdog{moved: moved, patience: cmp.Or(patience, patient)}
	tick := time.NewTicker(d.tick())
	defer tick.Stop()
	for {
		select {
		case text := <-ended:
			return bubbleEnd{Text: text}
		case <-tick.C:
			if d.bubble == "" {
				select {
				case d.bubble = <-begun:
				default:
					continue
				}
			}
			if text := d.look(); text != "" {
				return bubbleEnd{Text: text, Abandoned: true}
			}
		}
	}
}
