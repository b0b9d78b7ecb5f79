// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/internal/applied"
	"github.com/flyball-dev/flyball/internal/memo"
	"github.com/flyball-dev/flyball/kube"
)

// IfChanged omits an apply whose outcome is known, and returns nil: C16 says when. obj is
// then set to a copy of the object in the cache. Whatever is not known is sent: the first
// apply of each object, one to an object of which no informer holds the same Go type and
// version of the kind, with or without a transform, one that is cached without all of its
// fields, and one with Preconditions or a resourceVersion. Dry runs are always sent. Fits apply.
//
// The cache lags behind the server. Watch the objects, so that what others change leads to
// the next apply.
type IfChanged struct{}

func (IfChanged) fits() verb               { return verbApply }
func (IfChanged) set(c *callOptions) error { c.ifChanged = true; return nil }

// intent is an apply, as far as it decides whether its outcome is known.
type intent struct {
	*call
	memory *applied.Memory
	handed *memo.Memo[applied.Key, bool]
	cache  cacher // nil: none
	asked  Observer
	key    applied.Key
	wanted applied.Digest
	part   applied.Part
	like   kube.Object // of the Go type that is looked for in the cache
	may    bool        // be omitted and remembered
}

// intentOf returns what an apply of body wants. like is the caller's object or, if the caller
// has none, an empty one of the kind.
func intentOf(c *Client, at *call, body []byte, claimsStatus bool, like kube.Object) intent {
	i := intent{
		call:   at,
		memory: &c.applies,
		handed: &c.handed,
		key:    applied.Key{Kind: at.kind.GroupKind(), Object: at.key, Owner: at.fieldOwner, Subresource: at.sub},
		wanted: applied.WantedOf(body, at.force, string(at.fieldValidation)),
		like:   like,
	}
	i.asked = c.opts.Observer
	i.cache, _ = i.asked.(cacher)
	switch {
	case at.sub == statusName:
		i.part = applied.Status
	case !claimsStatus:
		i.part = applied.Main
	}
	i.may = i.cache != nil && at.ifChanged && !at.dryRun && at.version == "" && at.preconditions == (Preconditions{}) && (at.sub == "" || at.sub == statusName)
	return i
}

// known returns the object in the cache if the outcome of the apply is known; else nil.
func (i intent) known() kube.Object {
	if !i.may || len(i.handOver) > 0 && !i.handed.Has(i.key, true) || !i.memory.Wants(i.key, i.wanted, time.Now()) {
		return nil
	}
	obj, state := i.cached()
	if obj == nil || !i.memory.Knows(i.key, i.wanted, state, time.Now()) {
		return nil
	}
	return obj
}

// begin is called before the apply is sent, and end after it: answered reports whether it was
// answered with the object, which is then in like.
func (i intent) begin() (end func(answered bool)) {
	if i.dryRun {
		return func(bool) {}
	}
	done := i.memory.Begin(i.key, time.Now())
	return func(answered bool) {
		var known *applied.Known
		if answered && i.may {
			known = i.answered()
		}
		done(known)
	}
}

// answered returns what to remember of the answer: nil if the cache does not have the object
// as it was answered, and so would not show what changes.
func (i intent) answered() *applied.Known {
	is, ok := applied.StateOf(i.like, i.part)
	if held, state := i.cached(); !ok || held == nil || state != is {
		return nil
	}
	return &applied.Known{Wanted: i.wanted, Answered: is, At: time.Now()}
}

// cached returns the object in the cache, if that has all of its fields, and its state.
func (i intent) cached() (kube.Object, applied.State) {
	obj := i.cache.Cached(i.kind, i.call.key, i.like)
	if isNil(obj) || projectionOf(i.asked, i.call, obj) != nil {
		return nil, applied.State{}
	}
	state, ok := applied.StateOf(obj, i.part)
	if !ok {
		return nil, state
	}
	return obj, state
}

// send sends the apply. Within a reconcile of a controller with OmitOwnEvents it first names the
// version that the cache has, so that the news of it can be told from news of others; if the
// server has a newer one, it is sent again without.
func (i intent) send(ctx context.Context, c *Client, body []byte) (response, error) {
	patch := func(body []byte) (response, error) {
		return c.write(ctx, i.call, http.MethodPatch, string(types.ApplyPatchType), c.accept(i.like), body)
	}
	if guarded, version := i.guarded(body); guarded != nil {
		i.version = version
		a, err := patch(guarded)
		if !outdated(err) {
			return a, err
		}
		i.version = ""
	}
	return patch(body)
}

// guarded returns body with the UID and the version that the cache has; nil: it is to be sent
// as it is.
func (i intent) guarded(body []byte) (guarded []byte, version string) {
	if !i.may || i.run == nil {
		return nil, ""
	}
	held := i.cache.Cached(i.kind, i.call.key, i.like)
	if isNil(held) || held.GetUID() == "" || kube.ParseVersion(held.GetResourceVersion()) == 0 {
		return nil, ""
	}
	p := Preconditions{UID: held.GetUID(), ResourceVersion: held.GetResourceVersion()}
	guarded, err := p.patch(types.ApplyPatchType, body)
	if err != nil {
		return nil, ""
	}
	return guarded, p.ResourceVersion
}

// outdated reports whether the server refused an apply because it has another version of the
// object, or none.
func outdated(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeFieldManagerConflict)
}
