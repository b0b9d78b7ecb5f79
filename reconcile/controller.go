// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/trace"

	"github.com/flyball-dev/flyball/internal/nursery"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/internal/textlog"
	"github.com/flyball-dev/flyball/source"
	"github.com/flyball-dev/flyball/workqueue"
)

const (
	defaultWorkers      = 4
	defaultSoftDeadline = time.Minute
	defaultHardDeadline = 10 * time.Minute
	defaultDrainTimeout = 20 * time.Second // of the 30 s that a pod has for all its ending

	firstSyncReport = 30 * time.Second
)

// Options of a Controller. The zero value is fit for production.
type Options struct {
	// Name of a controller made by For, in logs, metrics and errors. Empty: its kind in
	// lower case. New is given the name, and takes none here.
	Name string
	// Predicate says which events of its own kind matter to a controller made by For;
	// source.And takes several. Nil: all. Controllers made by New have predicates at
	// their sources, and take none here.
	Predicate source.Predicate
	// Workers that reconcile at the same time. 0: 4.
	Workers int
	// SoftDeadline after which a reconcile is reported once, with its stack.
	// 0: 1 minute. Negative: none.
	SoftDeadline time.Duration
	// HardDeadline after which a reconcile's context is cancelled. 0: 10 minutes.
	// Negative: none.
	HardDeadline time.Duration
	// DrainTimeout that reconciles in flight have when Run's context ends; then
	// their contexts are cancelled. 0: 20 seconds, which fit into a pod's 30.
	// Negative: cancelled at once.
	DrainTimeout time.Duration
	// RateLimiter of retries. Nil: exponential per key, 5 ms to 1000 s.
	RateLimiter workqueue.RateLimiter
	// Logger of the controller and of the reconciles' contexts. Zero: the one in
	// Run's context.
	Logger logr.Logger
	// CrashOnPanic lets a panic of a reconcile end the process, after it has been
	// logged. Otherwise it is an error of that reconcile.
	CrashOnPanic bool
}

// Controller runs a Func for the keys that its sources name. Make it with New. All
// methods are safe for concurrent use, and only Run blocks.
type Controller[K comparable] struct {
	name         string
	reconcile    Func[K]
	queue        Queue[K]                  // the same once the run has begun
	ordered      PriorityQueue[K]          // queue, if it is one; from the begin of the run on
	prioritize   func(K, source.Cause) int // from then on; nil: DefaultPriority
	limited      bool                      // by Options.RateLimiter
	workers      []worker[K]
	watchdog     watchdog
	loggerKey    any // of contexts
	soft, hard   time.Duration
	hardChosen   bool
	drain        time.Duration
	log          logr.Logger // of Options, until Run; then what contexts carry
	own          logr.Logger // from then on; for the controller's own lines
	crashOnPanic bool
	prepared     sync.Once     // when the first of Run and Standby begins
	witness      Witness       // from then on; nil: none
	traces       *traces[K]    // from then on; nil: none
	sim          simhook.Hooks // from then on; nil: none

	group    nursery.Nursery // the sources, and the workers where Run has both
	synced   chan struct{}
	counters counters
	failures failures[K]

	mu struct {
		sync.Mutex
		began   part // what has begun
		misuse  []error
		sources []source.Source[K]
		waits   map[K]func() // for the cache, after a conflict
		witness Witness      // nil: none
		traces  *traces[K]   // nil: none

		prioritize func(K, source.Cause) int // nil: DefaultPriority
		flow       func(K) string            // nil: keys have no flows
	}
}

