// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
	packing "github.com/flyball-dev/flyball/informer/compact"
	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/internal/simhook"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/simulate"
	"github.com/flyball-dev/flyball/simulate/internal/aim"
)

// process is one life of a program: a manager, what setup added to it, and the network
// between it and the server.
type process struct {
	w       *World
	program *program
	name    string
	network *simulate.Network // for its requests to the server
	inbound *simulate.Network // for the server's calls of its webhooks
	end     context.CancelFunc
	ended   chan struct{} // closed when its manager has returned
	manager *manager.Manager
	outside *outsider // of a program of RunMain; nil: there is a manager
	next    pending
	sends   sends
	mu      struct {
		sync.Mutex
		dead     bool          // crashed: what it does is not recorded
		stopping bool          // it was asked to end
		gone     bool          // it has ended
		next     time.Time     // the next life begins then, after a stop
		until    time.Time     // it is held until then
		stood    time.Time     // end of the last hold
		wrong    time.Duration // error of its wall clock
		busy     map[keyed]*attempt
		works    map[string]bool // controllers whose workers have begun
		listens  bool            // its webhooks can be called
		hooked   bool            // parts of Flyball run in it
		refused  bool            // new connections are refused
		parted   bool            // new connections lose what is sent
	}
}

// mishap is a fault of a reconcile before the user's code runs.
type mishap struct {
	panics bool
	hangs  time.Duration
}

type keyed struct{ controller, key string }

type attempt struct {
	queued, running bool
	again           bool // with backoff, after a failure

	failed int      // consecutive failures
	last   string   // the last error
	asked  []string // the last requests of its reconciles, as lines
	wake   func()   // calls for the key, if it is idle; nil: it is not

	call  func() // calls for the key, whatever it waits for; nil: not known
	timed bool   // the last reconcile has asked for another
	wrote bool   // the last reconcile has written
	looks int    // how often it was called at rest
}

func (a *attempt) idle() bool { return !a.queued && !a.running && !a.again }

func (p *program) begin() {
	w := p.w
	life := &process{w: w, program: p, network: simulate.NewNetwork(), inbound: simulate.NewNetwork(), ended: make(chan struct{})}
	life.mu.busy, life.mu.works = map[keyed]*attempt{}, map[string]bool{}
	p.mu.Lock()
	p.mu.lives = append(p.mu.lives, life)
	life.name = fmt.Sprintf("%s-%d", p.name, len(p.mu.lives))
	p.mu.Unlock()
	ctx, cancel := context.WithCancel(simhook.With(w.clock.ctx, life))
	life.end = cancel
	life.network.Pace(life.name, life.pace)
	life.inbound.Pace("server to "+life.name, life.pace)
	started := Event{What: Started, Who: life.name}
	if p.isMain() {
		started.Name, life.outside = unseen, &outsider{p: life}
	}
	w.record.add(started)
	w.clock.group.Go(func() {
		if err := w.server.Run(w.clock.serving, life.network.Listener()); err != nil {
			w.record.fail("kit", fmt.Sprintf("serve %s: %v", life.name, err))
		}
	})
	w.clock.group.Go(func() {
		defer cancel()
		next := life.exited(life.run(ctx))
		close(life.ended)
		if next != nil {
			next()
			p.restart()
		}
	})
}

