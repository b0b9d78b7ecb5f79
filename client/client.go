// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/flyball-dev/flyball/internal/applied"
	"github.com/flyball-dev/flyball/internal/bodylimit"
	"github.com/flyball-dev/flyball/internal/memo"
	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/kube"
)

// Observer receives this process's own writes. *informer.SharedInformerFactory is one.
type Observer interface {
	// Observe receives the result of a write. It must not block for long: it runs
	// before the write returns to its caller.
	Observe(w kube.Written)
	// WhenPassed calls do once, when the cache holds a version of key newer than the
	// given one, or key is gone. stop cancels the wait.
	WhenPassed(kind schema.GroupVersionKind, key kube.Key, than kube.Version, do func()) (stop func())
}

// sharer is an Observer that knows which objects its readers share, as
// *informer.SharedInformerFactory does.
type sharer interface {
	Shares(obj kube.Object) bool
}

// cacher is an Observer that shows what its readers read, as
// *informer.SharedInformerFactory does.
type cacher interface {
	Cached(kind schema.GroupVersionKind, key kube.Key, like kube.Object) kube.Object
}

// Options of a Client. The zero Options are fit for production.
type Options struct {
	// Observer receives the results of this client's writes. Nil: none, and Listers
	// show a write when the watch delivers it. If the Observer has a method
	// Shares(kube.Object) bool, as *informer.SharedInformerFactory does, every call
	// that fills an object checks with it whether the object is shared: see C11. A
	// method Projected, as the factory has, tells which objects may lack fields.
	Observer Observer
	// FieldOwner of writes that name none. Empty: the server derives one from the user
	// agent, and Apply requires the option.
	FieldOwner string
	// DryRun makes every write of this client a dry run: the server validates and
	// admits it but does not store it, and the Observer does not receive it.
	DryRun bool
	// FieldValidation of writes that name none: Strict, Warn or Ignore. Empty: Strict,
	// so that an unknown field is an error and is not silently dropped.
	FieldValidation FieldValidation
	// Timeout of each request, after which it fails. A write may have taken effect
	// nevertheless. 0: the timeout of the REST configuration, or else 90 seconds,
	// because the server's own timeout is 60. Negative: only that of the context.
	Timeout time.Duration
	// RetryWithin bounds the total time that a call waits before retries that the
	// server asks for with Retry-After. If a retry would exceed it, the call returns
	// the error at once. C8 lists the requests that are retried. 0: 30 seconds.
	// Negative: no retries.
	RetryWithin time.Duration
	// PropagateTrace writes the span of the reconcile into the kube.TraceContextAnnotation of each
	// object that the reconcile creates, unless the object has one: so the reconciles of the child
	// belong to the trace of its parent's. An Apply creates only what an informer of the Observer
	// watches and does not hold; later ones keep the value. Without spans (see
	// reconcile.Options.TracerProvider) it does nothing.
	PropagateTrace bool
	// Logger logs each distinct warning of the server once, unless the context of the
	// call carries a logger. Zero: lines on stderr.
	Logger logr.Logger
}

// Client reads and writes objects on the API server. It has no cache: each read is a
// request. Create one with New. It is safe for concurrent use.
//
// Nothing holds back the writes of a Client but its configuration. With that of a manager
// whose replicas share objects (manager.Sharding), a write in the context of a reconcile is
// refused once the shard of its key is lost. One in another context only needs that this
// replica takes part.
type Client struct {
	*connection
	opts Options

	// Set by With.
	namespace string
	defaults  []Option
	misuse    error
}

// connection is shared by the views of one client.
type connection struct {
	config *rest.Config
	http   *http.Client
	scheme *runtime.Scheme
	mapper *mapper

	applies applied.Memory
	handed  memo.Memo[applied.Key, bool]
	traces  traces

	mu struct {
		sync.Mutex
		rest map[schema.GroupVersion]*rest.RESTClient
	}
}