// New returns a controller that calls f with keys of any type: the keys that its
// sources name. A controller of the objects of one kind is made by For. The name says
// which it is in logs, metrics and errors. New starts nothing. An empty name, a nil f
// and misused Options are remembered: Err and Run return them.
func New[K comparable](name string, f Func[K], opts Options) *Controller[K] {
	c := &Controller[K]{
		name:         name,
		reconcile:    f,
		limited:      opts.RateLimiter != nil,
		workers:      make([]worker[K], max(orDefault(opts.Workers, defaultWorkers), 0)),
		watchdog:     watchdog{wake: make(chan struct{}, 1)},
		loggerKey:    loggerKey(),
		soft:         orDefault(opts.SoftDeadline, defaultSoftDeadline),
		hard:         orDefault(opts.HardDeadline, defaultHardDeadline),
		hardChosen:   opts.HardDeadline != 0,
		drain:        orDefault(opts.DrainTimeout, defaultDrainTimeout),
		log:          opts.Logger,
		crashOnPanic: opts.CrashOnPanic,
		synced:       make(chan struct{}),
	}
	c.queue = workqueue.New[K](workqueue.Options{Name: name, RateLimiter: keyed(opts.RateLimiter, c.random)})
	c.mu.waits = make(map[K]func())
	if name == "" {
		c.misused(errors.New("the name is empty; name what it reconciles, such as reconcile.New(\"website\", …)"))
	}
	if f == nil {
		c.misused(errors.New("the reconcile function is nil; give reconcile.New a func(ctx, key) (Result, error)"))
	}
	if opts.Name != "" {
		c.misused(fmt.Errorf("Options.Name is %q; reconcile.New is given the name, leave it out", opts.Name))
	}
	if opts.Predicate != nil {
		c.misused(errors.New("Options.Predicate is for reconcile.For; give it to the source, such as source.Kind(informer, source.Self, predicate)"))
	}
	if opts.Workers < 0 {
		c.misused(fmt.Errorf("Options.Workers is %d; give a number above zero, or 0 for %d", opts.Workers, defaultWorkers))
	}
	return c
}

func orDefault[N int | time.Duration](n, zero N) N {
	if n == 0 {
		return zero
	}
	return n
}

// Name is the controller's name.
func (c *Controller[K]) Name() string { return c.name }

// Synced is closed when all sources that were there have been synced. The workers of
// Run start then.
func (c *Controller[K]) Synced() <-chan struct{} { return c.synced }

// Err is the misuse that the controller remembers, nil if there is none.
func (c *Controller[K]) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Clone(c.mu.misuse)
	if err := c.orderMisuseLocked(); err != nil {
		all = append(all, fmt.Errorf("controller %q: %w", c.name, err))
	}
	return errors.Join(all...)
}

func (c *Controller[K]) misused(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.misuse = append(c.mu.misuse, fmt.Errorf("controller %q: %w", c.name, err))
}

// Watch adds sources, before or during Run. The workers start when the sources that
// have been added by then are synced; one that joins later starts at once and is not
// waited for. A nil source, one that remembers misuse and a Watch after the end are
// remembered: Err returns them, and Run if it has not begun.
func (c *Controller[K]) Watch(sources ...source.Source[K]) {
	for _, s := range sources {
		c.watchOne(s)
	}
}

func (c *Controller[K]) watchOne(s source.Source[K]) {
	if isNil(s) {
		c.misused(errors.New("watch: the source is nil; give one of package source, such as source.Kind(informer, source.Self)"))
		return
	}
	if err := source.ErrOf(s); err != nil {
		c.misused(fmt.Errorf("watch: %w", err))
		return
	}
	c.mu.Lock()
	c.mu.sources = append(c.mu.sources, s)
	c.mu.Unlock()
	if err := c.group.Go(func(ctx context.Context) error { return c.follow(ctx, s) }); err != nil {
		c.misused(fmt.Errorf("watch %s: the controller has ended; watch before or during Run", s))
	}
}

// isNil also knows an interface that holds a nil pointer.
func isNil(s any) bool {
	if s == nil {
		return true
	}
	v := reflect.ValueOf(s)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// Run reconciles until ctx ends or a source ends with an error, which it returns.
// It starts the sources, unless Standby has, then, when all are synced, the workers.
// At the end, sources and queue stop first; reconciles in flight may finish for
// Options.DrainTimeout, then their contexts are cancelled, and at once if the cause
// of ctx's end is ErrCutOff. It returns when all that it started has ended, nil if ctx
// ended it. Keys that wait at the end are not reconciled: after the next start they
// come again, as part of the first list. Run runs once.
func (c *Controller[K]) Run(ctx context.Context) error {
	alone, err := c.begin(ctx, working)
	if err != nil {
		return err
	}
	defer c.endWaits()
	ctx = logr.NewContext(ctx, c.log)
	if !alone {
		c.work(ctx)
		return nil
	}
	return c.runGroup(ctx, c.awaitSync, func(ctx context.Context) error {
		c.work(ctx)
		return nil
	})
}

func (c *Controller[K]) runGroup(ctx context.Context, members ...func(context.Context) error) error {
	for _, m := range members {
		if err := c.group.Go(m); err != nil {
			return fmt.Errorf("controller %q: %w", c.name, err)
		}
	}
	if err := c.group.Run(ctx); err != nil {
		return fmt.Errorf("controller %q: %w", c.name, err)
	}
	return nil
}

// follow runs one source. A source that panics has failed.
func (c *Controller[K]) follow(ctx context.Context, s source.Source[K]) error {
	if c.sim != nil {
		c.sim.Step(ctx, "follow", c.name+" "+s.String())
	}
	var err error
	if p := guarded(func() { err = s.Run(ctx, c.add) }); p != nil {
		c.own.Error(p, "Source panicked", "source", s.String(), "stack", p.Stack)
		return fmt.Errorf("source %s: %w", s, p)
	}
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("watch %s: %w", s, err)
	}
	select {
	case <-s.Synced():
		return nil
	default:
		return fmt.Errorf("watch %s: its Run returned before its Synced channel was closed, so the controller could never start", s)
	}
}

