// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package election

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/kube"
)

// HandoverWithin bounds how long a new leader waits. Then its controllers start with a warning.
const HandoverWithin = 15 * time.Second

// Informers can wait for versions. *informer.SharedInformerFactory can.
type Informers interface {
	CatchUp(ctx context.Context, floor func(schema.GroupKind) informer.Floor) []informer.CaughtUp
}

// Handover has started when this process leads and its informers have what the previous
// leader wrote.
type Handover struct {
	elector   *Elector
	informers Informers
	recorder  *Recorder
	started   chan struct{}
}

// AwaitHandover returns a Handover. Its Run runs beside the elector's.
func AwaitHandover(elector *Elector, informers Informers, recorder *Recorder) *Handover {
	return &Handover{elector: elector, informers: informers, recorder: recorder, started: make(chan struct{})}
}

func (h *Handover) Name() string { return "hand-over" }

// Started is closed when the controllers may start.
func (h *Handover) Started() <-chan struct{} { return h.started }

// Run waits to lead, and then for the informers. It returns when ctx ends.
func (h *Handover) Run(ctx context.Context) error {
	select {
	case <-h.elector.Started():
		h.catchUp(ctx, planOf(h.elector.Predecessor()))
	case <-ctx.Done():
	}
	if ctx.Err() == nil {
		close(h.started)
	}
	<-ctx.Done()
	return nil
}

func (h *Handover) catchUp(ctx context.Context, p plan) {
	begun := time.Now()
	bounded, cancel := context.WithTimeout(ctx, HandoverWithin)
	defer cancel()
	waited, lists, behind := h.recorder.CatchUp(bounded, h.informers, p.floor)
	if ctx.Err() != nil {
		return
	}
	log := logr.FromContextOrDiscard(ctx).WithValues("previous", p.previous, "released", p.released, "took", time.Since(begun).String())
	if len(behind) > 0 {
		textlog.Warn(log, nil, "Starting the controllers although their informers may be older than what the previous leader wrote last", "behind", behind)
		return
	}
	if len(waited) == 0 || p.previous == "" {
		log = log.V(1)
	}
	log.Info("The informers have what the previous leader wrote last", "waitedFor", waited, "lists", lists)
}

// CatchUp blocks until the informers have passed the floor of each kind, or ctx ends, and records that this
// process has them. It returns which kinds were waited for, how many lists were sent, and what is behind.
func (r *Recorder) CatchUp(ctx context.Context, informers Informers, floor func(schema.GroupKind) informer.Floor) (waited []string, lists int, behind []string) {
	marks := r.marks()
	all := informers.CatchUp(ctx, floor)
	passed := passedByAll(all, floor)
	for _, c := range all {
		if _, has := passed[c.Kind.GroupKind()]; !has {
			r.disinherit(c.Kind.GroupKind())
		}
	}
	for kind, v := range passed {
		r.inherit(kind, v)
		if floor(kind).Present {
			r.cover(kind, marks[kind])
		}
	}
	return summary(all)
}

// FillGaps asks the server for the kinds of Gaps, and records what the informers have passed of
// them: it is not older than what was written until now. A write that was cut off may still be
// carried out later. filled: the kinds that were gaps are known up to the list, whatever was
// written since.
func (r *Recorder) FillGaps(ctx context.Context, informers Informers) (filled bool) {
	gaps, marks := r.Gaps(), r.marks()
	if len(gaps) == 0 {
		return true
	}
	floor := func(kind schema.GroupKind) informer.Floor {
		return informer.Floor{Present: slices.Contains(gaps, kind)}
	}
	passed := passedByAll(informers.CatchUp(ctx, floor), floor)
	for _, kind := range gaps {
		if v, ok := passed[kind]; ok {
			r.inherit(kind, v)
			r.cover(kind, marks[kind])
		}
	}
	return !slices.ContainsFunc(r.Gaps(), func(kind schema.GroupKind) bool {
		_, ok := passed[kind]
		return !ok && slices.Contains(gaps, kind)
	})
}

// passedByAll returns the version that all informers of a kind have passed, for the kinds of
// which it is known.
func passedByAll(all []informer.CaughtUp, floor func(schema.GroupKind) informer.Floor) map[schema.GroupKind]kube.Version {
	out, not := map[schema.GroupKind]kube.Version{}, map[schema.GroupKind]bool{}
	for _, c := range all {
		kind := c.Kind.GroupKind()
		out[kind] = max(out[kind], c.Version)
		not[kind] = not[kind] || c.Err != nil || c.Version == 0 && floor(kind).Present
	}
	for kind := range not {
		if not[kind] {
			delete(out, kind)
		}
	}
	return out
}

// summary returns what was waited for, for the log.
func summary(all []informer.CaughtUp) (waited []string, lists int, behind []string) {
	for _, c := range all {
		lists += c.Lists
		switch {
		case c.Err != nil:
			behind = append(behind, fmt.Sprintf("%s: %v", c.Kind.Kind, c.Err))
		case c.Waited:
			waited = append(waited, fmt.Sprintf("%s %s", c.Kind.GroupKind(), c.Version))
		}
	}
	return waited, lists, behind
}
