// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"time"

	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/redact"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// Parts are what a program consists of, at one moment.
type Parts struct {
	Program     string
	Now         time.Time
	Phase       string
	Since       time.Time
	Actions     bool        // are taken
	CannotPause string      // why; empty: it can
	Leadership  *Leadership // nil: there is no election
	Sharing     *Sharing    // nil: there is none
	Members     []Member
	Controllers []reconcile.Snapshot
	Informers   []state.Informer
	Findings    map[string][]reconcile.Finding // by controller
	Webhooks    *Webhooks                      // nil: there are none
	Requests    []Requests
	Events      []RecordedEvents
}

// Of returns the overview.
func (p Parts) Of() Overview {
	o := Overview{
		Version: Version, Program: p.Program, Now: p.Now, Phase: p.Phase, Since: p.Since, Actions: p.Actions, CannotPause: p.CannotPause,
		Leadership: p.Leadership, Sharing: p.Sharing.hidden(), Members: append([]Member{}, p.Members...),
		Controllers: make([]Controller, 0, len(p.Controllers)), Informers: make([]Informer, 0, len(p.Informers)),
		Webhooks: p.Webhooks.hidden(), Requests: append([]Requests{}, p.Requests...), Events: append([]RecordedEvents{}, p.Events...),
	}
	for _, c := range p.Controllers {
		o.Controllers = append(o.Controllers, controllerOf(c))
	}
	for _, i := range p.Informers {
		o.Informers = append(o.Informers, informerOf(i))
	}
	for i := range o.Members {
		o.Members[i].Error = redact.Text(o.Members[i].Error)
	}
	pauses := map[string]reconcile.Pauses{}
	for _, c := range p.Controllers {
		pauses[c.Name] = c.Pauses
	}
	o.Problems = problems(o, p.Findings, findingsOfInformers(p.Informers, p.Now), pauses)
	return o
}

func controllerOf(s reconcile.Snapshot) Controller {
	c := Controller{
		Name: s.Name, Synced: s.Synced, Workers: s.Workers, Active: s.Active,
		Ready: s.Queue.Ready, Held: s.Queue.Held, Delayed: s.Queue.Delayed, Failing: s.Failing,
		Outcomes: make(map[string]uint64, len(s.Outcomes)), Overdue: s.Overdue,
		MeanSeconds: mean(s.ReconcileTime.Sum, s.ReconcileTime.Count), MeanWaitSeconds: mean(s.Queue.Latency.Sum, s.Queue.Latency.Count),
		LastEnded: s.LastEnded, Paused: pausedOf(s.Pauses.All), PausedKeys: len(s.Pauses.Keys), Woken: s.Woken,
		Sources: make([]Source, 0, len(s.Sources)), Running: make([]Running, 0, len(s.Running)),
		Recent: make([]Interval, 0, len(s.Recent)), Singleton: s.Singleton, OwnShards: s.OwnShards, Foreign: s.Foreign,
	}
	for outcome, n := range s.Outcomes {
		c.Outcomes[string(outcome)] = n
	}
	for _, src := range s.Sources {
		c.Sources = append(c.Sources, sourceOf(src))
	}
	for _, i := range s.Recent {
		c.Recent = append(c.Recent, Interval{i.Began, i.Done, i.Requeued, i.Failed, i.Ready, i.Oldest.Seconds()})
	}
	for _, r := range s.Running {
		c.Running = append(c.Running, Running(r))
	}
	return c
}

func mean(sum time.Duration, count uint64) float64 {
	if count == 0 {
		return 0
	}
	return sum.Seconds() / float64(count)
}

func sourceOf(s source.Snapshot) Source {
	out := Source{Name: s.Source, Synced: s.Synced, Self: s.Self, Events: s.Events, Dropped: s.Dropped, Keys: s.Keys}
	if s.Kind.Kind != "" {
		out.Kind = s.Kind.String()
	}
	return out
}

func informerOf(i state.Informer) Informer {
	out := Informer{
		Kind: i.Kind.GroupKind().String(), APIVersion: i.Kind.GroupVersion().String(), Synced: i.Synced, Objects: i.Objects, Undecodable: i.Undecodable, Bytes: i.Heap,
		Packed: i.PackedBecause, Fields: i.Fields, Waiting: i.Waiting,
		Scopes: make([]Scope, 0, len(i.Scopes)), Handlers: make([]EventHandler, 0, len(i.Handlers)),
	}
	if i.Packed > 0 {
		out.Bytes = i.Packed
	}
	out.UnusedSince = i.UnusedSince
	if d := i.Division; d.Form != "" {
		out.Division, out.Form, out.Dropped, out.DroppedBytes = divisionText(d), string(d.Form), d.Foreign, d.ForeignBytes
	}
	for _, s := range i.Scans {
		out.Scans = append(out.Scans, Scan{s.Caller, s.Objects, s.Count, s.Last})
	}
	for _, s := range i.Scopes {
		relists := 0
		for _, n := range s.Relists {
			relists += n
		}
		scope := s.Scope.String()
		if s.NamespaceSelector != "" {
			scope = "in namespaces with labels " + s.NamespaceSelector
		}
		out.Scopes = append(out.Scopes, Scope{
			Scope: scope, State: string(s.State), Since: s.Since, Reason: redact.Text(s.Reason), Hint: s.State.Hint(s.Synced), NextTry: s.NextTry,
			Version: uint64(s.Version), LastContact: s.LastContact, Relists: relists, Watches: s.Watches,
		})
	}
	for _, h := range i.Handlers {
		out.Handlers = append(out.Handlers, EventHandler{
			Name: h.Name, Backlog: h.Backlog, Delivered: h.Delivered, Panics: h.Panics,
			RunningSeconds: h.Running.Seconds(), OldestSeconds: h.Oldest.Seconds(),
		})
	}
	return out
}
