// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/manager"
)

// program is what a World runs under one name: one process at a time, with another of
// the same setup after a crash or stop. Replicas are separate programs.
type program struct {
	w     *World
	name  string
	setup func(*manager.Manager) error
	main  func(context.Context, *rest.Config) error // in place of setup; nil: there is a manager
	mu    struct {
		sync.Mutex
		lives []*process
	}
}

func (p *program) alive() *process {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.mu.lives) == 0 {
		return nil
	}
	if last := p.mu.lives[len(p.mu.lives)-1]; !last.isOver() {
		return last
	}
	return nil
}

// isMain reports whether the program has no Flyball manager.
func (p *program) isMain() bool { return p.main != nil }

// restart begins another life if none is alive and the run continues.
func (p *program) restart() {
	if p.alive() == nil && !p.w.stops() {
		p.begin()
	}
}

// Run starts the program: it creates a manager on the world's server and passes it to
// setup, the function that main calls. It returns at once. After a crash or stop
// another process with the same setup follows. In the history they are manager-1,
// manager-2 and so on. For replicas, or a second operator, see RunAs.
func (w *World) Run(setup func(*manager.Manager) error) {
	w.run("Run", &program{w: w, name: "manager", setup: setup})
}

// RunAs is Run for a world of several processes. Each has its own name, manager and
// network to the server. Faults of one do not affect the others; Op.In chooses one. In
// the history they are name-1, after a crash name-2, and so on.
func (w *World) RunAs(name string, setup func(*manager.Manager) error) {
	w.run("RunAs", &program{w: w, name: name, setup: setup})
}

var nameOfProcess = regexp.MustCompile(`^[a-z]([a-z0-9-]*[a-z0-9])?$`)

func (w *World) run(called string, p *program) {
	name := p.name
	switch others := w.names(); {
	case w.ended():
		return
	case p.setup == nil && p.main == nil:
		w.Fatalf("misuse: %s: setup is nil; give the function that main calls, func(*manager.Manager) error", called)
	case called == "Run" && slices.Contains(others, name):
		w.Fatalf("misuse: Run is called twice; for a second process call w.RunAs(\"replica-b\", setup), and for more controllers in one let one setup add them all")
	case slices.Contains(others, name):
		w.Fatalf("misuse: %s: a process %q runs already; give each a name of its own", called, name)
	case !nameOfProcess.MatchString(name) || slices.Contains([]string{"user", "cluster", "fault"}, name):
		w.Fatalf("misuse: %s: a process cannot be named %q; use small letters, digits and dashes, such as replica-b", called, name)
	}
	w.mu.Lock()
	w.mu.programs = append(w.mu.programs, p)
	w.mu.Unlock()
	p.begin()
}

// programs returns all programs in the order in which they were run.
func (w *World) programs() []*program {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.mu.programs)
}

func (w *World) names() (out []string) {
	for _, p := range w.programs() {
		out = append(out, p.name)
	}
	return out
}

// running returns the live processes in the order of their programs.
func (w *World) running() (out []*process) {
	for _, p := range w.programs() {
		if life := p.alive(); life != nil {
			out = append(out, life)
		}
	}
	return out
}

func (w *World) lives() (out []*process) {
	for _, p := range w.programs() {
		p.mu.Lock()
		out = append(out, p.mu.lives...)
		p.mu.Unlock()
	}
	return out
}

// strayed describes processes and kinds in the plan that do not exist; empty: none.
// known are kinds that existed before.
func (w *World) strayed(known []schema.GroupKind) string {
	names := w.names()
	known = append(known, w.server.Kinds()...)
	for _, op := range w.cfg.Faults {
		if text := unknownKind(op, known); text != "" {
			return "Config.Faults: " + text
		}
		if op.Process != "" && !slices.Contains(names, op.Process) {
			return fmt.Sprintf("Config.Faults: %s is to happen in the process %q, and the scenario runs %s; name one that w.RunAs is given", op.Verb, op.Process, strings.Join(names, ", "))
		}
	}
	return ""
}

// unknownKind returns a kind that op names and that is not known; empty: none.
func unknownKind(op Op, known []schema.GroupKind) string {
	for _, named := range []string{op.Kind, op.When.Write, op.When.Event, kindIn(op.When.Before), kindIn(op.When.After)} {
		if named == "" || named == "*" || slices.ContainsFunc(known, func(k schema.GroupKind) bool { return ofKind(k.String(), named) }) {
			continue
		}
		var names []string
		for _, k := range known {
			if !slices.Contains(names, k.Kind) {
				names = append(names, k.Kind)
			}
		}
		slices.Sort(names)
		return fmt.Sprintf("%s names the kind %q, which the server never served; it knows %s", op.Verb, named, strings.Join(names, ", "))
	}
	return ""
}
