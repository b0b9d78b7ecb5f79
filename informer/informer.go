// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SharedInformer is a handle on the one informer of a kind: one watch per
// scope serves any number of handles, handlers and listers. It sees the
// objects of its own scopes. Safe for concurrent use.
type SharedInformer[T Object] struct {
	core   *core
	handle *handle
	err    error // the misuse it was made with
}

// New returns an informer that nobody shares, fed by lw. The caller runs it. If
// lw has a method CloseIdleConnections, as that of NewListerWatcher, it is called
// when the run has ended. T is a pointer to an API type; where it is known only at
// run time, take NewForObject. An interface as T is misuse that Run returns.
func New[T Object](lw ListerWatcher[T], kind schema.GroupVersionKind, opts Options) *SharedInformer[T] {
	return newFor(reflect.TypeFor[T](), lw, kind, opts)
}

// NewForObject is New where the type of the objects is known only at run time:
// lw gives objects of like's type, and own writes are read as that type. Nothing
// else of like is used. A nil like is misuse that Run returns.
func NewForObject(lw ListerWatcher[Object], like Object, kind schema.GroupVersionKind, opts Options) *SharedInformer[Object] {
	t := reflect.TypeOf(like)
	if t == nil {
		t = reflect.TypeFor[Object]()
	}
	return newFor(t, lw, kind, opts)
}

// newFor is an informer of objects of type object, fed by lw.
func newFor[T Object](object reflect.Type, lw ListerWatcher[T], kind schema.GroupVersionKind, opts Options) *SharedInformer[T] {
	c := newCore(object, kind, opts, func(WatchScope) (ListerWatcher[Object], error) {
		if lw == nil {
			return nil, errors.New("the ListerWatcher is nil; give one, for instance from NewListerWatcher")
		}
		return objectsOf(lw), nil
	})
	if lw, ok := lw.(interface{ CloseIdleConnections() }); ok {
		c.closeIdle = lw.CloseIdleConnections
	}
	if lw, ok := lw.(dividing); ok {
		c.namespaced = lw.Namespaced
	}
	var misuse error
	if object.Kind() != reflect.Pointer {
		misuse = c.errorf("informer.New for %s: the type does not say what the objects are, so own writes could not be shown; give the pointer to an API type, such as *corev1.Pod, or an object of it to informer.NewForObject", object)
	}
	h, err := c.handle([]Scope{{}}, misuse)
	return &SharedInformer[T]{core: c, handle: h, err: err}
}

// Logger is the one of the Options, with the kind, for what stands on the
// informer.
func (i *SharedInformer[T]) Logger() logr.Logger { return i.core.log }

// Kind is the kind of the informer's objects. Of ForResource it is known once
// the server's discovery has answered; before, the resource stands in.
func (i *SharedInformer[T]) Kind() schema.GroupVersionKind { return i.core.gvk() }

// Namespaced reports whether objects of the kind live in namespaces. It is
// known once the server's discovery has answered.
func (i *SharedInformer[T]) Namespaced() (namespaced, known bool) { return i.core.namespaced() }

// Lister returns the read side. What it returns is shared and read-only. It
// sees the scopes that the handle has at the time of each read.
func (i *SharedInformer[T]) Lister() Lister[T] {
	return newLister[T](i.core.indexer, i.core.resource, i.core.namespaced, &i.handle.sight, i.core.guard)
}

// AddHandler has handle called with every change from now on, first with the
// present objects as Added. It may be called at any time; the calls come one
// after the other from a goroutine of the handler's own, so a slow handler
// delays nobody else. It ends with the handle that it was added by. It is an
// error when handle is nil, when the informer has misuse or was released, and
// when its run has ended: nothing would ever be told.
func (i *SharedInformer[T]) AddHandler(handle func(Event[T]), opts HandlerOptions) (*Registration, error) {
	if err := i.Err(); err != nil {
		return nil, err
	}
	if handle == nil {
		return nil, i.core.errorf("add handler %q: the function is nil; give one that takes an informer.Event", opts.Name)
	}
	return i.core.join(func(e Event[Object]) { handle(eventAs[T](e)) }, opts, i.handle)
}

