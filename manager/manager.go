// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/answers"
	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/manager/internal/election"
	"github.com/flyball-dev/flyball/manager/internal/health"
	"github.com/flyball-dev/flyball/manager/internal/metrics"
	"github.com/flyball-dev/flyball/manager/internal/recorder"
	"github.com/flyball-dev/flyball/manager/internal/serving"
	"github.com/flyball-dev/flyball/webhook"
)

// Manager holds what the controllers of a process share, and runs it all. Make
// it with New. All methods are safe for concurrent use, and only Run blocks.
type Manager struct {
	config    *rest.Config // of controllers: with leader election behind the gate
	given     *rest.Config // config for the hands of users
	standby   *rest.Config // of what runs on every replica
	scheme    *runtime.Scheme
	log       logr.Logger
	grace     time.Duration
	informers *informer.SharedInformerFactory
	client    *client.Client    // of config
	ungated   *client.Client    // of standby
	elector   *election.Elector // nil: no election
	mapper    *lazyMapper       // of standby
	registry  *prometheus.Registry
	requests  *metrics.Requests
	traces    trace.TracerProvider // nil: none
	groups    []*group             // as stages

	metrics, health *serving.Server // nil: none
	hooks           webhook.Options

	pulse              *health.Pulse
	readyWhenSaturated bool

	mail     *recorder.Mail
	mailOnce sync.Once // adds it

	mu struct {
		sync.Mutex
		phase       Phase
		since       time.Time
		misuse      []error
		controllers map[string]bool // names that are taken
		webhooks    *webhook.Server // nil: nobody has asked for it
		ready, live []health.Check  // the user's
		fail        context.CancelCauseFunc
		faults      []error // the first is why Run ended
	}
}

// New returns a manager for the cluster that opts say, or that is found as
// kubectl finds it. It sends no request, opens no port and starts nothing. It
// is an error when no configuration is found or one is malformed, and when
// opts are misused.
func New(opts Options) (*Manager, error) {
	if err := opts.complete(); err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	m := &Manager{
		scheme:   opts.Scheme,
		log:      textlog.Throttled(opts.Logger),
		grace:    opts.GracePeriod,
		registry: prometheus.NewRegistry(),
		requests: metrics.NewRequests(),
		hooks:    opts.Webhooks,

		readyWhenSaturated: opts.ReadyWhenSaturated,
	}
	m.pulse = health.NewPulse(opts.StuckAfter, m.subjects())
	if !isNil(opts.TracerProvider) {
		m.traces = opts.TracerProvider
	}
	m.mu.phase, m.mu.since = PhaseNew, time.Now()
	m.mu.controllers = map[string]bool{}
	for _, stage := range stages {
		m.groups = append(m.groups, &group{stage: stage})
	}
	if err := m.connect(opts); err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	if err := m.observe(opts); err != nil {
		return nil, fmt.Errorf("make manager: metrics: %w", err)
	}
	if err := m.serve(opts); err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	return m, nil
}

// connect makes what talks to the API server.
func (m *Manager) connect(opts Options) error {
	cfg := opts.Config
	if cfg == nil {
		found, err := FindConfig(opts.Kubeconfig, opts.Context)
		if err != nil {
			return err
		}
		cfg = found
	}
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = cmp.Or(opts.UserAgent, cfg.UserAgent, rest.DefaultKubernetesUserAgent())
	if opts.Impersonate.UserName != "" {
		cfg.Impersonate = opts.Impersonate
	}
	if cfg.WarningHandler == nil && cfg.WarningHandlerWithContext == nil {
		cfg.WarningHandlerWithContext = client.NewWarningLog(opts.Client.Logger) // one for all clients
	}
	if cfg.QPS == 0 && cfg.RateLimiter == nil {
		cfg.QPS = -1 // the server's priority and fairness sees more than one client does
	}
	cfg.Wrap(answers.NewBudget().Wrap) // one for all clients
	cfg.Wrap(m.requests.Wrap)
	if m.traces != nil {
		cfg.Wrap(newRequestTracer(m.traces, opts.Propagator).wrap)
	}
	m.config, m.given, m.standby = cfg, cfg, cfg
	var err error
	if opts.LeaderElection != nil {
		if m.elector, err = election.New(opts.LeaderElection.elector(), cfg, opts.Logger); err != nil {
			return err
		}
		m.given, m.config = m.elector.Given(cfg), m.elector.Gated(cfg)
		if err := m.AddTo(StageLeadership, m.elector); err != nil {
			return err
		}
	}
	if m.informers, err = informer.NewSharedInformerFactory(cfg, m.scheme, opts.Informers); err != nil {
		return err
	}
	if opts.Client.Observer == nil {
		opts.Client.Observer = m.informers
	}
	if m.ungated, err = client.New(m.standby, m.scheme, opts.Client); err != nil {
		return err
	}
	if m.client = m.ungated; m.elector != nil {
		if m.client, err = client.New(m.config, m.scheme, opts.Client); err != nil {
			return err
		}
	}
	if m.mapper, err = newLazyMapper(m.standby); err != nil {
		return err
	}
	if m.mail, err = recorder.NewMail(m.standby, m.log, m.stopsUntil); err != nil {
		return err
	}
	return m.AddTo(StageInformers, sharedInformers{m.informers})
}

