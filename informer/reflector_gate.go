// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// hosted is a ListerWatcher of a server whose gate its requests pass. The
// Reflector waits there for its turn before it asks, so that the time of
// waiting is nobody's time to answer. Other ListerWatchers have no gate.
type hosted interface {
	host() (server *apiServer, kind schema.GroupVersionKind)
}

// at has r pass the gate of the server that lw is of, if it is of one.
func (r *Reflector[T]) at(lw ListerWatcher[T]) {
	if h, ok := lw.(hosted); ok {
		r.server, r.kind = h.host()
	}
}

// admitted waits at the gate for the next step of p, and returns ctx with the
// pass. The pass is nil where there is no gate, and when ctx has ended.
func (r *Reflector[T]) admitted(ctx context.Context, p progress) (context.Context, *pass) {
	if r.server == nil {
		return ctx, nil
	}
	var admission *pass
	err := r.status.waiting(p.phase, func(show func(hold)) (err error) {
		admission, err = r.server.gate.enter(ctx, r.ask(p), show)
		return err
	})
	if err != nil {
		return ctx, nil
	}
	return admission.with(ctx), admission
}

// ask is what the next step of p wants of the gate.
func (r *Reflector[T]) ask(p progress) ask {
	a := ask{kind: r.kind, list: p.phase != phaseWatch, contact: &r.status.contact}
	switch {
	case p.refusals > 0:
		a.rank = rankOther
	case p.phase == phaseWatch:
		a.rank = rankWatch
	case p.last != "":
		a.rank, a.size = rankRelist, r.size
	default:
		a.rank = rankFirst
	}
	return a
}

// nextPage waits at the gate for one more page of the list that pass is for.
func (r *Reflector[T]) nextPage(ctx context.Context, pass *pass) error {
	return r.status.waiting(phaseList, func(show func(hold)) error { return pass.again(ctx, show) })
}

// heldUntil is until when the server wants no requests about the kind; zero: it
// has not said so.
func (r *Reflector[T]) heldUntil(now time.Time) (until time.Time) {
	if r.server != nil {
		if until = r.server.gate.closedFor(r.kind); !until.After(now) {
			return time.Time{}
		}
	}
	return until
}

// fellBack: paged lists take over until next.noStreamBefore, for all scopes of
// the kind.
func (r *Reflector[T]) fellBack(next progress, o outcome, cause string) {
	first := true
	if r.server != nil {
		first = r.server.streams.remember(r.kind.GroupKind(), o.now, next.noStreamBefore)
	}
	r.status.fellBack(next.noStreamBefore, o, cause, first)
}

// heedMemory is p with what other scopes of the kind have learned of streaming
// lists.
func (r *Reflector[T]) heedMemory(p progress, now time.Time) progress {
	if r.server == nil || p.phase == phaseWatch {
		return p
	}
	if until := r.server.streams.until(r.kind.GroupKind()); until.After(p.noStreamBefore) {
		p.noStreamBefore = until
		r.status.pagedUntil(until)
	}
	if p.phase == phaseStream && now.Before(p.noStreamBefore) {
		p.phase, p.tries = phaseList, 0
	}
	return p
}

// waiting shows what holds the next step up, for as long as pass waits at the gate.
func (s *reflectorStatus) waiting(phase phase, pass func(show func(hold)) error) error {
	before, waited := s.reason(), false
	err := pass(func(h hold) {
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
func (s *reflectorStatus) held(h hold, phase phase) {
	s.mu.Lock()
	state := s.mu.state.State
	s.mu.state.NextTry = h.until
	s.mu.Unlock()
	switch {
	case state == StateStreaming && phase == phaseList:
		state = StateListing
	case state == StateLive && h.until.IsZero() && phase == phaseStream:
		state = StateStreaming
	case state == StateLive && h.until.IsZero():
		state = StateListing
	case state == StateLive:
		state = StateStale
	}
	s.set(state, h.why)
}

// resumed: the gate is passed. The reason is as before, until the server has
// answered.
func (s *reflectorStatus) resumed(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.state.NextTry = time.Time{}
	if reason == "" && s.mu.state.State == StateStale {
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
func (s *reflectorStatus) fellBack(until time.Time, o outcome, cause string, first bool) {
	s.mu.Lock()
	s.mu.state.StreamFallbacks++
	s.mu.state.PagedUntil = until
	s.mu.Unlock()
	log := s.log
	switch o.result {
	case resultSilent, resultEnded, resultCut, resultEndless: // begun as asked, and not ended
	default:
		log = log.V(1)
	}
	if first {
		log.Info("Lists of the kind do not come as streams; they are read by pages", "until", until, "cause", cause)
	}
}
