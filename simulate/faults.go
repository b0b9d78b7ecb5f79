// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/access"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
	"github.com/flyball-dev/flyball/simulate/internal/webhooks"
)

// faults are what is wrong with the server. Server.mu guards them. Each verb of
// the Server sets one, from plain values alone, so that a list of them is a
// plan.
type faults struct {
	lag                      int64                          // 0: none
	behind                   map[schema.GroupResource]int64 // of resources that lag alone
	late                     []revisions.Change             // of these, in the order of revisions
	noEndBookmark, unwilling map[schema.GroupResource]bool
	denied                   map[permission]bool
	tokens                   map[string]bool // nil: whoever comes is let in
	overload                 overload
	expireContinue           int
	drop, duplicate          map[schema.GroupResource]int
	reorder                  map[schema.GroupResource]bool
	held                     map[schema.GroupResource]revisions.Change // to be told after the next
	spoil, spoilFrame        map[schema.GroupResource]Spoilage
	coalesce                 map[schema.GroupResource]bool
	first                    map[schema.GroupResource]revisions.Change // of the two that become one
	rejections               map[schema.GroupResource]rejection
	losses                   losses
	poisoned                 map[objectID]*object.Object // as they were before
	noSchemas                bool
	publishAfter             time.Duration
}

type permission struct {
	verb string
	schema.GroupResource
}

type objectID struct {
	schema.GroupResource
	types.NamespacedName
}

type overload struct{ times, code, retryAfter int }

type rejection struct{ times, code int }

func newFaults() faults {
	return faults{
		behind:        map[schema.GroupResource]int64{},
		noEndBookmark: map[schema.GroupResource]bool{}, unwilling: map[schema.GroupResource]bool{},
		denied: map[permission]bool{},
		drop:   map[schema.GroupResource]int{}, duplicate: map[schema.GroupResource]int{},
		reorder: map[schema.GroupResource]bool{}, held: map[schema.GroupResource]revisions.Change{},
		coalesce: map[schema.GroupResource]bool{}, first: map[schema.GroupResource]revisions.Change{},
		rejections: map[schema.GroupResource]rejection{},
		poisoned:   map[objectID]*object.Object{},
		spoil:      map[schema.GroupResource]Spoilage{}, spoilFrame: map[schema.GroupResource]Spoilage{},
	}
}

// distort is what open watches are told instead of c.
func (f *faults) distort(c revisions.Change) []revisions.Change {
	r := c.Resource
	if f.drop[r] > 0 {
		f.drop[r]--
		return nil
	}
	if first, ok := f.first[r]; ok && first.Key == c.Key {
		delete(f.first, r)
		return and(first, c)
	}
	if f.coalesce[r] {
		f.coalesce[r] = false
		f.first[r] = c
		return nil
	}
	if f.duplicate[r] > 0 {
		f.duplicate[r]--
		return []revisions.Change{c, c}
	}
	if late, ok := f.held[r]; ok {
		delete(f.held, r)
		return []revisions.Change{c, late}
	}
	if f.reorder[r] {
		f.reorder[r] = false
		f.held[r] = c
		return nil
	}
	return []revisions.Change{c}
}

// and is c with the change that follows it, of the same object, as one; nothing, if
// there is no object before and after both.
func and(c, next revisions.Change) []revisions.Change {
	if next.Before = c.Before; next.Before == nil && next.After == nil {
		return nil
	}
	return []revisions.Change{next}
}

// overloaded is how a request is turned away before anybody asks whose it is;
// nil: it is not.
func (s *Server) overloaded() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &s.mu.faults.overload
	if o.times == 0 {
		return nil
	}
	o.times--
	return refusal.Overload(o.code, o.retryAfter)
}