// New returns a client for the API server of cfg. Go types are mapped to kinds by
// scheme. cfg is copied. A QPS of 0 means no client-side rate limit; the server's
// priority and fairness applies. New sends no request.
func New(cfg *rest.Config, scheme *runtime.Scheme, opts Options) (*Client, error) {
	switch {
	case cfg == nil:
		return nil, errors.New("make client: the REST configuration is nil; load one from a kubeconfig or with rest.InClusterConfig")
	case scheme == nil:
		return nil, errors.New("make client: the scheme is nil; pass runtime.NewScheme() with the types' AddToScheme called on it")
	}
	if err := opts.FieldValidation.check(); err != nil {
		return nil, fmt.Errorf("make client: Options.FieldValidation: %w", err)
	}
	if opts.Logger.IsZero() {
		opts.Logger = textlog.New(os.Stderr, 0)
	}
	opts.FieldValidation = cmp.Or(opts.FieldValidation, Strict)
	opts.Timeout = cmp.Or(opts.Timeout, cfg.Timeout, defaultTimeout)
	opts.RetryWithin = cmp.Or(opts.RetryWithin, defaultRetryWithin)
	c := &Client{connection: &connection{config: restConfig(cfg, opts.Logger), scheme: scheme}, opts: opts}
	shared, err := rest.HTTPClientFor(c.config)
	if err != nil {
		return nil, fmt.Errorf("make client for %s: %w", cfg.Host, err)
	}
	own := *shared // it may be http.DefaultClient
	own.Transport = retryAfterReader{bodylimit.Ensure(own.Transport)}
	c.http = &own
	c.mapper = newMapper(c.discover)
	c.traces.on = opts.PropagateTrace
	if cache, ok := opts.Observer.(interface {
		cacher
		WatchedKind(schema.GroupVersionResource) (schema.GroupVersionKind, bool)
	}); ok {
		c.traces.cached, c.traces.watched = cache.Cached, cache.WatchedKind
	}
	c.mu.rest = map[schema.GroupVersion]*rest.RESTClient{}
	return c, nil
}

// restConfig returns the configuration that all RESTClients share. It creates the rate
// limiter, so that a limit applies to the whole client and not to each group.
func restConfig(cfg *rest.Config, log logr.Logger) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	switch {
	case cfg.RateLimiter != nil:
	case cfg.QPS == 0:
		cfg.QPS = -1
	case cfg.QPS > 0:
		burst := cfg.Burst
		if burst == 0 {
			burst = rest.DefaultBurst
		}
		cfg.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(cfg.QPS, burst)
	}
	cfg.UserAgent = cmp.Or(cfg.UserAgent, rest.DefaultKubernetesUserAgent())
	if cfg.WarningHandler == nil && cfg.WarningHandlerWithContext == nil {
		cfg.WarningHandlerWithContext = NewWarningLog(log)
	}
	cfg.Timeout = 0 // send sets the timeout of each attempt, and a watch has none
	// The RESTClient decodes only errors; answer.go decodes objects into the exact type
	// of the caller.
	statuses := runtime.NewScheme()
	metav1.AddToGroupVersion(statuses, schema.GroupVersion{Version: "v1"})
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(statuses).WithoutConversion()
	return cfg
}

// Scheme returns the scheme that maps Go types to kinds.
func (c *Client) Scheme() *runtime.Scheme { return c.scheme }

// ResetDiscovery drops the cached discovery results. Kinds that were not served are
// never cached, so this is needed only after a CustomResourceDefinition was replaced by
// one with another scope or plural name.
func (c *Client) ResetDiscovery() { c.mapper.reset() }

func (c *connection) restFor(gv schema.GroupVersion) (*rest.RESTClient, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if rc := c.mu.rest[gv]; rc != nil {
		return rc, nil
	}
	cfg := rest.CopyConfig(c.config)
	cfg.GroupVersion = &gv
	cfg.APIPath = "/apis"
	if gv.Group == "" {
		cfg.APIPath = "/api"
	}
	rc, err := rest.RESTClientForConfigAndClient(cfg, c.http)
	if err != nil {
		return nil, fmt.Errorf("make REST client for %s: %w", gv, err)
	}
	c.mu.rest[gv] = rc
	return rc, nil
}
