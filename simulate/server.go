// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/deque"
	"github.com/flyball-dev/flyball/simulate/internal/access"
	"github.com/flyball-dev/flyball/simulate/internal/allot"
	"github.com/flyball-dev/flyball/simulate/internal/definitions"
	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/refusal"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
	"github.com/flyball-dev/flyball/simulate/internal/webhooks"
	"github.com/flyball-dev/flyball/simulate/internal/write"
)

// Options of a Server. The zero value serves the built-in kinds.
type Options struct {
	// Kinds besides the built-in ones, as if their CRDs were installed.
	Kinds []Kind
	// Namespaces that are there from the start, besides default, kube-system,
	// kube-public and kube-node-lease. Nothing can be created in one that is not.
	// With a journal they are those of a new one: what was deleted stays deleted.
	Namespaces []string
	// User is who clients are, in refusals. Empty: "simulated".
	User string
	// Authorization has roles decide who may do what. Else everybody may do
	// everything, and who shows nothing is User.
	Authorization bool
	// Tokens are the bearer tokens that are known, besides those of
	// ServiceAccounts.
	Tokens map[string]User
	// Seed decides what the server draws, as the ends of generated names.
	Seed uint64
	// CompactEvery is how often the history of what is stored is forgotten, but for
	// that of the last such time: who asks for an older version gets 410. 0: five
	// minutes, as real servers. Negative: never, save by Compact.
	CompactEvery time.Duration
	// Tracer is told what happens. nil: nobody is.
	Tracer Tracer
	// WebhookTransport carries the questions to admission and conversion
	// webhooks; a Service is called https://name.namespace.svc:port. nil: the
	// network, trusting the caBundle that is configured, where Services have no
	// address.
	WebhookTransport http.RoundTripper
	// DialWebhook connects to a webhook by its URL, and the caBundle that is
	// configured decides about the certificate that it shows. It is not called
	// with a WebhookTransport. nil: the network.
	DialWebhook func(ctx context.Context, webhook *url.URL) (net.Conn, error)
}

// Server is a Kubernetes API server: its store, and the requests it answers.
// It is an http.Handler; Run serves it on a listener. Safe for concurrent use.
type Server struct {
	access      *access.Control
	seed        uint64
	namespaces  []string // the first ones
	admission   *webhooks.Admission
	allotter    *allot.Allotter
	writes      *write.Path
	encodings   encode.Cache
	tracer      Tracer // nil: nobody is told
	definitions *definitions.Controller
	kinds       *kinds.Registry
	changed     *sync.Cond // on mu; something happened that a request may wait for
	mu          struct {
		sync.Mutex
		log        *revisions.Log
		watches    map[*watch]struct{}
		compaction compaction
		// observers are called for each change, in the order of revisions, and
		// for each that a Rewind undoes, in reverse. They must neither block nor
		// ask the server for anything. nil: one that has left.
		observers []func(revisions.Change)
		keeping   keeping
		// told is the last revision that open watches were given. Lists from the
		// cache and watches know no more either.
		told int64
		// oldest is where the history for watches begins, if after the log's.
		oldest int64
		// version that the server says it has.
		version string
		faults  faults
		served  deque.Deque[Served]
		traced  int64 // the last revision that the tracer was told of
	}
}

// New returns a server whose store has the first namespaces and its own Service,
// default/kubernetes. It starts nothing.
func New(opts Options) *Server {
	s := &Server{seed: opts.Seed, tracer: opts.Tracer, kinds: kinds.NewRegistry()}
	s.access, s.allotter = newAccess(s, opts), allot.New(opts.Seed)
	s.namespaces = slices.Concat(firstNamespaces, opts.Namespaces)
	road := webhooks.Road{Transport: opts.WebhookTransport, Dial: opts.DialWebhook}
	s.admission = &webhooks.Admission{Road: road, Seed: opts.Seed, Objects: storedObjects{s}}
	s.writes = &write.Path{Store: storedObjects{s}, Kinds: s.kinds, Rights: s.access, Admission: s.admission, Allotter: s.allotter, Seen: s.unpoisonedLocked}
	s.definitions = &definitions.Controller{
		Kinds: s.kinds, Road: road, EndWatches: s.endLocked,
		PublishAfter: func() time.Duration { return s.mu.faults.publishAfter },
	}
	s.changed = sync.NewCond(&s.mu.Mutex)
	s.mu.log = revisions.NewLog()
	s.mu.told = s.mu.log.Revision
	s.mu.watches = map[*watch]struct{}{}
	s.mu.compaction = compaction{every: cmp.Or(opts.CompactEvery, compactUsually), last: time.Now(), revision: s.mu.log.Revision}
	s.mu.version = "v1.37.0+simulated"
	s.mu.faults = newFaults()
	if s.tracer != nil {
		s.mu.observers = append(s.mu.observers, s.traceLocked)
	}
	for _, kind := range opts.Kinds {
		s.Install(kind)
	}
	s.mu.Lock()
	s.installNamespacesLocked()
	s.installServiceLocked()
	s.mu.Unlock()
	if opts.Authorization {
		s.mu.observers = append(s.mu.observers, s.access.Changed)
		s.installRoles()
	}
	return s
}