// denied is how a request is turned away before it reaches its resource; nil:
// it is not.
func (s *Server) denied(c *call) error {
	if c.kind == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f, r := &s.mu.faults, c.kind.GroupResource()
	if f.denied[permission{c.verb, r}] {
		return access.Forbidden(access.Attributes{User: c.user, Verb: c.verb, Group: r.Group, Resource: r.Resource, Subresource: c.subresource, Namespace: c.namespace, Name: c.name}, "")
	}
	if f.unwilling[r] {
		return apierrors.NewInternalError(fmt.Errorf("conversion webhook for %s failed: Post \"https://webhook.default.svc:443/convert\": connect: connection refused", c.kind.GroupVersionKind))
	}
	if rejected := f.rejections[r]; rejected.times > 0 && c.request(0).Writes() {
		rejected.times--
		f.rejections[r] = rejected
		return webhooks.Denied("rejects.flyball.dev", &metav1.Status{Code: int32(rejected.code), Reason: reasonOf(rejected.code), Message: "not now"})
	}
	return nil
}

// reasonOf is what a code means to clients.
func reasonOf(code int) metav1.StatusReason {
	return apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", "", 0, false).ErrStatus.Reason
}

// fault runs f with the lock of the faults, and shows open watches what they may see now.
func (s *Server) fault(f func(*faults)) {
	s.mu.Lock()
	f(&s.mu.faults)
	s.mu.Unlock()
	s.store.Deliver()
}

// Deny refuses a verb on a kind with 403, from the next request on. An open
// watch goes on, as with a real server.
func (s *Server) Deny(verb string, r schema.GroupResource) {
	s.fault(func(f *faults) { f.denied[permission{verb, r}] = true })
}

// Allow ends a Deny.
func (s *Server) Allow(verb string, r schema.GroupResource) {
	s.fault(func(f *faults) { delete(f.denied, permission{verb, r}) })
}

// AcceptTokens refuses with 401 whoever comes with another bearer token. None
// given: nobody is let in. A token that is accepted and not known otherwise is
// that of Options.User.
func (s *Server) AcceptTokens(tokens ...string) {
	accepted := map[string]bool{}
	for _, t := range tokens {
		accepted[t] = true
	}
	s.fault(func(f *faults) { f.tokens = accepted })
}

// Overload answers the next requests with code 429 or 503 and Retry-After in
// seconds. Negative times: until it is called with 0.
func (s *Server) Overload(times, code, retryAfter int) {
	s.fault(func(f *faults) { f.overload = overload{times, code, retryAfter} })
}

// Reject refuses the next so many writes of a kind with a code, as an admission
// webhook does that answers so.
func (s *Server) Reject(r schema.GroupResource, times, code int) {
	s.fault(func(f *faults) { f.rejections[r] = rejection{times, code} })
}

// FailConversion has all requests to a kind fail with 500, as when its
// conversion webhook is down, or ends that.
func (s *Server) FailConversion(r schema.GroupResource, fail bool) {
	s.fault(func(f *faults) { f.unwilling[r] = fail })
}

// NoEndBookmark leaves out, from now on, the bookmark that ends a streaming
// list of the kind, or ends that.
func (s *Server) NoEndBookmark(r schema.GroupResource, missing bool) {
	s.fault(func(f *faults) { f.noEndBookmark[r] = missing })
}

// ExpireContinue refuses the next so many continue tokens with 410.
func (s *Server) ExpireContinue(times int) {
	s.fault(func(f *faults) { f.expireContinue = times })
}

// LagTo has lists from the cache and watches know nothing after a revision,
// as those of a replica that lags behind. CatchUp ends it.
func (s *Server) LagTo(revision int64) { s.fault(func(f *faults) { f.lag = revision }) }

// CatchUp ends LagTo.
func (s *Server) CatchUp() { s.LagTo(0) }

// LagKindTo is LagTo of one kind: the caches of the others go on. CatchUpKind ends it.
func (s *Server) LagKindTo(r schema.GroupResource, revision int64) {
	s.fault(func(f *faults) { f.behind[s.kinds.Held(r)] = revision })
}

// CatchUpKind ends LagKindTo.
func (s *Server) CatchUpKind(r schema.GroupResource) {
	s.fault(func(f *faults) { delete(f.behind, s.kinds.Held(r)) })
}