// AddIndex has every object listed under the values that f gives for it, to be
// read by Lister.ByIndex. It may be called at any time, once per name. f must
// be a pure function of the object; a panic of it costs that object's values.
// The index is the kind's: it stays when this handle is released.
func (i *SharedInformer[T]) AddIndex(name string, f IndexFunc[T]) error {
	if err := i.Err(); err != nil {
		return err
	}
	if f == nil {
		return i.core.errorf("add index %q: the function is nil; give one that returns the values of an object", name)
	}
	return i.core.indexer.AddIndex(name, func(obj Object) []string { return f(as[T](obj)) })
}

// SetTransform has f change every object before it is stored, for instance to
// drop fields that nobody reads. f owns the object it is given; name,
// namespace, UID and resourceVersion must stay. An object that f refuses or
// panics on is kept as undecodable, its last good state stays in lists, and f is
// given it again after a second, then at intervals that double up to five minutes. A nil f is none. It is an error after the
// informer started. It is the kind's, and stays when this handle is released.
func (i *SharedInformer[T]) SetTransform(f func(T) (T, error)) error {
	if err := i.Err(); err != nil {
		return err
	}
	if f == nil {
		return i.core.setTransform(nil)
	}
	return i.core.setTransform(func(obj Object) (Object, error) {
		changed, err := f(as[T](obj))
		return object(changed), err
	})
}

// Observe shows the informer an own write, so that the next read has it. It
// does not wait for handlers. A SharedInformerFactory does it for its
// informers.
func (i *SharedInformer[T]) Observe(w Written) { i.core.observe(w) }

// Synced is closed when the first list of every scope of this handle is stored.
// When scopes are added after that, there is another channel for them. It stays
// open when the handle is released, or the run ends, before: Ended is closed
// then.
func (i *SharedInformer[T]) Synced() <-chan struct{} { return i.core.syncedOf(i.handle) }

// Snapshot says where the whole informer stands, with the scopes and handlers of
// all its handles, for metrics and debugging.
func (i *SharedInformer[T]) Snapshot() Snapshot { return i.core.snapshot() }

// Err is the misuse that this informer remembers, or a *ReleasedError when it
// was released; nil if there is none.
func (i *SharedInformer[T]) Err() error {
	if i.err != nil {
		return i.err
	}
	return i.handle.sight.Load().gone
}

// Run feeds the informer until ctx ends, and returns when all that it started
// has ended. It also ends, with nil, when the informer is released. Informers of
// a factory are run by the factory; Run then is an error, as is a second Run.
func (i *SharedInformer[T]) Run(ctx context.Context) error {
	if i.core.shared {
		return i.core.errorf("run: the informer belongs to a factory, which runs it")
	}
	defer i.core.closeIdle()
	return i.core.run(ctx)
}

// String names the informer in logs and errors.
func (i *SharedInformer[T]) String() string { return i.core.kind.Kind }

func (c *core) errorf(format string, args ...any) error {
	return fmt.Errorf("informer of %s: %w", c.kind.Kind, fmt.Errorf(format, args...))
}

// OfFactory reports whether a SharedInformerFactory runs the informer. Its own
// Run is an error then.
func (i *SharedInformer[T]) OfFactory() bool { return i.core.shared }

// Release gives the handle up: its handlers are removed, and no call of them
// begins after it returns; what no other handle watches is watched no more, and
// leaves the store. With the last handle of a kind its informer ends, and gives
// its goroutines, connections and memory back; a later For makes another one.
// An informer made by New is its only handle, so its Run returns. Reads and
// whatever else is asked of a released handle answer with a *ReleasedError. It
// does not wait for a handler that is running, so a handler may call it. It may
// be called at any time and more than once.
func (i *SharedInformer[T]) Release() { i.core.release(i.handle) }

// Start has the Deferred scopes of the handle watched from now on. It does
// nothing where there are none. It is an error when the handle was released or
// has misuse.
func (i *SharedInformer[T]) Start() error {
	if err := i.Err(); err != nil {
		return err
	}
	return i.core.start(i.handle)
}