// sharedInformers is the factory as one Runnable.
type sharedInformers struct {
	*informer.SharedInformerFactory
}

func (sharedInformers) Name() string { return "shared informers" }

// serve makes the servers that opts ask for.
func (m *Manager) serve(opts Options) error {
	if opts.HealthAddress != off {
		m.health = serving.New(serving.Options{
			Name: "health", Address: opts.HealthAddress, Flag: "health-probe-bind-address", Hosts: opts.AllowedHosts,
			Handler: health.Handler(m.readyChecks, m.liveChecks),
		})
		if err := m.AddTo(StageServers, m.health); err != nil {
			return err
		}
	}
	if opts.MetricsAddress != off {
		handler, err := m.metricsHandler(opts.MetricsServing)
		if err != nil {
			return err
		}
		as := opts.MetricsServing
		m.metrics = serving.New(serving.Options{
			Name: "metrics", Address: opts.MetricsAddress, Flag: "metrics-bind-address", Hosts: opts.AllowedHosts,
			Handler: handler, Secure: as.Secure, CertDir: as.CertDir, TLS: as.TLS,
		})
		if err := m.AddTo(StageServers, m.metrics); err != nil {
			return err
		}
	}
	return nil
}

// Informers is the factory that informer.For takes. The manager runs it.
func (m *Manager) Informers() *informer.SharedInformerFactory { return m.informers }

// Client reads from and writes to the API server, for controllers; Listers of
// Informers show its writes at once. With leader election it writes only while this
// process leads: otherwise a write returns an error that is ErrNotLeading.
func (m *Manager) Client() *client.Client { return m.client }

// StandbyClient is Client for what runs on every replica: no gate stops its writes.
func (m *Manager) StandbyClient() *client.Client { return m.ungated }

// Webhooks is the server that webhook.Validate, Mutate and Convert take, as
// Options.Webhooks say. The manager makes it when it is first asked for, runs it on
// every replica, and is ready only while it can be reached.
func (m *Manager) Webhooks() *webhook.Server {
	fresh := webhook.New(m.StandbyConfig(), m.scheme, m.hooks)
	m.mu.Lock()
	have := m.mu.webhooks
	if have == nil {
		m.mu.webhooks = fresh
	}
	m.mu.Unlock()
	if have != nil {
		return have
	}
	_ = m.AddTo(StageWebhooks, fresh) // Run returns what is wrong with it
	return fresh
}

// webhookServer is that of Webhooks; nil: nobody has asked for it.
func (m *Manager) webhookServer() *webhook.Server {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.webhooks
}

// Scheme of the kinds that have Go types.
func (m *Manager) Scheme() *runtime.Scheme { return m.scheme }

// Config is a copy of the connection's configuration, for clients of other
// kinds. Their requests are counted in the manager's metrics, and with leader
// election their writes pass the gate as those of Client do; to it, each POST is a
// write, also one that only asks, such as an access review. The gate is part of
// WrapTransport: add to that by Wrap. A client whose configuration has lost it gets
// ErrGateLost, see there.
func (m *Manager) Config() *rest.Config { return rest.CopyConfig(m.given) }

// StandbyConfig is Config for what runs on every replica, without the gate.
func (m *Manager) StandbyConfig() *rest.Config { return rest.CopyConfig(m.standby) }

// Elected is closed when this process leads: without leader election from the start.
// It stays closed when leadership is lost, which ends the manager.
func (m *Manager) Elected() <-chan struct{} {
	if m.elector == nil {
		always := make(chan struct{})
		close(always)
		return always
	}
	return m.elector.Started()
}

// Logger of the manager. What it runs finds it in its context.
func (m *Manager) Logger() logr.Logger { return textlog.Unthrottled(m.log) }

// Metrics is the registry that /metrics shows, for metrics of one's own.
func (m *Manager) Metrics() *prometheus.Registry { return m.registry }

// MetricsAddr is where /metrics is or was served, such as "127.0.0.1:8080". Empty:
// nowhere, or not yet.
func (m *Manager) MetricsAddr() string { return m.metrics.Addr() }

// HealthAddr is where /livez, /readyz and /healthz are or were served. Empty: nowhere,
// or not yet.
func (m *Manager) HealthAddr() string { return m.health.Addr() }

// remember has Run return err, if it has not begun.
func (m *Manager) remember(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.misuse = append(m.mu.misuse, err)
}

// fault ends the run because of err.
func (m *Manager) fault(err error) {
	m.mu.Lock()
	m.mu.faults = append(m.mu.faults, err)
	fail := m.mu.fail
	m.mu.Unlock()
	fail(err)
}

func (m *Manager) reason() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return errors.Join(m.mu.faults...)
}