// awaitSync closes synced.
func (c *Controller[K]) awaitSync(ctx context.Context) error {
	if c.awaitSources(ctx) {
		close(c.synced)
	}
	return nil
}

// awaitSources blocks until each source that is there by then is synced, or ctx
// ends; then it reports false. It says from time to time whom it waits for.
func (c *Controller[K]) awaitSources(ctx context.Context) bool {
	wait := firstSyncReport
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		behind := c.unsynced()
		if len(behind) == 0 {
			return ctx.Err() == nil
		}
		select {
		case <-behind[0].Synced():
		case <-ctx.Done():
			return false
		case <-timer.C:
			textlog.Warn(c.own, nil, "Workers have not started, because sources are not synced", "sources", names(behind))
			wait *= 2
			timer.Reset(wait)
		}
	}
}

func (c *Controller[K]) unsynced() []source.Source[K] {
	c.mu.Lock()
	defer c.mu.Unlock()
	var behind []source.Source[K]
	for _, s := range c.mu.sources {
		select {
		case <-s.Synced():
		default:
			behind = append(behind, s)
		}
	}
	return behind
}

func names[K comparable](sources []source.Source[K]) string {
	var all []string
	for _, s := range sources {
		all = append(all, s.String())
	}
	return strings.Join(all, ", ")
}

// endWait ends the wait for the cache after the run of key before.
func (c *Controller[K]) endWait(key K) {
	c.mu.Lock()
	stop := c.mu.waits[key]
	delete(c.mu.waits, key)
	c.mu.Unlock()
	if stop != nil {
		stop()
	}
}

func (c *Controller[K]) endWaits() {
	c.mu.Lock()
	waits := c.mu.waits
	c.mu.waits = make(map[K]func())
	c.mu.Unlock()
	for _, stop := range waits {
		stop()
	}
}

// ReportTo has each reconcile reported to w, in place of the one before; nil: to
// nobody. A manager has its controllers report to its informers' mutation detector;
// without one: c.ReportTo(factory.MutationDetector()), if that is not nil. After Run
// has begun it is remembered as misuse.
func (c *Controller[K]) ReportTo(w Witness) {
	c.mu.Lock()
	began := c.mu.began != 0
	if !began {
		c.mu.witness = w
	}
	c.mu.Unlock()
	if began {
		c.misused(errors.New("report to a witness: the controller has begun to run; call ReportTo before"))
	}
}

// TraceTo has each reconcile be a span of provider, and the context that Reconcile gets
// carry it. An event that names a key begins a trace: its span has two children, the
// time in the queue and the reconcile. When several events lead to one reconcile it
// belongs to the trace of the first and links to the others, of which there are 16 at
// most; flyball.events counts them. A run that no event asked for, after a time or with
// backoff, begins a trace of its own. It, too, links to the run that asked for it. A nil
// provider: no spans, and no cost. A manager does this with Options.TracerProvider. After
// the controller has begun it is remembered as misuse.
func (c *Controller[K]) TraceTo(provider trace.TracerProvider) {
	c.mu.Lock()
	began := c.mu.began != 0
	if !began {
		c.mu.traces = nil
		if !isNil(provider) {
			c.mu.traces = newTraces[K](c.name, provider)
		}
	}
	c.mu.Unlock()
	if began {
		c.misused(errors.New("trace: the controller has begun to run; call TraceTo before"))
	}
}
