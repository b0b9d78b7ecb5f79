// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"net/http"

	"github.com/flyball-dev/flyball/internal/effects"
	"github.com/flyball-dev/flyball/internal/ownevents"
	"github.com/flyball-dev/flyball/kube"
)

// watched reports whether the Observer receives the effect of the call.
func (c *Client) watched(at *call) bool {
	return c.opts.Observer != nil && !at.dryRun
}

// observe passes the effect to the Observer, which then owns the object. An answer
// without a name, such as an access review, is not an object of any cache.
func (c *Client) observe(at *call, w kube.Written) {
	if c.watched(at) && (w.Key.Name != "" || at.verb == verbDeleteAllOf) {
		at.own(w)
		c.opts.Observer.Observe(w)
		if at.task != nil {
			at.task.Effected(w, kube.ParseVersion(at.version))
		}
	}
}

// observeLost tells the Observer of a write that failed, but may have taken effect.
func observeLost(c *Client, at *call) {
	if at.lost && !at.reads() {
		c.observe(at, at.effect().Touched())
	}
}

// own records the effect of a write as one of the reconcile that makes it, before the
// informers learn of it: its news need not wake the reconcile's key. Only what leaves no room
// for a foreign write is recorded: an object that the server has created for this request,
// and one that it has changed or removed in the version that the request named.
func (at *call) own(w kube.Written) {
	step := ownevents.Write{Kind: w.Kind.GroupKind(), Key: w.Key, UID: w.UID, To: w.Version, Gone: w.Effect == kube.Removed}
	switch {
	case !step.Gone && w.Effect != kube.Stored:
		return
	case at.version != "":
		if step.From = kube.ParseVersion(at.version); step.From == 0 {
			return
		}
	case at.code != http.StatusCreated || at.verb&(verbCreate|verbApply) == 0 || at.sub != "":
		return
	}
	if at.run != nil {
		at.run.Wrote(step)
	}
}

// effect returns what determines the meaning of the call's answer for a cache.
func (at *call) effect() effects.Write {
	return effects.Write{
		Kind:        at.kind,
		Key:         at.key,
		UID:         cmp.Or(at.preconditions.UID, at.uid),
		Propagation: at.propagation,
		GracePeriod: at.gracePeriod,
	}
}
