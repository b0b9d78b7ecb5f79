// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package faults holds the faults that tests inject into the simulated server. Each type
// has its own lock, which is a leaf: nothing is called while it is held. The zero values
// have no faults, and Heal ends all of them.
//
//	Requests   which requests are refused, and which answers are lost or damaged
//	Delivery   which changes watches receive late, twice, out of order, merged or never
//	Objects    which stored objects cannot be decoded
package faults

import (
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/access"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
	"github.com/flyball-dev/flyball/simulate/internal/webhooks"
)

// Requests are the faults of requests and of their answers.
type Requests struct {
	mu struct {
		sync.Mutex
		requestFaults
	}
}

// requestFaults are the present faults. Maps are nil until they are needed.
type requestFaults struct {
	denied         map[permission]bool
	unconverted    map[schema.GroupResource]bool
	rejections     map[schema.GroupResource]rejection
	tokens         map[string]bool // nil: every known token is accepted
	overload       overload
	refused        map[int]overload // by number of the request
	expireContinue int
	forbidSchemas  bool
	refuseStreams  bool
	ignoreShards   bool
	publishAfter   time.Duration
	losses         losses
	lists, events  map[schema.GroupResource]Damage
}

type permission struct {
	verb string
	schema.GroupResource
}

type overload struct{ times, code, retryAfter int }

type rejection struct{ times, code int }

// set changes an entry of a map that may be nil.
func set[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// Heal ends all faults.
func (f *Requests) Heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.requestFaults = requestFaults{}
}

// Deny refuses a verb on a resource, or ends that.
func (f *Requests) Deny(verb string, r schema.GroupResource, deny bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	set(&f.mu.denied, permission{verb, r}, deny)
}

// AcceptTokens refuses all bearer tokens but these.
func (f *Requests) AcceptTokens(tokens ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.tokens = map[string]bool{}
	for _, t := range tokens {
		f.mu.tokens[t] = true
	}
}

// AcceptAll ends AcceptTokens.
func (f *Requests) AcceptAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.tokens = nil
}

// Accepts reports whether AcceptTokens lets a token in. gated is false if it was not called.
func (f *Requests) Accepts(token string) (accepted, gated bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.tokens[token], f.mu.tokens != nil
}

// Overload refuses the next requests with 429 or 503. Negative times: all of them.
func (f *Requests) Overload(times, code, retryAfter int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.overload = overload{times, code, retryAfter}
}

// Refuse refuses the request with a number.
func (f *Requests) Refuse(number, code, retryAfter int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	set(&f.mu.refused, number, overload{1, code, retryAfter})
}

// Overloaded returns how the request with a number is refused before it is authenticated; nil
// if it is not.
func (f *Requests) Overloaded(number int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if own, ok := f.mu.refused[number]; ok {
		return refusal.Overload(own.code, own.retryAfter)
	}
	o := &f.mu.overload
	if o.times == 0 {
		return nil
	}
	o.times--
	return refusal.Overload(o.code, o.retryAfter)
}

// Reject refuses the next writes of a resource with a code.
func (f *Requests) Reject(r schema.GroupResource, times, code int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	set(&f.mu.rejections, r, rejection{times, code})
}

// FailConversion fails all requests to a resource, or ends that.
func (f *Requests) FailConversion(r schema.GroupResource, fail bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	set(&f.mu.unconverted, r, fail)
}

// Refused returns how a request to a resource is refused; nil if it is not.
func (f *Requests) Refused(a access.Attributes, kind schema.GroupVersionKind, writes bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := schema.GroupResource{Group: a.Group, Resource: a.Resource}
	if f.mu.denied[permission{a.Verb, r}] {
		return access.Forbidden(a, "")
	}
	if f.mu.unconverted[r] {
		return apierrors.NewInternalError(fmt.Errorf("conversion webhook for %s failed: Post \"https://webhook.default.svc:443/convert\": connect: connection refused", kind))
	}
	if rejected := f.mu.rejections[r]; rejected.times > 0 && writes {
		rejected.times--
		f.mu.rejections[r] = rejected
		return webhooks.Denied("rejects.flyball.dev", &metav1.Status{Code: int32(rejected.code), Reason: reasonOf(rejected.code), Message: "not now"})
	}
	return nil
}

// reasonOf returns the reason that goes with a code.
func reasonOf(code int) metav1.StatusReason {
	return apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", "", 0, false).ErrStatus.Reason
}

// ExpireContinue refuses the next continue tokens.
func (f *Requests) ExpireContinue(times int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.expireContinue = times
}

// ContinueExpired reports whether the continue token of a request is refused.
func (f *Requests) ContinueExpired() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.expireContinue <= 0 {
		return false
	}
	f.mu.expireContinue--
	return true
}

// ForbidSchemas refuses requests for schemas, or ends that.
func (f *Requests) ForbidSchemas(forbid bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.forbidSchemas = forbid
}

// SchemasForbidden reports whether requests for schemas are refused.
func (f *Requests) SchemasForbidden() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.forbidSchemas
}

// IgnoreShardSelectors ignores the shard selectors of later requests, or ends that.
func (f *Requests) IgnoreShardSelectors(ignore bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.ignoreShards = ignore
}

// ShardSelectorsIgnored reports whether shard selectors are ignored.
func (f *Requests) ShardSelectorsIgnored() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.ignoreShards
}

// RefuseStreams refuses streaming lists, or ends that.
func (f *Requests) RefuseStreams(refuse bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.refuseStreams = refuse
}

// StreamsRefused reports whether streaming lists are refused.
func (f *Requests) StreamsRefused() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.refuseStreams
}

// PublishSchemasAfter delays the publication of changed schemas.
func (f *Requests) PublishSchemasAfter(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.publishAfter = d
}

// PublishAfter returns how long after a change of a schema it is published.
func (f *Requests) PublishAfter() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.publishAfter
}