// SetScopes has the handle cover the union of the given scopes and nothing else;
// with none, the factory's namespaces. Its Listers see them at once. Its
// handlers are told what they see no more as deleted, with LeftScope, and what
// comes as added: at once where it is watched already, else when it is listed.
// It is an error, and nothing changes, when a selector does not parse, when the
// handle was released or has misuse, and of an informer made by New, which
// covers what its ListerWatcher does.
func (i *SharedInformer[T]) SetScopes(scopes ...Scope) error {
	if err := i.Err(); err != nil {
		return err
	}
	if !i.core.shared {
		return i.core.errorf("set scopes: it covers what its ListerWatcher lists; use an informer of a factory")
	}
	return i.core.cover(i.handle, scopes)
}

// Ended is closed when the informer has stopped, or this handle was
// released: it brings nothing new any more. After the run what is stored can
// still be read.
func (i *SharedInformer[T]) Ended() <-chan struct{} { return i.handle.ended }

// MutationDetector is what compares the informer's objects with copies, nil
// where Options.DetectMutations is off. Informers of a factory have the
// factory's.
func (i *SharedInformer[T]) MutationDetector() *MutationDetector {
	if i.core.guard == nil {
		return nil
	}
	return i.core.guard.MutationDetector
}

// Reached is the resourceVersion that the store has reached in every scope of
// this handle, the lowest of several. It is 0 before the first lists, and where
// resourceVersions are not numbers.
func (i *SharedInformer[T]) Reached() Version {
	first, lowest := true, Version(0)
	for scope := range i.handle.sight.Load().scopes.All() {
		if v := i.core.indexer.Reached(scope); first || v < lowest {
			first, lowest = false, v
		}
	}
	return lowest
}

// KeepManagedFields has metadata.managedFields stay in the objects of this
// kind and representation, for code that reads them, whatever the Options say.
// They cost memory, for everyone who shares the informer. It is an error after
// the informer started without them. It is the kind's, and stays when this
// handle is released.
func (i *SharedInformer[T]) KeepManagedFields() error {
	if err := i.Err(); err != nil {
		return err
	}
	return i.core.keepManagedFields()
}

func (c *core) keepManagedFields() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.started && c.mu.opened && !c.mu.managed {
		return c.errorf("keep managedFields: the informer has started, and objects are stored without them already; ask before the run or on a handle whose Scope is Deferred, or set Options.KeepManagedFields")
	}
	c.mu.managed = true
	return nil
}

// keepsManagedFields stays the same once the run has begun.
func (c *core) keepsManagedFields() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.managed
}

// SetErrorHandler has f called with each error of a list or watch, those that
// are tried again among them; State tells the same in states. f is called by
// the goroutine that lists and watches, which waits for it. There is one per
// kind: the last call wins, and a nil f is none. It is an error after the
// informer started.
func (i *SharedInformer[T]) SetErrorHandler(f func(ctx context.Context, err error)) error {
	if err := i.Err(); err != nil {
		return err
	}
	c := i.core
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.started && c.mu.opened {
		return c.errorf("set error handler: the informer has started; set it before the run, or on a handle whose Scope is Deferred")
	}
	c.mu.onError = f
	return nil
}

// Progress says what the informer has in hand.
func (i *SharedInformer[T]) Progress() Progress { return i.core.progress() }

// WaitForSync blocks until the first list of every scope of this handle is
// stored. It returns where the whole informer stands, whether it has synced or
// not. When ctx or the run ends before, the error is a *SyncError; misuse, and a
// release, are returned at once.
func (i *SharedInformer[T]) WaitForSync(ctx context.Context) (Snapshot, error) {
	if err := i.Err(); err != nil {
		return i.Snapshot(), fmt.Errorf("wait for sync: %w", err)
	}
	err := awaitSync(ctx, i.Synced(), i.Ended())
	state := i.Snapshot()
	if gone := i.Err(); err != nil && gone != nil {
		return state, fmt.Errorf("wait for sync: %w", gone)
	}
	if err != nil {
		return state, &SyncError{States: []Snapshot{state}, Err: err}
	}
	return state, nil
}
