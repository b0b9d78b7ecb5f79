// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"regexp"
	"slices"
	"sync"

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

func (p *program) allLives() []*process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.mu.lives)
}

// isMain reports whether the program has no Flyball manager.
func (p *program) isMain() bool { return p.main != nil }

// restart begins another life if none is alive and the run continues.
func (p *program) restart() {
	if p.alive() == nil && !p.w.programs.closed() {
		p.begin()
	}
}

// programs are those of a World, in the order in which they were run.
type programs struct {
	mu struct {
		sync.Mutex
		all  []*program
		over bool // no process starts any more
	}
}

func (p *programs) add(one *program) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.all = append(p.mu.all, one)
}

func (p *programs) all() []*program {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.mu.all)
}

// close makes sure that no process starts any more. Those that run continue.
func (p *programs) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.over = true
}

func (p *programs) closed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.over
}

func (p *programs) names() (out []string) {
	for _, one := range p.all() {
		out = append(out, one.name)
	}
	return out
}

// running returns the live processes in the order of their programs.
func (p *programs) running() (out []*process) {
	for _, one := range p.all() {
		if life := one.alive(); life != nil {
			out = append(out, life)
		}
	}
	return out
}

// lives returns all processes, also those that have ended.
func (p *programs) lives() (out []*process) {
	for _, one := range p.all() {
		out = append(out, one.allLives()...)
	}
	return out
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
	switch others := w.programs.names(); {
	case w.ended():
		return
	case p.setup == nil && p.main == nil:
		w.Fatalf("misuse: %s: setup is nil; give the function that main calls, func(*manager.Manager) error", called)
	case called == "Run" && slices.Contains(others, name):
		w.Fatalf("misuse: Run is called twice; for a second process call w.RunAs(\"replica-b\", setup), and for more controllers in one let one setup add them all")
	case slices.Contains(others, name):
		w.Fatalf("misuse: %s: a process %q runs already; use a unique name", called, name)
	case !nameOfProcess.MatchString(name) || slices.Contains([]string{"user", "cluster", "fault"}, name):
		w.Fatalf("misuse: %s: a process cannot be named %q; use small letters, digits and dashes, such as replica-b", called, name)
	}
	w.programs.add(p)
	p.begin()
}
