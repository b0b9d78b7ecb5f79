// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/nursery"
)

// core is the one informer of a kind that all its handles share: one
// Reflector per scope feeds the DeltaFIFO, dispatch takes from it, stores, and
// tells the listeners.
type core[T Object] struct {
	kind    schema.GroupVersionKind
	opts    Options
	log     logr.Logger
	shared  bool          // a factory runs it
	ended   chan struct{} // closed when dispatch has ended
	fifo    *DeltaFIFO[T]
	indexer *Indexer[T]
	group   nursery.Nursery

	newListerWatcher func(WatchScope) (ListerWatcher[T], error)
	namespaced       func() (namespaced, known bool)
	resource         func() schema.GroupResource
	learned          func() (schema.GroupVersionKind, bool) // the kind, where only the resource was given
	convert          func(Object) (T, error)                // any representation to a T that shares nothing

	// critical is held while changes go into the Indexer and on to the backlogs,
	// so that every handler learns of them in the order they were stored.
	// Inside of it the Indexer's and the listeners' locks are taken, never the
	// other way round.
	critical struct {
		sync.Mutex
		members []*member[T]
		synced  map[ScopeID]bool
		waits   []*syncWait
	}
	mu struct {
		sync.Mutex
		scopes     []WatchScope // by ScopeID
		matchers   []matcher
		reflectors []*Reflector[T]
		transform  func(T) (T, error)
		onError    func(context.Context, error)
		started    bool
		handlers   int
		err        error // the first misuse, returned by run
	}
}

func newCore[T Object](kind schema.GroupVersionKind, opts Options, lw func(WatchScope) (ListerWatcher[T], error)) *core[T] {
	c := &core[T]{
		kind:             kind,
		opts:             opts,
		log:              opts.Logger.WithValues("kind", kind.Kind),
		ended:            make(chan struct{}),
		indexer:          NewIndexer[T](kind),
		newListerWatcher: lw,
		namespaced:       func() (bool, bool) { return false, false },
		learned:          func() (schema.GroupVersionKind, bool) { return kind, true },
		resource: func() schema.GroupResource {
			return schema.GroupResource{Group: kind.Group, Resource: strings.ToLower(kind.Kind)}
		},
		convert: func(obj Object) (T, error) {
			if typed, ok := obj.(T); ok {
				return Copy(typed), nil
			}
			var none T
			return none, errors.New("another representation")
		},
	}
	c.fifo = NewDeltaFIFO[T](c.indexer)
	c.critical.synced = make(map[ScopeID]bool)
	_ = c.group.Go(c.dispatch)
	return c
}

// end says that the informer is never to run: what joins is told so.
func (c *core[T]) end() {
	c.group.End()
	close(c.ended)
}

// gvk is the kind of the objects. Of an informer of a resource it is known once
// discovery has told it; before, the resource stands in.
func (c *core[T]) gvk() schema.GroupVersionKind {
	if kind, ok := c.learned(); ok {
		return kind
	}
	return c.kind
}

// misuse is what run returns or has returned.
func (c *core[T]) misuse() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.err
}

// run lets everything that has joined, and joins meanwhile, live until ctx
// ends.
func (c *core[T]) run(ctx context.Context) error {
	c.mu.Lock()
	err := c.mu.err
	c.mu.started = true
	c.mu.Unlock()
	if err != nil {
		return err
	}
	return c.group.Run(logr.NewContext(ctx, c.log))
}

// handle is a view on the core over scopes; scopes that nobody watches yet get
// a Reflector each. misuse is of the kind. A handle with misuse never syncs.
func (c *core[T]) handle(scopes []WatchScope, misuse error) *SharedInformer[T] {
	i := &SharedInformer[T]{core: c, err: misuse}
	c.mu.Lock()
	for _, s := range scopes {
		if i.err != nil {
			break
		}
		var id ScopeID
		if id, i.err = c.scopeLocked(s); i.err == nil {
			i.scopes = append(i.scopes, id)
		}
	}
	if c.mu.err == nil && !c.mu.started {
		c.mu.err = i.err // a mistake made during the run costs its own handle alone
	}
	c.mu.Unlock()
	if i.err != nil {
		i.scopes, i.synced = nil, make(chan struct{})
		return i
	}
	slices.Sort(i.scopes)
	i.synced = c.waitFor(i.scopes)
	return i
}

// scopeLocked is the number of scope s, with a Reflector that feeds it.
func (c *core[T]) scopeLocked(s WatchScope) (ScopeID, error) {
	if id := slices.Index(c.mu.scopes, s); id >= 0 {
		return ScopeID(id), nil
	}
	m, err := newMatcher(s)
	if err != nil {
		return 0, c.errorf("%w", err)
	}
	lw, err := c.newListerWatcher(s)
	if err != nil {
		return 0, c.errorf("watch %s: %w", s, err)
	}
	id := ScopeID(len(c.mu.scopes))
	told := telling[T]{ListerWatcher: lw, tell: c.tell}
	r := newReflector(transforming[T]{ListerWatcher: told, transform: c.transform}, s, id, c.fifo, c.optionsOf(lw))
	c.mu.scopes = append(c.mu.scopes, s)
	c.mu.matchers = append(c.mu.matchers, m)
	c.mu.reflectors = append(c.mu.reflectors, r)
	c.indexer.begin(id)
	if err := c.group.Go(r.Run); err != nil {
		r.status.stopped() // the run has ended before
	}
	return id, nil
}

// transform is the transform of the kind. It stays the same once the run has
// begun, so it is asked for once per list and watch.
func (c *core[T]) transform() func(T) (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.transform == nil {
		return func(obj T) (T, error) { return obj, nil }
	}
	return c.mu.transform
}

func (c *core[T]) setTransform(f func(T) (T, error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.started {
		return c.errorf("set transform: the informer has started, and objects are stored already; set it before")
	}
	c.mu.transform = f
	return nil
}

func (c *core[T]) whenPassed(key Key, than Version, do func()) (stop func()) {
	return c.indexer.whenPassed(key, than, do)
}

// lister reads what the given scopes hold.
func (c *core[T]) lister(scopes []ScopeID, synced <-chan struct{}) Lister[T] {
	return newLister(view[T]{
		store:  c.indexer,
		scopes: scopesOf(scopes...),
		covers: c.covers(scopes),
		synced: func() bool {
			select {
			case <-synced:
				return true
			default:
				return false
			}
		},
		resource: c.resource,
	})
}

// covers says whether a namespace is watched by one of the scopes; nil: each is.
func (c *core[T]) covers(scopes []ScopeID) func(namespace string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	namespaces := make(map[string]bool)
	for _, id := range scopes {
		namespaces[c.mu.scopes[id].Namespace] = true
	}
	if namespaces[""] {
		return nil
	}
	return func(namespace string) bool {
		if namespaced, known := c.namespaced(); known && !namespaced {
			return true
		}
		return namespaces[namespace]
	}
}

func (c *core[T]) snapshot() Snapshot {
	c.mu.Lock()
	reflectors := slices.Clone(c.mu.reflectors)
	c.mu.Unlock()
	s := c.indexer.snapshot()
	s.Synced, s.Waiting = true, c.fifo.Len()
	c.critical.Lock()
	synced := maps.Clone(c.critical.synced)
	members := slices.Clone(c.critical.members)
	c.critical.Unlock()
	for id, r := range reflectors {
		state := r.State()
		state.Synced = synced[ScopeID(id)]
		s.Synced = s.Synced && state.Synced
		s.Scopes = append(s.Scopes, state)
	}
	for _, l := range members {
		s.Handlers = append(s.Handlers, l.snapshot())
	}
	return s
}