// run does what main does.
func (p *process) run(ctx context.Context) error {
	cfg := &rest.Config{Host: "http://simulated", Transport: &sender{p, p.transport()}, UserAgent: "simulated"}
	if p.w.cfg.Rights != nil {
		cfg.Transport = p.w.cfg.Rights.Transport(cfg.Transport)
	}
	if p.outside != nil {
		return p.program.main(ctx, cfg)
	}
	opts := p.w.cfg.Manager
	if change := p.w.cfg.Process; change != nil {
		change(p.program.name, &opts)
	}
	if opts.Config != nil {
		cfg.WrapTransport = opts.Config.WrapTransport
	}
	opts.Scheme, opts.Config = p.w.cfg.Scheme, cfg
	opts.MetricsAddress, opts.HealthAddress = "0", "0" // a bubble has no sockets
	opts.Logger = p.logger()
	opts.Informers.DetectMutations = informer.MutationDetection{Rate: 1, OnMutation: func(m informer.Mutation) {
		p.record(Event{What: Mutated, Kind: m.Kind.GroupKind().String(), Key: aim.KeyText(m.Key), Text: m.String()})
	}}
	if p.w.packs && opts.Informers.Compact.Codec == nil {
		// Few objects stay open, so that most are opened anew.
		opts.Informers.Compact = packing.New(packing.Options{HotObjects: 4, DictionaryBytes: 4 << 10})
	}
	mgr, err := manager.New(opts)
	if err != nil {
		return err
	}
	if err := p.program.setup(mgr); err != nil {
		return fmt.Errorf("setup: %w", err)
	}
	p.w.record.share(mgr.Snapshot())
	if p.w.widens > 0 {
		if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
			return widen(ctx, mgr.Informers(), time.Until(p.w.clock.start.Add(p.w.widens)))
		})); err != nil {
			return err
		}
	}
	p.mu.Lock()
	p.manager = mgr
	p.mu.Unlock()
	return mgr.Run(ctx)
}

// widen makes handles, after a while, that want all fields of kinds of which the program
// keeps only some, as code that is added later to the program might.
func widen(ctx context.Context, f *informer.SharedInformerFactory, after time.Duration) error {
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(after):
	}
	for _, s := range f.Snapshot() {
		if like, err := f.Scheme().New(s.Kind); err == nil && s.Fields != nil {
			defer informer.ForObject(f, like).Release()
		}
	}
	<-ctx.Done()
	return nil
}

// exited records how the manager's Run ended, and returns a function that waits for the
// start of the next life; nil: there is none. Losing leadership does not excuse running
// goroutines, and a stop does not excuse an error, unless the process was paused during
// it.
func (p *process) exited(err error) (next func()) {
	if p.outside != nil {
		return p.outside.exited(err)
	}
	p.w.record.add(Event{What: Exited, Who: p.name, Quiet: p.isDead() || p.stops(), Text: errorText(err)})
	lost := errors.Is(err, manager.ErrLeadershipLost)
	p.mu.Lock()
	dead, stopped, starts := p.mu.dead, p.mu.stopping, p.mu.next
	p.mu.dead, p.mu.gone = dead || lost, stopped
	p.mu.Unlock()
	left := errors.Is(err, manager.ErrStillRunning)
	excused := lost && !left || left && (lost || stopped) && p.stood()
	if err != nil && !dead && !excused {
		how := "ended by itself"
		if stopped {
			how = "was asked to stop, and did not do so cleanly"
		}
		p.w.record.fail("V11", fmt.Sprintf("%s %s: %v", p.name, how, err))
	}
	switch {
	case dead:
	case lost: // ends on lost leadership, and the kubelet restarts it
		return func() { p.w.clock.rest(p.name+" kubelet", kubelets) }
	case stopped:
		return p.w.clock.faultyFor(p.name+" stopped", max(time.Until(starts), time.Millisecond))
	}
	return nil
}

// kubelets is how long a kubelet takes to restart a process.
const kubelets = time.Second

// crash ends the process like SIGKILL: what it does from now on is not recorded.
func (p *process) crash() {
	p.mu.Lock()
	p.mu.dead = true
	p.mu.Unlock()
	p.w.record.add(Event{What: Crashed, Who: p.name})
	p.eachNetwork(breakOff)
	p.end()
}

// stop asks the process to end, as SIGTERM does, once it is not held. The next life
// begins after down, or when this one has ended if that is later.
func (p *process) stop(down time.Duration) {
	p.mu.Lock()
	p.mu.stopping, p.mu.next = true, time.Now().Add(down)
	p.mu.Unlock()
	p.w.clock.group.Go(func() {
		p.Step(p.w.clock.ctx, "stop", "")
		p.end()
	})
}

func (p *process) stops() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.stopping
}

// isOver reports whether the process has crashed, or was stopped and has ended.
func (p *process) isOver() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.dead || p.mu.gone
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.dead
}

