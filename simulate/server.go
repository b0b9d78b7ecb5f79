// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/taskgroup"
	"github.com/flyball-dev/flyball/simulate/internal/access"
	"github.com/flyball-dev/flyball/simulate/internal/encode"
	"github.com/flyball-dev/flyball/simulate/internal/faults"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/models"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/read"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
	"github.com/flyball-dev/flyball/simulate/internal/serve"
	"github.com/flyball-dev/flyball/simulate/internal/store"
	"github.com/flyball-dev/flyball/simulate/internal/webhooks"
	"github.com/flyball-dev/flyball/simulate/internal/write"
)

// Options of a Server. The zero value serves the built-in kinds.
type Options struct {
	// Kinds besides the built-in ones, as if their CRDs were installed.
	Kinds []Kind
	// Namespaces that exist from the start, besides default, kube-system, kube-public and
	// kube-node-lease. Objects can be created only in namespaces that exist. With a journal
	// these are the namespaces of a new one; those deleted later stay deleted.
	Namespaces []string
	// User is the name of unauthenticated clients. Empty: "simulated".
	User string
	// Authorization lets roles decide who may do what. Without it everyone may do
	// everything, and requests without credentials are those of User.
	Authorization bool
	// Tokens are the known bearer tokens, besides those of ServiceAccounts.
	Tokens map[string]User
	// TokenIssuer is the issuer of the tokens of ServiceAccounts, and their audience unless
	// another is requested. Empty: https://kubernetes.default.svc.cluster.local.
	TokenIssuer string
	// Seed determines all random values, such as the suffixes of generated names.
	Seed uint64
	// CompactEvery is how often history is compacted, except that since the last
	// compaction: older versions are then 410. 0: five minutes, as for real servers.
	// Negative: never, except by Compact.
	CompactEvery time.Duration
	// IgnoreShardSelectors makes a server without the feature gate ShardedListAndWatch
	// (KEP-5866), which is on since Kubernetes 1.38: it ignores the parameter shardSelector and
	// answers for the objects of all shards. False: the server selects by it, for all kinds.
	IgnoreShardSelectors bool
	// Tracer observes requests and changes; may be nil.
	Tracer Tracer
	// WebhookTransport carries the requests to admission and conversion webhooks. A Service
	// has the URL https://name.namespace.svc:port. nil: the network, with the configured
	// caBundle; Services then have no address.
	WebhookTransport http.RoundTripper
	// DialWebhook connects to a webhook by its URL; the configured caBundle verifies its
	// certificate. It is not called with a WebhookTransport. nil: the network.
	DialWebhook func(ctx context.Context, webhook *url.URL) (net.Conn, error)
}

// Server is a Kubernetes API server: a store, and the requests that it answers. It is an
// http.Handler; Run serves it on a listener. Safe for concurrent use.
type Server struct {
	Faults
	corrupted   faults.Objects
	access      *access.Control
	seed        uint64
	namespaces  []string // those that exist from the start
	allotter    *write.Allotter
	writes      *write.Path
	handlers    *serve.Handler
	answers     answers
	encodings   encode.Cache
	tracer      Tracer // may be nil
	definitions *definitionController
	kinds       *kinds.Registry
	store       *store.Store
	served      served
	version     atomic.Value // string; reported by the server
	actorsDue   atomic.Int64 // when actors take their next step, in nanoseconds; 0: none is planned
}

