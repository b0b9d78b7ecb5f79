// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/gate"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/informer/internal/steps"
	"github.com/flyball-dev/flyball/informer/listwatch"
)

// Hosted is a ListerWatcher of a server whose gate its requests pass. The
// Reflector waits there for its turn before it asks, so that the time of
// waiting is nobody's time to answer. Other ListerWatchers have no gate.
type Hosted interface {
	Host() (server *restclient.Server, kind schema.GroupVersionKind)
}

// At has r pass the gate of the server that lw is of, if it is of one.
func (r *Reflector[T]) At(lw listwatch.ListerWatcher[T]) {
	if h, ok := lw.(Hosted); ok {
		r.server, r.kind = h.Host()
	}
}

// admitted waits at the gate for the next step of p, and returns ctx with the
// pass. The pass is nil where there is no gate, and when ctx has ended.
func (r *Reflector[T]) admitted(ctx context.Context, p steps.Progress) (context.Context, *gate.Pass) {
	if r.server == nil {
		return ctx, nil
	}
	var admission *gate.Pass
	err := r.Status.waiting(p.Phase, func(show func(gate.Hold)) (err error) {
		admission, err = r.server.Gate.Enter(ctx, r.ask(p), show)
		return err
	})
	if err != nil {
		return ctx, nil
	}
	return admission.With(ctx), admission
}

// ask is what the next step of p wants of the gate.
func (r *Reflector[T]) ask(p steps.Progress) gate.Ask {
	a := gate.Ask{Kind: r.kind, List: p.Phase != steps.PhaseWatch, Contact: &r.Status.contact}
	switch {
	case p.Refusals > 0:
		a.Rank = gate.RankOther
	case p.Phase == steps.PhaseWatch:
		a.Rank = gate.RankWatch
	case p.Last != "":
		a.Rank, a.Size = gate.RankRelist, r.size
	default:
		a.Rank = gate.RankFirst
	}
	return a
}

// nextPage waits at the gate for one more page of the list that pass is for.
func (r *Reflector[T]) nextPage(ctx context.Context, pass *gate.Pass) error {
	return r.Status.waiting(steps.PhaseList, func(show func(gate.Hold)) error { return pass.Again(ctx, show) })
}

// heldUntil is until when the server wants no requests about the kind; zero: it
// has not said so.
func (r *Reflector[T]) heldUntil(now time.Time) (until time.Time) {
	if r.server != nil {
		if until = r.server.Gate.ClosedFor(r.kind); !until.After(now) {
			return time.Time{}
		}
	}
	return until
}

// fellBack: paged lists take over until next.noStreamBefore, for all scopes of
// the kind.
func (r *Reflector[T]) fellBack(next steps.Progress, o steps.Outcome, cause string) {
	first := true
	if r.server != nil {
		first = r.server.Streams.Remember(r.kind.GroupKind(), o.Now, next.NoStreamBefore)
	}
	r.Status.fellBack(next.NoStreamBefore, o, cause, first)
}

// heedMemory is p with what other scopes of the kind have learned of streaming
// lists.
func (r *Reflector[T]) heedMemory(p steps.Progress, now time.Time) steps.Progress {
	if r.server == nil || p.Phase == steps.PhaseWatch {
		return p
	}
	if until := r.server.Streams.Until(r.kind.GroupKind()); until.After(p.NoStreamBefore) {
		p.NoStreamBefore = until
		r.Status.pagedUntil(until)
	}
	if p.Phase == steps.PhaseStream && now.Before(p.NoStreamBefore) {
		p.Phase, p.Tries = steps.PhaseList, 0
	}
	return p
}

// waiting shows what holds the next step up, for as long as pass waits at the gate.
func (s *reflectorStatus) waiting(phase steps.Phase, pass func(show func(gate.Hold)) error) error {
	before, waited := s.reason(), false
	err := pass(func(h gate.Hold) {
		waited = true
		s.held(h, phase)
	})
	if waited {
		s.resumed(before)
	}
	return err
}

// reason is the present one.
func (s *reflectorStatus) reason() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.state.Reason
}

// held: the next step waits at the gate.
func (s *reflectorStatus) held(h gate.Hold, phase steps.Phase) {
	s.mu.Lock()
	state := s.mu.state.State
	s.mu.state.NextTry = h.Until
	s.mu.Unlock()
	switch {
	case state == base.StateStreaming && phase == steps.PhaseList:
		state = base.StateListing
	case state == base.StateLive && h.Until.IsZero() && phase == steps.PhaseStream:
		state = base.StateStreaming
	case state == base.StateLive && h.Until.IsZero():
		state = base.StateListing
	case state == base.StateLive:
		state = base.StateStale
	}
	s.set(state, h.Why)
}

// resumed: the gate is passed. The reason is as before, until the server has
// answered.
func (s *reflectorStatus) resumed(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.state.NextTry = time.Time{}
	if reason == "" && s.mu.state.State == base.StateStale {
		reason = "the server has asked to wait; it is asked again"
	}
	s.mu.state.Reason = reason
}

// pagedUntil: lists go by pages until then.
func (s *reflectorStatus) pagedUntil(until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.state.PagedUntil = until
}

// fellBack: after o, paged lists take over until then. first: no other scope
// of the kind has said so.
func (s *reflectorStatus) fellBack(until time.Time, o steps.Outcome, cause string, first bool) {
	s.mu.Lock()
	s.mu.state.StreamFallbacks++
	s.mu.state.PagedUntil = until
	s.mu.Unlock()
	log := s.log
	switch o.Result {
	case steps.ResultSilent, steps.ResultEnded, steps.ResultCut, steps.ResultEndless: // begun as asked, and not ended
	default:
		log = log.V(1)
	}
	if first {
		log.Info("The server does not stream lists of this kind; reading them in pages", "until", until, "cause", cause)
	}
}