// Run serves on ln until ctx ends, and returns when every request has ended.
// It closes ln.
func (s *Server) Run(ctx context.Context, ln net.Listener) error {
	return serveOn(ctx, ln, &http.Server{Handler: s})
}

// serveOn has server serve on ln until ctx ends, and returns when every request
// has ended.
func serveOn(ctx context.Context, ln net.Listener, server *http.Server) error {
	var requests sync.WaitGroup
	defer requests.Wait()
	handler := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		defer requests.Done()
		handler.ServeHTTP(w, r)
	})
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		_ = server.Close()
		return fmt.Errorf("serve the simulated API: %w", err)
	}
	return nil
}

// Served is a request that was answered, or is being answered.
type Served struct {
	At   time.Time
	Verb string // list, watch, get, create, update, patch, delete; else the method
	Path string
	// Query as it was sent.
	Query string
	// Status of the answer; 0 while there is none.
	Status int
}

// servedAtMost is how many requests are remembered.
const servedAtMost = 100_000

// Served returns the requests so far in their order, of more than 100,000 the last.
func (s *Server) Served() []Served {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Served, 0, s.mu.served.Len())
	for n := s.mu.served.Front(); n < s.mu.served.Back(); n++ {
		out = append(out, *s.mu.served.At(n))
	}
	return out
}

// Revision is the counter of the store.
func (s *Server) Revision() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.log.Revision
}

// Watches counts the open watches of a kind that the server still serves.
func (s *Server) Watches(r schema.GroupResource) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.mu.watches {
		if w.kind.GroupResource() == r && !w.over {
			n++
		}
	}
	return n
}

// wake has who waits for a condition look again. The lock keeps one that is
// about to wait from missing it.
func (s *Server) wake(told *sync.Cond) {
	s.mu.Lock()
	defer s.mu.Unlock()
	told.Broadcast()
}

// waitLocked waits until done, until ctx ends, or for at most d. It gives the
// lock back while it waits, and reports whether done is true.
func (s *Server) waitLocked(ctx context.Context, d time.Duration, done func() bool) bool {
	return s.waitOnLocked(ctx, s.changed, d, done)
}

// waitOnLocked waits for what is told of by a condition of its own, on the
// server's lock.
func (s *Server) waitOnLocked(ctx context.Context, told *sync.Cond, d time.Duration, done func() bool) bool {
	if done() || ctx.Err() != nil || d <= 0 {
		return done()
	}
	deadline := time.Now().Add(d)
	timer := time.AfterFunc(d, func() { s.wake(told) })
	defer timer.Stop()
	stop := context.AfterFunc(ctx, func() { s.wake(told) })
	defer stop()
	for !done() && ctx.Err() == nil && time.Now().Before(deadline) {
		told.Wait()
	}
	return done()
}

// shownOfLocked is the revision that lists from the cache and watches of a resource know.
func (s *Server) shownOfLocked(r schema.GroupResource) int64 {
	return s.mu.faults.known(r, s.shownLocked())
}

// shownLocked is the revision that lists from the cache and watches know, but for
// resources that lag behind the others.
func (s *Server) shownLocked() int64 {
	shown := s.mu.log.Revision
	if lag := s.mu.faults.lag; lag > 0 {
		shown = min(lag, shown)
	}
	if s.mu.keeping.to != nil {
		shown = min(s.mu.keeping.reached, shown)
	}
	return shown
}

// tellLocked gives open watches what they have not been given.
func (s *Server) tellLocked() {
	shown := s.shownLocked()
	changes, ok := s.mu.log.Since(s.mu.told, shown)
	if !ok && shown > s.mu.told { // compacted while the server lagged behind
		s.eachWatchLocked(func(w *watch) { w.fail(refusal.TooOld(s.mu.told, s.mu.log.Compacted).ErrStatus) })
	}
	for _, c := range append(s.mu.faults.due(), changes...) {
		if s.mu.faults.keep(c) {
			continue
		}
		for _, c := range s.mu.faults.distort(c) {
			for w := range s.mu.watches {
				w.tell(c)
			}
		}
	}
	s.mu.told = max(s.mu.told, shown)
	s.changed.Broadcast()
}
