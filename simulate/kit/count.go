// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import "github.com/flyball-dev/flyball/manager"

func controllersSynced(s manager.Snapshot) bool {
	for _, c := range s.Controllers {
		if !c.Synced {
			return false
		}
	}
	return true
}

// heldBack counts the keys that debounced sources of a process hold back.
func heldBack(s manager.Snapshot) (keys int) {
	for _, c := range s.Controllers {
		for _, source := range c.Sources {
			keys += source.Waiting
		}
	}
	return keys
}

// count records what the running processes hold.
func (p *programs) count() {
	for _, life := range p.running() {
		life.count()
	}
}

func (p *process) count() {
	s, _ := p.snapshot()
	for _, i := range s.Informers {
		backlog := i.Waiting
		for _, handler := range i.Handlers {
			backlog += handler.Backlog
		}
		kind := i.Kind.GroupKind().String()
		p.record(Event{What: Counted, Kind: kind, Name: "objects of " + kind, Count: i.Objects})
		p.record(Event{What: Counted, Kind: kind, Name: "events of " + kind + " that wait", Count: backlog, Quiet: true})
	}
	for _, c := range s.Controllers {
		if p.standsBy() && !p.works(c.Name) {
			continue // the queue of a standby waits for its election
		}
		p.record(Event{What: Counted, Name: "keys of " + c.Name + " that are ready or held", Count: c.Queue.Ready + c.Queue.Held, Quiet: true})
	}
}
