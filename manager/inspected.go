// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/ownership"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager/internal/actions"
	"github.com/flyball-dev/flyball/manager/internal/inspect"
	"github.com/flyball-dev/flyball/manager/internal/recorder"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/webhook"
)

// inspected is a manager as package inspect describes it.
type inspected struct{ m *Manager }

// Parts implements inspect.Program.
func (i inspected) Parts() inspect.Parts {
	s := i.m.Snapshot()
	p := inspect.Parts{
		Program: filepath.Base(os.Args[0]), Now: time.Now(), Phase: string(s.Phase), Since: s.Since,
		Controllers: s.Controllers, Informers: s.Informers,
	}
	if i.m.elector != nil {
		l := s.Leadership
		p.Leadership = &inspect.Leadership{Lease: l.Lease, Identity: l.Identity, Leading: l.Leading, Holder: l.Holder, Since: l.Since}
		if l.Refused != nil {
			p.Leadership.Refused = l.Refused.Error()
		}
	}
	if s.Sharing != nil {
		p.Sharing = describe(i.m.replicas.agent, s.Sharing)
		p.Sharing.NameKeys(i, s.Controllers)
	}
	if hooks := i.m.webhookServer(); hooks != nil {
		p.Webhooks = webhooksOf(hooks.Snapshot())
	}
	for _, sum := range i.m.requests.Sums() {
		p.Requests = append(p.Requests, inspect.Requests(sum))
	}
	for _, said := range i.m.mail.Said() {
		p.Events = append(p.Events, inspect.RecordedEvents(said))
	}
	for _, one := range i.m.runnables.members() {
		if c, ok := one.runnable.(inspect.Controlled); ok {
			if found := c.Findings(); len(found) > 0 {
				if p.Findings == nil {
					p.Findings = map[string][]reconcile.Finding{}
				}
				p.Findings[c.Name()] = found
			}
		}
	}
	for _, stage := range s.Stages {
		for _, r := range stage.Runnables {
			one := inspect.Member{Stage: string(stage.Stage), Name: r.Name, State: string(r.State), Since: r.Since}
			if r.Err != nil {
				one.Error = r.Err.Error()
			}
			p.Members = append(p.Members, one)
		}
	}
	return p
}

// Stopping implements inspect.Program.
func (i inspected) Stopping() bool {
	phase, _ := i.m.life.phase()
	return phase == PhaseStopping
}

// Sharing implements inspect.Program.
func (i inspected) Sharing() *inspect.Sharing {
	if i.m.replicas == nil {
		return nil
	}
	return describe(i.m.replicas.agent, sharingOf(i.m.replicas.agent.State()))
}

// Controller implements inspect.Program.
func (i inspected) Controller(name string) inspect.Controlled {
	for _, one := range i.m.runnables.members() {
		if c, ok := one.runnable.(inspect.Controlled); ok && c.Name() == name {
			return c
		}
	}
	return nil
}

// Cached implements inspect.Program.
func (i inspected) Cached(kind schema.GroupKind, key kube.Key) (kube.Object, schema.GroupVersionKind) {
	for _, known := range i.m.informers.Kinds() {
		if known.GroupKind() != kind {
			continue
		}
		if obj := i.m.informers.Cached(known, key, nil); obj != nil {
			return obj, known
		}
	}
	return nil, schema.GroupVersionKind{}
}

// webhooksOf returns the state of a webhook server as package inspect describes it.
func webhooksOf(s webhook.Snapshot) *inspect.Webhooks {
	out := &inspect.Webhooks{Address: s.Addr}
	if !s.NotAfter.IsZero() {
		out.Certificate = &inspect.Certificate{Names: append([]string{}, s.Names...), Issuer: s.Issuer, NotBefore: s.NotBefore, NotAfter: s.NotAfter}
	}
	if s.Problem != nil {
		out.Problem = s.Problem.Error()
	}
	for _, err := range s.CABundleErrors {
		out.BundleProblems = append(out.BundleProblems, err.Error())
	}
	for _, h := range s.Webhooks {
		one := inspect.Hook{Path: h.Path, Purpose: string(h.Purpose), Passed: h.Passed, Denied: h.Denied, Failed: h.Failed, InFlight: h.InFlight}
		if h.Kind.Kind != "" {
			one.Kind = h.Kind.GroupKind().String()
		}
		if h.Latency.Count > 0 {
			one.MeanSeconds = h.Latency.Sum.Seconds() / float64(h.Latency.Count)
		}
		out.Webhooks = append(out.Webhooks, one)
	}
	return out
}

// actor returns the program as people act on it.
func (i inspected) actor(opts Options) *actions.Actor {
	m := i.m
	m.sendEvents()
	with := actions.Options{Log: m.log, Events: func(controller string) actions.Recorder { return recorder.New(m.mail, m.scheme, controller) }, Pauses: m.pauses}
	switch {
	case m.replicas != nil && m.pauses != nil:
		with.Lease, with.LeaseKey = m.replicas.agent, kube.Key{Namespace: opts.LeaderElection.Namespace, Name: opts.LeaderElection.ID}
	case m.elector != nil && m.pauses != nil:
		with.Lease, with.LeaseKey = m.elector, kube.Key{Namespace: opts.LeaderElection.Namespace, Name: opts.LeaderElection.ID}
	}
	if host, err := os.Hostname(); err == nil && inPod() && ownership.PodNamespace() != "" {
		with.Pod = kube.Key{Namespace: ownership.PodNamespace(), Name: host}
	}
	return actions.New(acting{i}, with)
}

// acting is an inspected manager that takes actions.
type acting struct{ inspected }

// Parts implements inspect.Program.
func (a acting) Parts() inspect.Parts {
	p := a.inspected.Parts()
	if p.Actions = true; a.m.pauses == nil {
		p.CannotPause = actions.CannotPause
	}
	return p
}

// describe returns s as package inspect describes it.
func describe(agent *ownership.Agent, s *SharingSnapshot) *inspect.Sharing {
	out := &inspect.Sharing{
		Lease: agent.Namespace + "/" + agent.ID, Identity: s.Identity, Plan: s.Plan, LeaseSeconds: agent.LeaseDuration.Seconds(),
		Waits: s.Waits, Refused: s.Refused,
	}
	for _, one := range s.Replicas {
		out.Replicas = append(out.Replicas, inspect.Replica(one))
	}
	for _, one := range s.Shards {
		out.Shards = append(out.Shards, inspect.Shard{Shard: one.Shard, Holder: one.Holder, Next: one.Next, Stage: one.Stage, Since: one.Since})
	}
	for _, move := range s.Moves {
		out.Moves = append(out.Moves, inspect.Move{
			At: move.At, Shard: move.Shard, From: move.From, To: move.To, Reason: inspect.ReasonOf(move.From, move.Planned), TookSeconds: move.Took.Seconds(),
		})
	}
	return out
}