// refuse has no effect on a dead process, whose connections are refused forever.
func (p *process) refuse(refused bool) {
	if p.isDead() {
		return
	}
	p.eachNetwork(func(n *simulate.Network) { n.Refuse(refused) })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.refused = refused
}

func (p *process) hold(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := p.w.clock.within(d); until.After(p.mu.until) {
		p.mu.until, p.mu.stood = until, until
	}
}

// stood reports whether the process was held within the grace period of its manager,
// which may have expired meanwhile.
func (p *process) stood() bool {
	grace := or(p.w.cfg.Manager.GracePeriod, 30*time.Second)
	p.mu.Lock()
	last := p.mu.stood
	p.mu.Unlock()
	if world := p.w.clock.stood(); world.After(last) {
		last = world
	}
	return time.Since(last) < grace
}

func (p *process) heal() {
	p.mu.Lock()
	p.mu.until, p.mu.wrong = time.Time{}, 0
	p.mu.Unlock()
	p.next.clear()
	p.eachNetwork(func(n *simulate.Network) {
		n.Delay(0)
	})
	p.part(false)
	p.refuse(false)
}

// part loses all that is sent on connections that are made from now on, or ends that.
func (p *process) part(parted bool) {
	p.eachNetwork(func(n *simulate.Network) { n.BlackHoleNew(parted) })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.parted = parted
}

func (p *process) eachNetwork(do func(*simulate.Network)) {
	do(p.network)
	do(p.inbound)
}

// heldUntil returns until when it is held; a past time: it is not. A crashed process is
// not held: its connections break at once.
func (p *process) heldUntil() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.dead {
		return time.Time{}
	}
	if world := p.w.clock.heldUntil(); world.After(p.mu.until) {
		return world
	}
	return p.mu.until
}

// pending are the faults of the next reconciles and handler calls, in order.
type pending struct {
	mu struct {
		sync.Mutex
		mishaps []mishap
		stalls  []time.Duration
	}
}

func (n *pending) misbehave(m mishap) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.mishaps = append(n.mu.mishaps, m)
}

func (n *pending) mishap() (m mishap) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.mu.mishaps) > 0 {
		m, n.mu.mishaps = n.mu.mishaps[0], n.mu.mishaps[1:]
	}
	return m
}

func (n *pending) stall(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.stalls = append(n.mu.stalls, d)
}

// stalled returns how long the current handler call waits.
func (n *pending) stalled() (d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.mu.stalls) > 0 {
		d, n.mu.stalls = n.mu.stalls[0], n.mu.stalls[1:]
	}
	return d
}

func (n *pending) clear() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.mishaps, n.mu.stalls = nil, nil
}

func (p *process) logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		p.record(Event{What: Logged, Text: prefix + args})
	}, funcr.Options{})
}

// record records e, unless the process is dead.
func (p *process) record(e Event) {
	if !p.isDead() {
		e.Who = p.name
		p.w.record.add(e)
	}
}

// snapshot returns the manager's snapshot; ok: there is a manager.
func (p *process) snapshot() (s manager.Snapshot, ok bool) {
	p.mu.Lock()
	m := p.manager
	p.mu.Unlock()
	if m == nil {
		return s, false
	}
	return m.Snapshot(), true
}

// asked keeps a request of a reconcile and its result, to explain a key that never
// comes to rest.
func (p *process) asked(r *http.Request, answer *http.Response, err error) {
	t := contextvalues.TaskOf(r.Context())
	if t == nil {
		return
	}
	controller, key := t.Name()
	how := errorText(err)
	if err == nil {
		how = fmt.Sprint(answer.StatusCode)
	}
	path := r.URL.Path
	if r.URL.RawQuery != "" {
		path += "?" + r.URL.RawQuery
	}
	wrote := r.Method != http.MethodGet && err == nil && answer.StatusCode < http.StatusMultipleChoices
	line := fmt.Sprintf("%12s %s %s: %s", time.Since(p.w.clock.start), r.Method, path, how)
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.mu.busy[keyed{controller, key}]
	if a == nil {
		return
	}
	a.wrote = a.wrote || wrote
	if len(a.asked) == kept {
		a.asked = slices.Delete(a.asked, 0, 1)
	}
	a.asked = append(a.asked, line)
}

const kept = 6
