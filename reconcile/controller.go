// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel/trace"

	"github.com/flyball-dev/flyball/internal/ownevents"
	"github.com/flyball-dev/flyball/internal/recording"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/internal/taskgroup"
	"github.com/flyball-dev/flyball/source"
	"github.com/flyball-dev/flyball/workqueue"
)

const (
	defaultWorkers      = 4
	defaultSoftDeadline = time.Minute
	defaultHardDeadline = 10 * time.Minute
	defaultDrainTimeout = 20 * time.Second // of a Pod's 30 s
)

// Options of a Controller whose keys are of type Key: of all made by For, and of most
// made by New. The fields are those of KeyedOptions.
type Options = KeyedOptions[Key]

// KeyedOptions are the Options of a Controller with keys of any type. The zero value is
// fit for production.
type KeyedOptions[K comparable] struct {
	// Name of a controller made by For, in logs, metrics and errors. Empty: its kind in
	// lower case. New has a parameter for the name and refuses one here.
	Name string
	// Predicate filters the events of its own kind for a controller made by For;
	// source.And combines several. Nil: all events. Controllers made by New have
	// predicates at their sources and refuse one here.
	Predicate source.Predicate
	// Workers is the number of concurrent reconciles. 0: 4. A reconcile mostly waits
	// for the API server: one worker would make all keys wait for a slow one, and four
	// cost almost nothing. A key is never reconciled twice at the same time. Raise it
	// if keys wait although the process has CPU to spare: see
	// workqueue_queue_duration_seconds.
	Workers int
	// SoftDeadline after which a reconcile is reported once, with its stack.
	// 0: 1 minute. Negative: none.
	SoftDeadline time.Duration
	// HardDeadline after which a reconcile's context is cancelled. 0: 10 minutes.
	// Negative: none.
	HardDeadline time.Duration
	// DrainTimeout is how long reconciles in flight may continue when Run's context
	// ends; then their contexts are cancelled. 0: 20 seconds, which fit into a Pod's
	// 30. Negative: cancelled at once.
	DrainTimeout time.Duration
	// RateLimiter of retries. Nil: exponential per key, 5 ms to 1000 s.
	RateLimiter workqueue.RateLimiter
	// Logger of the controller and of the reconciles' contexts, at no cost until they
	// log. Errors, panics and overruns are at level 0, conflicts and waits at V(1).
	// Zero: the one in Run's context.
	Logger logr.Logger
	// PrioritizeBy returns the priority of a key that a source adds, or that has waited
	// after a conflict. Keys with higher priority are reconciled first, but none waits
	// forever (see promise W8 of package workqueue). Priorities are from -128 to 127.
	// A retry has the priority of the run before it, or Result.Priority. PrioritizeBy
	// is called whenever a key is added, must not block, and may be called from any
	// goroutine; if it panics, the priority is 0. Nil: DefaultPriority.
	PrioritizeBy func(key K, cause source.Cause) int
	// FairBy makes the flows of keys with the same priority take turns, so that no
	// namespace, tenant or cluster waits for a flood of another's keys. It returns the
	// flow of a key, always the same for the same key, as ByNamespace does; if it
	// panics, the flow is "". It must not block and may be called from any goroutine.
	// Nil: there are no flows.
	FairBy func(key K) string
	// Queue to use instead of the controller's own: package bridge/clientgo/queues adapts
	// one of client-go. The controller shuts it down at its end; no other code may. It
	// has its own backoff and flows, so RateLimiter and FairBy are refused with it, and
	// PrioritizeBy unless it is a PriorityQueue.
	Queue Queue[K]
	// Witness is notified of each reconcile. Nil: the mutation detector of the manager
	// that runs the controller, if that is on. Without a manager use
	// factory.MutationDetector().
	Witness Witness
	// TracerProvider creates a span for each reconcile, which the context of Reconcile
	// carries. Nil: that of the manager that runs the controller; without one there are
	// no spans, at no cost. docs/operations.md describes the spans.
	TracerProvider trace.TracerProvider
	// OmitOwnEvents saves the reconciles that only follow own writes (see promise R15). Set
	// it if a reconcile does all that can be done, and returns Retry or After otherwise:
	// after a single step of several, nothing calls it for the next one. Package
	// simulate/kit finds such reconciles in tests (V24). At run time only a resync shows them,
	// and logs the first one; it is off by default (informer.Options.Resync).
	OmitOwnEvents bool
	// RecordRuns is how many past runs of each key Runs returns. 0: 8. Negative: none, and nothing
	// is recorded. See promise R29.
	RecordRuns int
	// RecordBytes bounds the memory of the past runs of all keys. 0: 4 MiB. At least 128 KiB. If it is
	// full, the keys that have not run for longest keep only their last run, and then none.
	RecordBytes int
	// ShardBy returns the value by whose hash the replicas of a program divide the keys of this
	// controller, if manager.Sharding divides its objects, such as a namespace or a UID. It is
	// called before each reconcile; if it panics, the reconcile does. It must not block. Not ok:
	// the key is of no object that this replica has, and is dropped. Nil: what Sharding divides by,
	// the namespace of a Key or the UID of the object of reconcile.For.
	ShardBy func(key K) (value string, ok bool)
	// Singleton makes one replica reconcile all keys of this controller, even if manager.Sharding
	// divides those of others: the one that holds shard 0.
	Singleton bool
	// CrashOnPanic makes a panic of a reconcile end the process after it is logged.
	// Otherwise it is an error of that reconcile.
	CrashOnPanic bool
}

