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

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/answers"
	"github.com/flyball-dev/flyball/internal/textlog"
)

// Observer is shown this process's own writes. *informer.SharedInformerFactory
// is one.
type Observer interface {
	// Observe takes the answer to a write. It must not block for long: it runs
	// before the write returns to its caller.
	Observe(w informer.Written)
	// WhenPassed calls do, once, when the cache holds a version of key newer
	// than the given one, or key is gone. stop ends the waiting.
	WhenPassed(kind schema.GroupVersionKind, key informer.Key, than informer.Version, do func()) (stop func())
}

// sharer is an Observer that knows which objects its readers share, as
// *informer.SharedInformerFactory does.
type sharer interface {
	Shares(obj informer.Object) bool
}

// Options of a Client. The zero Options are fit for production.
type Options struct {
	// Observer is shown the answers to this client's writes; nil: nobody is, and
	// a Lister shows a write when its watch does. One that has a method
	// Shares(informer.Object) bool, as *informer.SharedInformerFactory has, is asked
	// by each call that fills an object whether the object is shared: see C11.
	Observer Observer
	// FieldOwner of writes that name none. Empty: the server derives one from
	// the user agent, and Apply asks for the option.
	FieldOwner string
	// DryRun makes every write of this client a dry run: validated and
	// admitted by the server, stored nowhere, shown to no Observer.
	DryRun bool
	// FieldValidation of writes that name none: Strict, Warn or Ignore. Empty:
	// Strict, so that a field that the server does not know is an error and not
	// lost.
	FieldValidation FieldValidation
	// Timeout of each request: a server that has not answered by then has lost
	// it. A write may have been done nevertheless. 0: that of the REST
	// configuration, or else 90 seconds, since the server gives up after 60 of its
	// own. Negative: none but the context's.
	Timeout time.Duration
	// RetryWithin is how long a call may wait, in all, for a server that asks by
	// Retry-After to be asked later; what would take longer is returned at once.
	// See C8 for what is sent again. 0: 30 seconds. Negative: nothing is sent
	// again.
	RetryWithin time.Duration
	// Logger gets each warning of the server once, where the context of a call
	// carries no logger. Zero: lines on stderr.
	Logger logr.Logger
}

// Client reads from and writes to the API server. It keeps no objects: a read
// is a request. Make it with New; it is safe for concurrent use.
type Client struct {
	*connection
	opts Options

	// What With has set.
	namespace string
	defaults  []Option
	misuse    error
}

// connection is what the views of one client share.
type connection struct {
	config *rest.Config
	http   *http.Client
	scheme *runtime.Scheme
	mapper *mapper

	mu struct {
		sync.Mutex
		rest map[schema.GroupVersion]*rest.RESTClient
	}
}

// New returns a client for the API server of cfg. Kinds with Go types are
// looked up in scheme. cfg is copied; a QPS of 0 means no limit on this side,
// the server's own priority and fairness rule. No request is made.
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
	own.Transport = retryAfterReader{answers.Ensure(own.Transport)}
	c.http = &own
	c.mapper = newMapper(c.discover)
	c.mu.rest = map[schema.GroupVersion]*rest.RESTClient{}
	return c, nil
}

// restConfig is what all RESTClients share. The rate limiter is made here, so
// that a limit holds for the whole client and not for each group.
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
	if cfg.UserAgent == "" {
		cfg.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	if cfg.WarningHandler == nil && cfg.WarningHandlerWithContext == nil {
		cfg.WarningHandlerWithContext = NewWarningLog(log)
	}
	cfg.Timeout = 0 // send sets the time of each try, and a watch has none
	// The RESTClient itself decodes only the server's errors; objects are
	// decoded by answer.go into exactly the type the caller has.
	statuses := runtime.NewScheme()
	metav1.AddToGroupVersion(statuses, schema.GroupVersion{Version: "v1"})
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(statuses).WithoutConversion()
	return cfg
}

// Scheme in which the client looks up Go types.
func (c *Client) Scheme() *runtime.Scheme { return c.scheme }

// ResetDiscovery forgets which resources the server serves; the next call for
// each kind asks again. A kind that was not served is always asked for again,
// so this is needed only after a CustomResourceDefinition was replaced by one
// of another scope or plural name.
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