// DropEvent keeps the next so many changes of a kind from its open watches.
func (s *Server) DropEvent(r schema.GroupResource, times int) {
	s.fault(func(f *faults) { f.drop[r] = times })
}

// Duplicate tells open watches the next so many changes of a kind twice.
func (s *Server) Duplicate(r schema.GroupResource, times int) {
	s.fault(func(f *faults) { f.duplicate[r] = times })
}

// Reorder tells open watches the next change of a kind after the one that
// follows it.
func (s *Server) Reorder(r schema.GroupResource) {
	s.fault(func(f *faults) { f.reorder[r] = true })
}

// Coalesce tells open watches of the next two changes of one object of a kind as one.
// In between they know nothing of the first.
func (s *Server) Coalesce(r schema.GroupResource) {
	s.fault(func(f *faults) { f.coalesce[r] = true })
}

// ForbidSchemas refuses the index of OpenAPI documents with 403, or ends that.
func (s *Server) ForbidSchemas(forbid bool) {
	s.fault(func(f *faults) { f.noSchemas = forbid })
}

// PublishSchemasAfter has the index of OpenAPI documents show later changes of
// a schema so long after they are made.
func (s *Server) PublishSchemasAfter(d time.Duration) {
	s.fault(func(f *faults) { f.publishAfter = d })
}

// Mute has the present watches of a kind say nothing more. They stay open.
func (s *Server) Mute(r schema.GroupResource) {
	tx := s.store.Begin()
	defer tx.End()
	tx.MuteWatches(r)
}

// CloseWatches ends the present watches of a kind, cleanly.
func (s *Server) CloseWatches(r schema.GroupResource) {
	tx := s.store.Begin()
	defer tx.End()
	tx.EndWatches(r)
}

// Compact forgets the history of the store: older versions can no longer be
// listed or watched from.
func (s *Server) Compact() { s.store.Compact() }

// RestartCache ends all watches and forgets the history that watches are
// served from, as a restart of the API server does. The store keeps its own.
func (s *Server) RestartCache() { s.store.DropCache() }

// Rewind undoes the last n revisions that are not compacted and ends all
// watches: a restore of the store from a backup.
func (s *Server) Rewind(n int) {
	tx := s.store.Begin()
	defer tx.End()
	tx.Rewind(n)
	s.definitions.Restore(tx)
}

// RecreateBehindWatch deletes an object and creates it again under its name
// with another UID, and keeps the deletion from open watches.
func (s *Server) RecreateBehindWatch(r schema.GroupResource, key types.NamespacedName) error {
	tx := s.store.Begin()
	defer tx.End()
	kind := s.kinds.Stored(r)
	r = s.kinds.Held(r)
	old := tx.Get(r, key)
	if kind == nil || old == nil {
		return apierrors.NewNotFound(r, key.String())
	}
	s.mu.Lock()
	s.mu.faults.drop[r]++
	s.mu.Unlock()
	tx.Remove(r, key)
	_, err := s.direct(tx).Create(kind, old.Copy())
	return err
}

// Poison changes an object so that neither its JSON nor its protobuf can be
// decoded into the kind's type. Its metadata stays readable. The next Put
// heals it.
func (s *Server) Poison(r schema.GroupResource, key types.NamespacedName) error {
	tx := s.store.Begin()
	defer tx.End()
	r = s.kinds.Held(r)
	old := tx.Get(r, key)
	if old == nil {
		return apierrors.NewNotFound(r, key.String())
	}
	if !old.Poison { // else what it was before is known
		s.mu.Lock()
		s.mu.faults.poisoned[objectID{r, key}] = old
		s.mu.Unlock()
	}
	obj := old.Copy()
	obj.Poison = true
	for name := range obj.Fields {
		if name != "metadata" && name != "kind" && name != "apiVersion" {
			obj.Fields[name] = int64(5) // where a message or a map belongs
		}
	}
	tx.Put(r, obj)
	return nil
}
