// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"errors"
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/bodylimit"
	"github.com/flyball-dev/flyball/internal/effects"
	"github.com/flyball-dev/flyball/internal/health"
	"github.com/flyball-dev/flyball/internal/metrics"
	"github.com/flyball-dev/flyball/internal/recording"
	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/manager/internal/actions"
	"github.com/flyball-dev/flyball/manager/internal/crdinstall"
	"github.com/flyball-dev/flyball/manager/internal/election"
	"github.com/flyball-dev/flyball/manager/internal/recorder"
	"github.com/flyball-dev/flyball/manager/internal/serving"
	"github.com/flyball-dev/flyball/webhook"
)

// Manager holds what the controllers of a process share, and runs all of it. Create it
// with New. All methods are safe for concurrent use, and only Run blocks.
type Manager struct {
	guardedConfig     *rest.Config // for controllers: with leader election behind the gate
	standbyConfig     *rest.Config // for what runs on every replica
	userConfig        *rest.Config // guardedConfig as returned to users: its writes are observed
	userStandbyConfig *rest.Config // standbyConfig as returned to users
	scheme            *runtime.Scheme
	log               logr.Logger
	life              *life
	runnables         *runnables
	informers         *informer.SharedInformerFactory
	unread            unread
	shard             string            // selects its objects; empty: all
	client            *client.Client    // uses guardedConfig
	standbyClient     *client.Client    // uses standbyConfig
	elector           *election.Elector // nil: no election
	handover          *election.Handover
	replicas          *replicas       // nil: they do not share the work
	pauses            *actions.Pauses // nil: nothing can be paused
	mapper            *lazyMapper     // uses standbyConfig
	registry          *prometheus.Registry
	requests          *metrics.Requests
	traces            trace.TracerProvider // nil: none

	metrics, health *serving.Server // nil: none
	console         string          // "http://" or "https://"; empty: there is none
	hooks           webhook.Options

	pulse              *health.Pulse
	readyWhenSaturated bool
	probesForKubelet   bool // by default

	mail     *recorder.Mail
	mailOnce sync.Once // adds mail

	windows recording.Recorder // for replays

	mu struct {
		sync.Mutex
		webhooks    *webhook.Server // nil: not requested
		ready, live []health.Check  // added by the user
	}
}

// New returns a manager for the cluster in opts, or else for the one that kubectl would
// use. It sends no request, opens no port and starts nothing. It returns an error if no
// configuration is found, if one is malformed, or if opts are invalid.
func New(opts Options) (*Manager, error) {
	if err := opts.complete(); err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	m := &Manager{
		scheme:    opts.Scheme,
		log:       textlog.Throttled(opts.Logger),
		life:      newLife(opts.GracePeriod),
		runnables: newRunnables(),
		registry:  prometheus.NewRegistry(),
		requests:  metrics.NewRequests(),
		hooks:     opts.Webhooks,
		shard:     opts.Sharding.selector(),

		readyWhenSaturated: opts.ReadyWhenSaturated,
		probesForKubelet:   opts.probesForKubelet,
	}
	m.pulse = health.NewPulse(opts.StuckAfter, m.subjects())
	if !isNil(opts.TracerProvider) {
		m.traces = opts.TracerProvider
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
		cfg.WarningHandlerWithContext = client.NewWarningLog(opts.Client.Logger) // shared by all clients
	}
	if cfg.QPS == 0 && cfg.RateLimiter == nil {
		cfg.QPS = -1 // the server's priority and fairness sees more than one client does
	}
	cfg.Wrap(bodylimit.NewBudget().Wrap) // shared by all clients
	cfg.Wrap(m.requests.Wrap)
	if m.traces != nil {
		cfg.Wrap(newRequestTracer(m.traces, opts.Propagator).wrap)
	}
	m.guardedConfig, m.standbyConfig = cfg, cfg
	var err error
	if m.informers, err = informer.NewSharedInformerFactory(cfg, m.scheme, opts.Informers); err != nil {
		return err
	}
	m.runnables.shared = m.informers
	if opts.Client.Observer == nil {
		opts.Client.Observer = m.informers
	}
	writes, err := effects.NewObserver(cfg, m.scheme, m.informers, opts.Client.Observer)
	if err != nil {
		return err
	}
	cfg.Wrap(writes.Recording(m.informers).Wrap) // informers have their clients, and send nothing for reconciles
	m.userStandbyConfig = rest.CopyConfig(cfg)
	m.userStandbyConfig.Wrap(writes.Wrap)
	m.userConfig = m.userStandbyConfig
	if m.standbyClient, err = client.New(m.standbyConfig, m.scheme, opts.Client); err != nil {
		return err
	}
	m.client = m.standbyClient
	if opts.LeaderElection != nil {
		if err := elect(m, cfg, opts); err != nil {
			return err
		}
	}
	if m.mapper, err = newLazyMapper(m.standbyConfig); err != nil {
		return err
	}
	if m.mail, err = recorder.NewMail(m.standbyConfig, m.log, m.life.stopsUntil); err != nil {
		return err
	}
	if len(opts.crds) > 0 {
		// Beside the webhooks, which may have to convert what is stored, before the informers.
		if err := m.AddTo(StageWebhooks, crdinstall.New(m.standbyClient, opts.crds)); err != nil {
			return err
		}
	}
	if opts.Record.Dir != "" {
		if err := m.AddTo(StageInformers, kept{opts.Record.ring(m.scheme), &m.windows, m.log}); err != nil {
			return err
		}
	}
	return m.AddTo(StageInformers, sharedInformers{m.informers})
}