// Controller runs a Func for the keys that its sources add. Create it with New. All
// methods are safe for concurrent use, and only Run blocks.
type Controller[K comparable] struct {
	control[K]
	name         string
	reconcile    Func[K]
	queue        Queue[K]
	ordered      PriorityQueue[K]          // queue, if it is one
	prioritize   func(K, source.Cause) int // nil: DefaultPriority
	watchdog     *watchdog[K]              // of the workers
	loggerKey    any                       // of contexts
	hardChosen   bool
	cutOff       <-chan struct{} // closed when reconciles in flight must end; nil: never
	log          logr.Logger     // of Options, until Run; then that of contexts
	own          logr.Logger     // set by Run; for the controller's own lines
	crashOnPanic bool
	prepared     sync.Once // when the first of Run and Standby begins
	witness      Witness   // of Options, or then that of the context; nil: none
	provider     trace.TracerProvider
	traces       *traces[K]          // set then; nil: none
	sim          simhook.Hooks       // set then; nil: none
	windows      *recording.Recorder // set then; nil: none
	known        replayedKeys[K]     // of a replay
	probes       []probe[K]          // set then

	group    taskgroup.Group // the sources, and the workers where Run has both
	synced   chan struct{}
	counters counters
	sources  sources[K]
	waits    waits[K]
	causes   causes[K]
	recorder *recorder[K] // of past runs; nil: none
	starving starvation[K]
	wrote    *ownevents.Ledger[K] // nil: own events wake
	absent   func(key K) bool     // a reconcile of key would do nothing; nil: unknown
	failures failures[K]

	sharded   sharded[K]
	shardBy   func(K) (string, bool) // of Options; nil: the default
	uid       func(K) (string, bool) // of the object of a key; nil: not known
	singleton bool

	unfinished sync.Once // a line about it

	mu struct {
		sync.Mutex
		began  part // what has begun
		misuse []error
	}
}

