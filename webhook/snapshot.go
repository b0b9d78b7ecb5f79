// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/histogram"
)

// Purpose of a webhook.
type Purpose string

// The purposes.
const (
	PurposeValidate Purpose = "validate"
	PurposeMutate   Purpose = "mutate"
	PurposeConvert  Purpose = "convert"
)

// Snapshot is the state of a Server at one moment.
type Snapshot struct {
	// Addr is the listening address. Empty: not yet.
	Addr string
	// NotBefore and NotAfter of the serving certificate. Zero: there is none.
	NotBefore, NotAfter time.Time
	// Names of DNS and addresses for which it is, and its Issuer.
	Names  []string
	Issuer string
	// Problem with it, or with the next one. Nil: none.
	Problem error
	// CABundleErrors holds an error for each target of Options.Managed whose CA
	// bundle could not be set.
	CABundleErrors []error
	// DrainDelay in effect. 0: none.
	DrainDelay time.Duration
	// Stopping is when a stop began. Zero: none has.
	Stopping time.Time
	// Webhooks in the order of registration.
	Webhooks []WebhookSnapshot
}

// WebhookSnapshot holds the counters of one path.
type WebhookSnapshot struct {
	Path    string
	Purpose Purpose
	// Kind that is accepted. Empty: any.
	Kind schema.GroupVersionKind
	// InFlight counts the requests being answered.
	InFlight int64
	// Passed counts requests admitted or converted, Denied those denied, and Failed
	// those without a verdict, including Panics.
	Passed, Denied, Failed, Panics int64
	// Codes counts finished requests by HTTP status: 200 for each verdict and each
	// conversion, whatever it says.
	Codes map[int]int64
	// Latency of finished requests: Count, Sum and Buckets.
	Latency histogram.Histogram
}

// Snapshot returns the current state of the server.
func (s *Server) Snapshot() Snapshot {
	out := Snapshot{Addr: s.Addr(), DrainDelay: s.opts.DrainDelay}
	p, problem := s.held.Get()
	out.Problem = problem
	if p != nil {
		out.NotBefore, out.NotAfter = p.Leaf.NotBefore, p.Leaf.NotAfter
		out.Names, out.Issuer = namesOf(p.Leaf), p.Leaf.Issuer.String()
	}
	if s.managed != nil {
		out.CABundleErrors = s.managed.problems()
	}
	s.mu.Lock()
	out.Stopping = s.mu.stopping
	hooks := slices.Clone(s.mu.hooks)
	s.mu.Unlock()
	for _, h := range hooks {
		out.Webhooks = append(out.Webhooks, WebhookSnapshot{
			Path:     h.path,
			Purpose:  h.purpose,
			Kind:     h.kind,
			InFlight: h.inFlight.Load(),
			Passed:   h.ended[passed].Load(),
			Denied:   h.ended[denied].Load(),
			Failed:   h.ended[failed].Load(),
			Panics:   h.panics.Load(),
			Codes:    h.codes(),
			Latency:  h.took.Histogram(),
		})
	}
	return out
}

// latencyBounds are the relevant buckets that webhook dashboards expect.
var latencyBounds = [...]time.Duration{
	5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond,
	250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second,
}