// elect adds the leader election to m, and makes its guarded clients. What passes the gate is recorded for the next leader.
func elect(m *Manager, cfg *rest.Config, opts Options) error {
	record := election.NewRecorder(opts.Client.Observer, func() []schema.GroupKind { return watchedKinds(m.informers) })
	seen, err := effects.NewObserver(cfg, m.scheme, m.informers, record, opts.Client.Observer)
	if err != nil {
		return err
	}
	record.Recognize(seen)
	opts.Client.Observer = record
	options := opts.LeaderElection.elector()
	options.Sign = record.Sign
	if opts.MetricsServing.Actions {
		// Of the plan's Lease if replicas share the work.
		m.pauses = actions.NewPauses(m.log, m.runnables.pausable)
		options.Shown = m.pauses.Learn
		options.Sign = func(l *coordinationv1.Lease, holder string, what election.LeaseWrite) {
			m.pauses.Sign(l)
			record.Sign(l, holder, what)
		}
	}
	var gate interface {
		Gated(cfg *rest.Config) *rest.Config
		Given(cfg *rest.Config) *rest.Config
	}
	if opts.shared() {
		if m.replicas, err = share(&opts, cfg, m.informers, record, m.runnables.controllers, m.pauses); err != nil {
			return err
		}
		gate = m.replicas.agent.Guard()
	} else {
		if m.elector, err = election.New(options, cfg, opts.Logger); err != nil {
			return err
		}
		gate = m.elector
	}
	counted := rest.CopyConfig(cfg)
	counted.Wrap(record.Wrap)
	m.guardedConfig = gate.Gated(counted)
	observed := rest.CopyConfig(counted)
	observed.Wrap(seen.Wrap)
	m.userConfig = gate.Given(observed)
	if m.client, err = client.New(m.guardedConfig, m.scheme, opts.Client); err != nil {
		return err
	}
	if m.replicas != nil {
		return m.AddTo(StageLeadership, m.replicas.agent)
	}
	m.handover = election.AwaitHandover(m.elector, m.informers, record)
	return errors.Join(m.AddTo(StageLeadership, m.elector), m.AddTo(StageLeadership, m.handover))
}

// watchedKinds returns the kinds of the informers of f.
func watchedKinds(f *informer.SharedInformerFactory) []schema.GroupKind {
	var kinds []schema.GroupKind
	for _, p := range f.Progress() {
		kinds = append(kinds, p.Kind.GroupKind())
	}
	return kinds
}

// sharedInformers is the factory as one Runnable.
type sharedInformers struct {
	*informer.SharedInformerFactory
}

