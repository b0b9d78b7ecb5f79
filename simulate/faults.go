// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/faults"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
)

// Faults are the faults of a Server's requests, answers and watches. Each method starts or
// ends one, from plain values alone, so that a list of calls is a plan. Heal ends all of
// them. Safe for concurrent use.
type Faults struct {
	requests  *faults.Requests
	delivery  *faults.Delivery
	resources *kinds.Registry
	// reshow calls change, which alters what the watch cache shows, and delivers that.
	reshow func(change func())
}

// Deny refuses a verb on a resource with 403, from the next request on. Open watches stay
// open, as with a real server.
func (f Faults) Deny(verb string, r schema.GroupResource) { f.requests.Deny(verb, r, true) }

// Allow ends Deny.
func (f Faults) Allow(verb string, r schema.GroupResource) { f.requests.Deny(verb, r, false) }

// AcceptTokens refuses all other bearer tokens with 401; without arguments, all tokens. An
// accepted token that the server does not know is a token of Options.User.
func (f Faults) AcceptTokens(tokens ...string) { f.requests.AcceptTokens(tokens...) }

// AcceptAll ends AcceptTokens.
func (f Faults) AcceptAll() { f.requests.AcceptAll() }

// Overload answers the next requests with code 429 or 503, and Retry-After in seconds.
// Negative times: until it is called with 0.
func (f Faults) Overload(times, code, retryAfter int) { f.requests.Overload(times, code, retryAfter) }

// RefuseRequest answers r, a request that a Tracer sees before it is carried out, with code
// 429, 503 or 500, and Retry-After in seconds, which 500 does not have. Requests by Direct are
// not refused.
func (f Faults) RefuseRequest(r Request, code, retryAfter int) {
	f.requests.Refuse(r.Number, code, retryAfter)
}

// Reject refuses the next writes of a resource with a code, as an admission webhook does.
func (f Faults) Reject(r schema.GroupResource, times, code int) { f.requests.Reject(r, times, code) }

// FailConversion fails all requests to a resource with 500, as when its conversion webhook
// is down, or ends that.
func (f Faults) FailConversion(r schema.GroupResource, fail bool) { f.requests.FailConversion(r, fail) }

// NoEndBookmark omits, from now on, the bookmark that ends a streaming list of a resource,
// or ends that.
func (f Faults) NoEndBookmark(r schema.GroupResource, missing bool) {
	f.delivery.NoEndBookmark(r, missing)
}

// ExpireContinue refuses the next continue tokens with 410.
func (f Faults) ExpireContinue(times int) { f.requests.ExpireContinue(times) }

// ForbidSchemas refuses the index of OpenAPI documents with 403, or ends that.
func (f Faults) ForbidSchemas(forbid bool) { f.requests.ForbidSchemas(forbid) }

// IgnoreShardSelectors ignores the shard selectors of later lists, watches and deletions of
// collections, as a server without the feature gate ShardedListAndWatch does, or ends that.
// Open watches keep theirs until they end; CloseWatches ends them, as the restart of a server
// with another gate does.
func (f Faults) IgnoreShardSelectors(ignore bool) { f.requests.IgnoreShardSelectors(ignore) }

// RefuseStreams refuses streaming lists, as a server without the feature gate WatchList (KEP-3157) does, or ends that.
// client-go's informers then begin with a list from the cache of the server, which may lag behind.
func (f Faults) RefuseStreams(refuse bool) { f.requests.RefuseStreams(refuse) }

// PublishSchemasAfter delays later changes of schemas in the index of OpenAPI documents.
func (f Faults) PublishSchemasAfter(d time.Duration) { f.requests.PublishSchemasAfter(d) }

// LagTo stops the watch cache at a revision: lists from the cache and watches know nothing
// later, as those of a replica that lags behind. CatchUp ends it.
func (f Faults) LagTo(revision int64) {
	f.reshow(func() { f.delivery.LagTo(revision) })
}

// CatchUp ends LagTo.
func (f Faults) CatchUp() { f.LagTo(0) }

// LagKindTo is LagTo for one resource; the caches of the others continue. CatchUpKind ends
// it.
func (f Faults) LagKindTo(r schema.GroupResource, revision int64) {
	held := f.resources.Held(r)
	f.reshow(func() { f.delivery.LagKindTo(held, revision) })
}

// CatchUpKind ends LagKindTo.
func (f Faults) CatchUpKind(r schema.GroupResource) {
	held := f.resources.Held(r)
	f.reshow(func() { f.delivery.CatchUpKind(held) })
}

// DropEvent drops the next changes of a resource from its open watches.
func (f Faults) DropEvent(r schema.GroupResource, times int) { f.delivery.Drop(r, times) }

// Duplicate sends the next changes of a resource to its open watches twice.
func (f Faults) Duplicate(r schema.GroupResource, times int) { f.delivery.Duplicate(r, times) }

// Reorder sends the next change of a resource to open watches after the one that follows it.
func (f Faults) Reorder(r schema.GroupResource) { f.delivery.Reorder(r) }

// Coalesce merges, for open watches, the next two changes of one object of a resource.
// Until the second they do not know of the first.
func (f Faults) Coalesce(r schema.GroupResource) { f.delivery.Coalesce(r) }

// LoseResponse breaks the connection instead of answering, after each of the next writes
// has been stored. Requests by Direct are always answered.
func (f Faults) LoseResponse(times int) { f.requests.LoseResponse(times) }

// LoseResponseOf is LoseResponse for the next write of one of these kinds.
func (f Faults) LoseResponseOf(kinds ...schema.GroupKind) { f.requests.LoseResponseOf(kinds...) }

// LoseResponseTo is LoseResponse for r, a write that a Tracer sees before it is carried
// out. If r stores nothing, or comes by Direct, the answer to the next stored write of its
// kind is lost.
func (f Faults) LoseResponseTo(r Request) { f.requests.LoseResponseTo(r.Number, r.Kind) }

// Spoilage is how an answer is damaged.
type Spoilage string

const (
	// Truncated: the answer and the connection break in the middle.
	Truncated = Spoilage(faults.Truncated)
	// Garbage: meaningless bytes, with the headers of a valid answer.
	Garbage = Spoilage(faults.Garbage)
	// OtherPage: 200 with a page of HTML, such as a proxy's login page.
	OtherPage = Spoilage(faults.OtherPage)
	// Huge: far more bytes than any object has. Where the encoding states a length first,
	// only the length is sent.
	Huge = Spoilage(faults.Huge)
)

// Spoil damages the answer to the next list of a resource; OtherPage also that to the next
// watch.
func (f Faults) Spoil(r schema.GroupResource, how Spoilage) {
	f.requests.DamageList(r, faults.Damage(how))
}

// SpoilEvent damages the next event of a resource on a watch.
func (f Faults) SpoilEvent(r schema.GroupResource, how Spoilage) {
	f.requests.DamageEvent(r, faults.Damage(how))
}