// New returns a controller that calls f with the keys that its sources add, of any
// type. For a controller of the objects of one kind use For. name identifies it in
// logs, metrics and errors. New starts nothing. An empty name, a nil f and invalid
// Options are remembered: Err and Run return them.
func New[K comparable](name string, f Func[K], opts KeyedOptions[K]) *Controller[K] {
	c := &Controller[K]{
		name:         name,
		reconcile:    f,
		prioritize:   opts.PrioritizeBy,
		loggerKey:    loggerKey(),
		hardChosen:   opts.HardDeadline != 0,
		log:          opts.Logger,
		crashOnPanic: opts.CrashOnPanic,
		shardBy:      opts.ShardBy,
		singleton:    opts.Singleton,
		synced:       make(chan struct{}),
	}
	if opts.OmitOwnEvents {
		c.wrote = new(ownevents.Ledger[K])
	}
	c.counters.took.Bounds = bounds[:]
	c.watchdog = &watchdog[K]{
		workers: make([]worker[K], max(cmp.Or(opts.Workers, defaultWorkers), 0)),
		soft:    cmp.Or(opts.SoftDeadline, defaultSoftDeadline),
		hard:    cmp.Or(opts.HardDeadline, defaultHardDeadline),
		drain:   cmp.Or(opts.DrainTimeout, defaultDrainTimeout),
		overdue: &c.counters.overdue,
		wake:    make(chan struct{}, 1),
	}
	if !isNil(opts.Witness) {
		c.witness = opts.Witness
	}
	if !isNil(opts.TracerProvider) {
		c.provider = opts.TracerProvider
	}
	c.chooseQueue(opts)
	var err error
	if c.recorder, err = newRecorder[K](opts.RecordRuns, opts.RecordBytes); err != nil {
		c.misused(err)
	}
	c.control.of, c.failed, c.past = c, c.queue, c.recorder
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

// Name returns the controller's name.
func (c *Controller[K]) Name() string { return c.name }

// Synced returns a channel that is closed when all sources present at the start have
// synced. The workers of Run start then.
func (c *Controller[K]) Synced() <-chan struct{} { return c.synced }

// Err returns the misuse so far, nil if there is none.
func (c *Controller[K]) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return errors.Join(c.mu.misuse...)
}

func (c *Controller[K]) misused(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.misuse = append(c.mu.misuse, fmt.Errorf("controller %q: %w", c.name, err))
}

// Watch adds sources, before or during Run. The workers start when the sources added so
// far have synced; a source that is added later starts at once and is not waited for. One
// that ends, as when its informer is released, is forgotten. A nil source, one that
// remembers misuse and a Watch after the end are remembered: Err returns them, and Run if it
// has not begun.
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
	drop := c.sources.add(s)
	if err := c.group.Go(func(ctx context.Context) error { return c.follow(ctx, s, drop) }); err != nil {
		drop()
		c.misused(fmt.Errorf("watch %s: the controller has ended; watch before or during Run", s))
	}
}

// isNil also detects an interface that holds a nil pointer.
func isNil(s any) bool {
	if s == nil {
		return true
	}
	v := reflect.ValueOf(s)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// Run reconciles until ctx ends or a source ends with an error, which it returns. It
// starts the sources, unless Standby has, and when all have synced, the workers. At the
// end it first stops sources and queue; reconciles in flight may continue for
// Options.DrainTimeout, then their contexts are cancelled. They are cancelled at once if
// the cause of ctx's end is ErrCutOff, and when the manager loses its leadership. Run
// returns when everything that it started has ended, with nil if ctx ended it, and logs the
// name of a reconcile that ignores its context. A panic of a source is its error. Keys that
// wait at the end are not reconciled; after the next start they come again with the first
// list. Run runs once.
func (c *Controller[K]) Run(ctx context.Context) error {
	alone, err := c.begin(ctx, working)
	if err != nil {
		return err
	}
	defer c.waits.endAll()
	defer c.recorder.close()
	defer c.sharded.end()
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

// follow runs one source, and drops it if it ends before the controller does. A panic of a
// source is its error.
func (c *Controller[K]) follow(ctx context.Context, s source.Source[K], drop func()) error {
	if c.sim != nil {
		c.sim.Step(ctx, "follow", c.name+" "+s.String())
	}
	ctx = ownevents.WithFilter(ctx, filterOf(c))
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
		drop()
		return nil
	default:
		return fmt.Errorf("watch %s: its Run returned before its Synced channel was closed, so the controller could never start", s)
	}
}

// awaitSync closes synced.
func (c *Controller[K]) awaitSync(ctx context.Context) error {
	if c.sources.await(ctx, c.own) {
		close(c.synced)
	}
	return nil
}