func (sharedInformers) Name() string { return "shared informers" }

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
		handler, err := m.metricsHandler(opts)
		if err != nil {
			return err
		}
		as := opts.MetricsServing
		switch {
		case as.Console != nil && as.Secure:
			m.console = "https://"
		case as.Console != nil:
			m.console = "http://"
		}
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

// sendEvents makes the manager send Events.
func (m *Manager) sendEvents() {
	m.mailOnce.Do(func() {
		// In the servers' stage it ends last, after everything that records Events.
		if err := m.AddTo(StageServers, m.mail); err != nil {
			m.log.Error(err, "Cannot send Events")
		}
	})
}

// Informers returns the factory to pass to informer.For. The manager runs it. If replicas
// share objects (Sharding.Shards), Listers of a kind that is divided show the objects of this
// replica's shards alone, to whatever reads them; the log names such kinds at the start.
func (m *Manager) Informers() *informer.SharedInformerFactory {
	if m == nil {
		return nil
	}
	return m.informers
}

// Client returns the client for controllers. Listers of Informers show its writes at
// once. With leader election it writes only while this process leads; otherwise a write
// returns an error that wraps ErrNotLeading. With Sharding.Shards, a write in the context of
// a reconcile needs the shard of its key, and another one that the Lease of this replica is
// valid.
func (m *Manager) Client() *client.Client {
	if m == nil {
		return nil
	}
	return m.client
}

// StandbyClient is Client for what runs on every replica: no gate stops its writes.
func (m *Manager) StandbyClient() *client.Client {
	if m == nil {
		return nil
	}
	return m.standbyClient
}

// Webhooks returns the server to pass to webhook.Validate, Mutate and Convert, with
// Options.Webhooks. The first call creates it. The manager runs it on every replica,
// and is ready only while the server can be reached.
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
	_ = m.AddTo(StageWebhooks, fresh) // Run returns the error
	return fresh
}

// webhookServer returns the server of Webhooks; nil: none was requested.
func (m *Manager) webhookServer() *webhook.Server {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.webhooks
}

// Scheme returns the scheme of kinds with Go types.
func (m *Manager) Scheme() *runtime.Scheme {
	if m == nil {
		return nil
	}
	return m.scheme
}

// Config returns a copy of the connection's configuration, for other clients. Their requests count
// in the manager's metrics, and Listers show their writes at once, unless WrapTransport is replaced
// or Host changed. With leader election or Sharding.Shards their writes pass the same gate as those
// of Client: it finds the shard in the context of the request, so pass on that of the reconcile.
// Every POST counts as a write, even a pure query such as an access review. The gate is part of
// WrapTransport: extend it with Wrap. A client whose configuration has lost the gate gets
// ErrGateLost.
func (m *Manager) Config() *rest.Config { return rest.CopyConfig(m.userConfig) }

// StandbyConfig is Config for what runs on every replica, without the gate.
func (m *Manager) StandbyConfig() *rest.Config { return rest.CopyConfig(m.userStandbyConfig) }

// Elected returns a channel that is closed when this process leads and its informers have
// what the previous leader wrote: without leader election from the start. It stays closed
// when leadership is lost, which ends the manager. With Sharding.Shards it is closed when this
// process holds a shard for the first time.
func (m *Manager) Elected() <-chan struct{} {
	if m.replicas != nil {
		return m.replicas.agent.FirstHeld()
	}
	if m.elector == nil {
		always := make(chan struct{})
		close(always)
		return always
	}
	return m.handover.Started()
}

// Logger returns the manager's logger. What the manager runs finds it in its context.
func (m *Manager) Logger() logr.Logger { return textlog.Unthrottled(m.log) }

// Metrics returns the registry of /metrics, for your own metrics.
func (m *Manager) Metrics() *prometheus.Registry { return m.registry }

// MetricsAddr returns the address on which /metrics is or was served, such as
// "127.0.0.1:8080". Empty: none, or not yet.
func (m *Manager) MetricsAddr() string { return m.metrics.Addr() }

// HealthAddr returns the address on which /livez, /readyz and /healthz are or were
// served. Empty: none, or not yet.
func (m *Manager) HealthAddr() string { return m.health.Addr() }
