// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"time"

	"github.com/flyball-dev/flyball/informer/internal/pacing"
	"github.com/flyball-dev/flyball/informer/internal/steps"
	"github.com/flyball-dev/flyball/kube"
)

// recallWithin is how long a new watch waits for the answer.
const recallWithin = 2 * time.Second

// recall asks the server, once after a broken connection, whether its history still has the newest
// event of the scope. A restore that new revisions have overtaken undoes the last events, so the
// newest is among them if any is. If that is a deletion and the object is not there, it asks for
// the newest object that is still known, too. The read is of the exact version that the scope has
// reached: no later change answers it, and a server that lags refuses it. Another answer leads to
// a list, which proves the rest (A28). If the gate has no room in time, the next watch asks again.
func (r *Reflector) recall(ctx context.Context, p steps.Progress, o steps.Outcome) {
	switch {
	case o.Result == steps.ResultUnreachable, o.Result == steps.ResultCut, o.Result == steps.ResultSilent:
		r.broken = true
		return
	case o.Result == steps.ResultCompleted:
		r.broken = false // the list has been compared
		return
	case o.Result != steps.ResultOpened || !r.broken:
		return
	}
	r.broken = false
	n := r.newest
	if r.Recall == nil || n.version == 0 || kube.ParseVersion(p.Last) < n.version {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, recallWithin)
	defer cancel()
	was, err := r.recalled(ctx, n.key, p.Last)
	if err == nil && n.ended && was == 0 {
		// A history that never had the object says the same as one that has its deletion.
		if n = r.newestPresent(kube.ParseVersion(p.Last)); n.version == 0 {
			return
		}
		was, err = r.recalled(ctx, n.key, p.Last)
	}
	if err == nil && n.undoneAt(was) {
		r.Wants.Add(steps.Demand{Reason: steps.RelistUndone, Elsewhere: true})
	}
}

// undoneAt reports whether a history lacks the event, if it has the object at a version, or none (0).
func (e shown) undoneAt(found kube.Version) bool {
	if e.ended {
		return found != 0 && found < e.version
	}
	return found != e.version
}

// newestPresent returns the object with the newest version up to last, not that of an own write
// beyond it; its version is 0 if there is none.
func (r *Reflector) newestPresent(last kube.Version) (newest shown) {
	for d := range r.sink.Present(r.id) {
		if d.Version > newest.version && d.Version <= last {
			newest = shown{key: d.Key, version: d.Version}
		}
	}
	return newest
}

// recalled takes a place among the lists: after an outage all scopes recall at the same time.
func (r *Reflector) recalled(ctx context.Context, key kube.Key, at string) (kube.Version, error) {
	if r.server != nil {
		ask := pacing.Ask{Rank: pacing.RankRelist, Kind: r.kind, List: true, Size: 1}
		pass, err := r.server.Pacer.Wait(ctx, ask, func(pacing.Hold) {})
		if err != nil {
			r.broken = true
			return 0, err
		}
		defer pass.Done()
		ctx = pass.With(ctx)
	}
	return r.Recall(ctx, key, at)
}
