// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/internal/pacing"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/informer/internal/steps"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
)

// Hosted is a ListerWatcher whose requests pass the gate of a server. The
// Reflector waits there before it asks, so the wait does not count against the
// server's time to answer. Other ListerWatchers have no gate.
type Hosted interface {
	Host() (server *restclient.Server, kind schema.GroupVersionKind)
}

// At makes r pass the gate of lw's server, if it has one.
func (r *Reflector) At(lw listwatch.ListerWatcher[kube.Object]) {
	if h, ok := lw.(Hosted); ok {
		r.server, r.kind = h.Host()
		r.room = r.server.Memory.Claim()
	}
}

// admitted waits at the gate for the next step of p and returns ctx with the
// pass. The pass is nil without a gate, and when ctx has ended.
func (r *Reflector) admitted(ctx context.Context, p steps.Progress) (context.Context, *pacing.Pass) {
	if r.server == nil {
		return ctx, nil
	}
	var admission *pacing.Pass
	err := r.Status.waiting(p.Phase, func(show func(pacing.Hold)) (err error) {
		admission, err = r.server.Pacer.Wait(ctx, r.ask(p), show)
		return err
	})
	if err != nil {
		return ctx, nil
	}
	return admission.With(ctx), admission
}

// ask returns what the next step of p asks of the gate.
func (r *Reflector) ask(p steps.Progress) pacing.Ask {
	a := pacing.Ask{Kind: r.kind, List: p.Phase != steps.PhaseWatch, Contact: &r.Status.contact}
	switch {
	case p.Refusals > 0:
		a.Rank = pacing.RankOther
	case p.Phase == steps.PhaseWatch:
		a.Rank = pacing.RankWatch
	case p.Last != "":
		a.Rank, a.Size = pacing.RankRelist, r.size
	default:
		a.Rank = pacing.RankFirst
	}
	return a
}

// nextPage waits at the gate for another page of the list of pass.
func (r *Reflector) nextPage(ctx context.Context, pass *pacing.Pass) error {
	return r.Status.waiting(steps.PhaseList, func(show func(pacing.Hold)) error { return pass.Again(ctx, show) })
}

// heldUntil returns until when the server wants no requests for the kind, or
// zero.
func (r *Reflector) heldUntil(now time.Time) (until time.Time) {
	if r.server != nil {
		if until = r.server.Pacer.HeldUntil(r.kind); !until.After(now) {
			return time.Time{}
		}
	}
	return until
}

// fellBack makes paged lists take over until next.NoStreamBefore, for all
// scopes of the kind.
func (r *Reflector) fellBack(next steps.Progress, o steps.Outcome, cause string) {
	first := true
	if r.server != nil {
		first = r.server.Streams.Remember(r.kind.GroupKind(), o.Now, next.NoStreamBefore)
	}
	r.Status.fellBack(next.NoStreamBefore, o, cause, first)
}

// withSharedMemory returns p with what other scopes of the kind learned about
// streaming lists.
func (r *Reflector) withSharedMemory(p steps.Progress, now time.Time) steps.Progress {
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

// waiting shows what holds up the next step while pass waits at the gate.
func (s *reflectorStatus) waiting(phase steps.Phase, pass func(show func(pacing.Hold)) error) error {
	before, waited := s.reason(), false
	err := pass(func(h pacing.Hold) {
		waited = true
		s.held(h, phase)
	})
	if waited {
		s.resumed(before)
	}
	return err
}

func (s *reflectorStatus) reason() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.state.Reason
}

// held records that the next step waits at the gate.
func (s *reflectorStatus) held(h pacing.Hold, phase steps.Phase) {
	s.mu.Lock()
	current := s.mu.state.State
	s.mu.state.NextTry = h.Until
	s.mu.Unlock()
	switch {
	case current == state.Streaming && phase == steps.PhaseList:
		current = state.Listing
	case current == state.Live && h.Until.IsZero() && phase == steps.PhaseStream:
		current = state.Streaming
	case current == state.Live && h.Until.IsZero():
		current = state.Listing
	case current == state.Live:
		current = state.Stale
	}
	s.set(current, h.Why)
}

// resumed records that the gate was passed. The previous reason stays until the
// server answers.
func (s *reflectorStatus) resumed(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.state.NextTry = time.Time{}
	if reason == "" && s.mu.state.State == state.Stale {
		reason = "the server has asked to wait; it is asked again"
	}
	s.mu.state.Reason = reason
}

// pagedUntil records until when lists are paged.
func (s *reflectorStatus) pagedUntil(until time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.state.PagedUntil = until
}

// fellBack records that, after o, lists are paged until that time. first: no
// other scope of the kind has logged it.
func (s *reflectorStatus) fellBack(until time.Time, o steps.Outcome, cause string, first bool) {
	s.mu.Lock()
	s.mu.state.StreamFallbacks++
	s.mu.state.PagedUntil = until
	s.mu.Unlock()
	log := s.log
	switch o.Result {
	case steps.ResultSilent, steps.ResultEnded, steps.ResultCut, steps.ResultEndless: // begun as asked, but not completed
	default:
		log = log.V(1)
	}
	if first {
		log.Info("The server does not stream lists of this kind; reading them in pages", "until", until, "cause", cause)
	}
}