// New returns a server with the first namespaces and its own Service, default/kubernetes. It
// starts nothing.
func New(opts Options) *Server {
	s := &Server{seed: opts.Seed, tracer: opts.Tracer, kinds: kinds.NewRegistry()}
	s.requests, s.delivery = new(faults.Requests), new(faults.Delivery)
	s.allotter = write.NewAllotter(opts.Seed)
	s.namespaces = slices.Concat(firstNamespaces, opts.Namespaces)
	dialer := webhooks.Dialer{Transport: opts.WebhookTransport, Dial: opts.DialWebhook}
	s.definitions = &definitionController{Kinds: s.kinds, Dialer: dialer, PublishAfter: s.requests.PublishAfter}
	s.store = store.New(store.Options{
		CompactEvery: opts.CompactEvery, Cache: s.delivery, After: func(tx *store.Tx, c revisions.Change) { s.definitions.After(tx, c) },
		Given: func() store.Counters { return store.Counters(s.allotter.Counters()) },
	})
	s.resources, s.reshow = s.kinds, s.store.Reshow
	s.access = newAccess(s, opts)
	admission := &webhooks.Admission{Dialer: dialer, Seed: opts.Seed, Objects: s.store}
	s.writes = &write.Path{Store: writeStore{s.store}, Kinds: s.kinds, Rights: s.access, Admission: admission, Allotter: s.allotter, Seen: s.corrupted.Sound}
	s.answers = answers{s.tracer, s.requests}
	s.handlers = &serve.Handler{
		Writes: s.writes, Access: s.access, Kept: s.store.Kept, Lost: s.answers.lost,
		Reads:  &read.Reader{Store: s.store, Kinds: s.kinds, Seen: s.corrupted.Sound, ExpiresContinue: s.requests.ContinueExpired},
		Damage: s.answers.damage, Sending: s.answers.sending,
		RefusesStreams: func(*serve.Call) bool { return s.requests.StreamsRefused() },
		IgnoresShards: func(c *serve.Call) bool {
			return opts.IgnoreShardSelectors || !c.Sound && s.requests.ShardSelectorsIgnored()
		},
	}
	s.version.Store("v1.37.0+simulated")
	if s.tracer != nil {
		s.store.ObserveChanges((&tracing{server: s}).changed)
	}
	for _, kind := range opts.Kinds {
		s.Install(kind)
	}
	tx := s.store.Begin()
	installNamespaces(tx, s.namespaces)
	installService(tx)
	tx.End()
	if opts.Authorization {
		s.store.ObserveChanges(s.access.Changed)
		tx := s.store.Begin()
		defer tx.End()
		installRoles(tx, s.kinds, s.writes)
	}
	return s
}

// Run serves on ln until ctx ends. It returns when every request has ended, and closes ln.
func (s *Server) Run(ctx context.Context, ln net.Listener) error {
	return serveOn(ctx, ln, &http.Server{Handler: s})
}

// serveOn serves on ln until ctx ends, and returns when every request has ended. A request
// that a connection had read by then is served nothing, since its caller no longer reads.
func serveOn(ctx context.Context, ln net.Listener, server *http.Server) error {
	var requests taskgroup.Calls
	defer requests.Close()
	handler := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !requests.Begin() {
			panic(http.ErrAbortHandler)
		}
		defer requests.End()
		if r.Method != http.MethodGet && r.Body != http.NoBody { // its rest may never arrive
			c := http.NewResponseController(w)
			_ = c.SetReadDeadline(time.Now().Add(bodyWithin))
			r.Body = &awaited{r.Body, c}
		}
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

// awaited is a body that has a deadline until it has arrived. The deadline is the connection's: it
// would end the request.
type awaited struct {
	io.ReadCloser
	of *http.ResponseController
}

// Read implements io.Reader.
func (b *awaited) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		_ = b.of.SetReadDeadline(time.Time{})
	}
	return n, err
}

// Served returns the requests so far in their order, at most the last 100,000.
func (s *Server) Served() []Served { return s.served.all() }

// Revision returns the present revision of the store.
func (s *Server) Revision() int64 { return s.store.Revision() }

// Watches returns the number of open watches of a resource, without those that are about to
// end.
func (s *Server) Watches(r schema.GroupResource) int { return s.store.Watches(r) }

// keepIn continues from the content of a journal, or starts an empty one. Nothing else uses
// the server yet.
func (s *Server) keepIn(j *store.Journal, content *store.JournalContent) (err error) {
	var defined []*object.Object
	if content != nil {
		if defined, err = definitionsIn(content.Log); err != nil {
			return err
		}
		// Each object with a generated name has a revision.
		s.allotter.Resume(write.Counters(content.Given), int(content.Log.Revision))
	}
	tx := s.store.Begin()
	defer tx.End()
	if err := tx.Resume(j, content); err != nil {
		return err
	}
	for _, crd := range defined {
		s.definitions.Changed(tx, revisions.Change{Resource: kinds.Definitions, Key: crd.Key(), After: crd})
	}
	if tx.Count(object.Namespaces) == 0 {
		installNamespaces(tx, s.namespaces) // only older journals have none
	}
	installService(tx)
	return nil
}

// definitionsIn returns the CRDs of a log that was read, with what they define.
func definitionsIn(l *revisions.Log) ([]*object.Object, error) {
	crds, _ := l.List(kinds.Definitions, l.Revision)
	kind := &kinds.Kind{GroupVersionKind: models.DefinitionKind, Resource: kinds.Definitions.Resource}
	for _, crd := range crds {
		if err := kind.Define(crd); err != nil {
			return nil, fmt.Errorf("read the CRD %s: %w", crd.Key().Name, err)
		}
	}
	return crds, nil
}
