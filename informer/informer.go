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

	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
)

// SharedInformer is a handle on the one informer of a kind: one watch per scope
// serves all handles, handlers and Listers. It sees the objects of its own
// scopes. Safe for concurrent use.
type SharedInformer[T kube.Object] struct {
	core   *core
	handle *handle
	err    error // misuse at creation
}

// New returns an informer fed by lw that is not shared. The caller runs it.
// After the run it calls the method CloseIdleConnections of lw, if there is
// one. T is a pointer to an API type; if the type is known only at run time,
// use NewForObject. An interface as T is misuse, returned by Run.
func New[T kube.Object](lw listwatch.ListerWatcher[T], kind schema.GroupVersionKind, opts Options) *SharedInformer[T] {
	return newFor(reflect.TypeFor[T](), lw, kind, opts)
}

// NewForObject is New for a type that is known only at run time: lw returns
// objects of like's type, and own writes are converted to it. Only the type of
// like is used. A nil like is misuse, returned by Run.
func NewForObject(lw listwatch.ListerWatcher[kube.Object], like kube.Object, kind schema.GroupVersionKind, opts Options) *SharedInformer[kube.Object] {
	t := reflect.TypeOf(like)
	if t == nil {
		t = reflect.TypeFor[kube.Object]()
	}
	return newFor(t, lw, kind, opts)
}

// newFor returns an informer of objects of type object, fed by lw.
func newFor[T kube.Object](object reflect.Type, lw listwatch.ListerWatcher[T], kind schema.GroupVersionKind, opts Options) *SharedInformer[T] {
	c := newCore(object, kind, opts, func(listwatch.Scope) (listwatch.ListerWatcher[kube.Object], error) {
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

// Logger returns the Logger of the Options with the kind, for code built on the
// informer.
func (i *SharedInformer[T]) Logger() logr.Logger { return i.core.log }

// Kind returns the kind of the objects. For an informer of ForResource that is
// the resource until the server's discovery has answered.
func (i *SharedInformer[T]) Kind() schema.GroupVersionKind { return i.core.gvk() }

// Namespaced reports whether the kind is namespaced. It is known once the
// server's discovery has answered.
func (i *SharedInformer[T]) Namespaced() (namespaced, known bool) { return i.core.namespaced() }

// Discover asks the server's discovery what Namespaced reports, unless that is
// known. It blocks until the server answers or ctx ends, also before Run. The
// error is a *NotServedError if the server does not serve the kind. An informer
// of New, which has no discovery, returns nil at once.
func (i *SharedInformer[T]) Discover(ctx context.Context) error {
	if i.core.discover == nil {
		return nil
	}
	_, err := i.core.discover(ctx)
	return err
}

// Lister returns the read interface. Its objects are shared and read-only. Each
// read covers the scopes that the handle has at that time.
func (i *SharedInformer[T]) Lister() Lister[T] {
	l := newLister[T](i.core.indexer, i.core.resource, i.core.namespaced, &i.handle.view, i.core.guard, &i.core.writes.settler.unsettledKeys)
	l.v.usage = &i.core.usage
	if i.core.settings.compact().WhenFull {
		l.v.packing = &i.core.packing
	}
	return l
}

// AddHandler calls handle with every change from now on, starting with the
// present objects as Added. It may be called at any time. The calls come one at
// a time from the handler's own goroutine, so a slow handler delays no other.
// The handler ends with this handle. It is an error if handle is nil, if the
// informer has misuse or was released, or if its run has ended.
func (i *SharedInformer[T]) AddHandler(handle func(kube.Event[T]), opts HandlerOptions) (*Registration, error) {
	if err := i.Err(); err != nil {
		return nil, err
	}
	if handle == nil {
		return nil, i.core.errorf("add handler %q: the function is nil; give one that takes an kube.Event", opts.Name)
	}
	return i.handle.join(func(e kube.Event[kube.Object]) { handle(eventAs[T](e)) }, opts)
}

// AddIndex indexes every object under the values that f returns for it, for
// Lister.ByIndex. It may be called at any time, once per name. f must be a pure
// function of the object; if it panics, that object has no values. The index
// belongs to the kind and stays when this handle is released.
func (i *SharedInformer[T]) AddIndex(name string, f IndexFunc[T]) error {
	if err := i.Err(); err != nil {
		return err
	}
	if f == nil {
		return i.core.errorf("add index %q: the function is nil; give one that returns the values of an object", name)
	}
	return i.core.indexer.AddIndex(name, func(obj kube.Object) []string { return f(as[T](obj)) })
}

// SetTransform makes f modify every object before it is stored, for instance to
// drop unused fields. f owns its argument; type, name, namespace, UID and
// resourceVersion must stay. An object that f refuses, replaces by another or panics on becomes
// undecodable, its last accepted state stays in lists, and f is retried after a
// second and then at intervals that double up to five minutes. A nil f removes
// the transform. It is an error after the informer has started. The transform
// belongs to the kind and stays when this handle is released.
func (i *SharedInformer[T]) SetTransform(f func(T) (T, error)) error {
	if err := i.Err(); err != nil {
		return err
	}
	if f == nil {
		return i.core.settings.setTransform(nil)
	}
	return i.core.settings.setTransform(func(obj kube.Object) (kube.Object, error) {
		changed, err := f(as[T](obj))
		return object(changed), err
	})
}

// Observe passes an own write to the informer, so that the next read has it. It
// does not wait for handlers. A SharedInformerFactory does this for its
// informers.
func (i *SharedInformer[T]) Observe(w kube.Written) { i.core.writes.observe(w) }

// Synced is closed when the first list of every scope of this handle is stored.
// Scopes added later have a new channel. It stays open if the handle is
// released or the run ends first; Ended is then closed.
func (i *SharedInformer[T]) Synced() <-chan struct{} { return i.handle.syncedNow() }

// Snapshot returns the state of the whole informer, with the scopes and
// handlers of all handles, for metrics and debugging.
func (i *SharedInformer[T]) Snapshot() state.Informer { return i.core.snapshot() }

// Err returns the misuse that this informer remembers, a *ReleasedError after
// Release, or nil.
func (i *SharedInformer[T]) Err() error {
	if i.err != nil {
		return i.err
	}
	return i.handle.view.Load().gone
}

// Run feeds the informer until ctx ends, and returns when everything that it
// started has ended. It also ends, with nil, when the informer is released. The
// factory runs its informers: for those Run is an error, as is a second Run.
func (i *SharedInformer[T]) Run(ctx context.Context) error {
	if i.core.shared {
		return i.core.errorf("run: the informer belongs to a factory, which runs it")
	}
	defer i.core.closeIdle()
	return i.core.run(ctx)
}

func (i *SharedInformer[T]) String() string { return i.core.kind.Kind }

// OfFactory reports whether a SharedInformerFactory runs the informer, so that
// its own Run is an error.
func (i *SharedInformer[T]) OfFactory() bool { return i.core.shared }

// Release releases the handle. Its handlers are removed: no call of them begins
// after Release returns, but Release does not wait for a running one, so a
// handler may call it. Scopes that no other handle holds are no longer watched,
// and their objects leave the store. With its last handle the informer ends and
// frees its goroutines, connections and memory; a later For makes a new one. An
// informer made by New has only this handle, so its Run returns. Later reads
// and other calls return a *ReleasedError. It may be called at any time and
// more than once.
func (i *SharedInformer[T]) Release() { i.handle.release() }

// Start starts to watch the Deferred scopes of the handle, if any. It is an
// error if the handle was released or has misuse.
func (i *SharedInformer[T]) Start() error {
	if err := i.Err(); err != nil {
		return err
	}
	return i.handle.start()
}

// SetScopes makes the handle cover exactly the union of the given scopes;
// without any, the factory's namespaces. Its Listers see them at once. Its
// handlers receive objects that leave as deleted, with LeftScope, and those
// that come as added: at once if they are watched already, else when they are
// listed. It is an error, and nothing changes, if a selector does not parse, if
// the handle was released or has misuse, or if the informer was made by New,
// which covers what its ListerWatcher lists.
func (i *SharedInformer[T]) SetScopes(scopes ...Scope) error {
	if err := i.Err(); err != nil {
		return err
	}
	if !i.core.shared {
		return i.core.errorf("set scopes: it covers what its ListerWatcher lists; use an informer of a factory")
	}
	return i.handle.cover(scopes)
}

// Ended is closed when the informer has stopped or this handle was released:
// nothing new arrives. After the run, stored objects remain readable.
func (i *SharedInformer[T]) Ended() <-chan struct{} { return i.handle.ended }

// MutationDetector returns the detector that compares the informer's objects
// with copies, nil if Options.DetectMutations is off. Informers of a factory
// share one.
func (i *SharedInformer[T]) MutationDetector() *MutationDetector {
	if i.core.guard == nil {
		return nil
	}
	return shown(i.core.guard.Detector)
}

// Reached returns the resourceVersion that the store has reached in every scope
// of this handle, that is, the lowest. It is 0 before the first lists, and if
// resourceVersions are not numbers.
func (i *SharedInformer[T]) Reached() kube.Version {
	_, lowest := look(&i.handle.view, func() kube.Version {
		first, lowest := true, kube.Version(0)
		for scope := range i.handle.view.Load().scopes.All() {
			if v := i.core.indexer.Reached(scope); first || v < lowest {
				first, lowest = false, v
			}
		}
		return lowest
	})
	return lowest
}

// KeepAllFields makes the handle want all fields, regardless of the Fields of
// its scopes, for code that takes objects to be whole. The adapters for client-go
// and controller-runtime call it. If the kind has been stored with fewer fields,
// the handle is not synced, and sees no objects, until it is listed again. It is
// an error if the handle was released or has misuse.
func (i *SharedInformer[T]) KeepAllFields() error {
	if err := i.Err(); err != nil {
		return err
	}
	i.handle.keepAllFields()
	return nil
}

// KeepManagedFields keeps metadata.managedFields in the objects of this kind
// and representation, regardless of the Options. All users of the informer pay
// for the memory. It is an error after the informer has started without them.
// The setting belongs to the kind and stays when this handle is released.
func (i *SharedInformer[T]) KeepManagedFields() error {
	if err := i.Err(); err != nil {
		return err
	}
	return i.core.settings.keepManagedFields(i.handle.view.Load().fields != nil)
}

// OmitKind leaves apiVersion and kind of objects of Go types empty, as in objects that typed
// clients of client-go and controller-runtime decode, if the informer is of a factory; those of
// another ListerWatcher are as it returns them. It is an error after the informer has started. The
// setting belongs to the kind and stays when this handle is released.
func (i *SharedInformer[T]) OmitKind() error {
	if err := i.Err(); err != nil {
		return err
	}
	return i.core.settings.omitKind()
}

// Compact makes the informer hold the objects of this kind and representation
// packed, whatever Options.Compact says, for all its users. Each read decodes
// what was not read recently. It is an error if how is zero, after the informer
// has started, or if it was made compact in another way before. The setting
// belongs to the kind and stays when this handle is released.
func (i *SharedInformer[T]) Compact(how Compact) error {
	if err := i.Err(); err != nil {
		return err
	}
	return i.core.settings.makeCompact(how)
}

// SetErrorHandler calls f with each error of a list or watch, including retried
// ones; Snapshot reports the same as states. f runs in the goroutine that lists
// and watches, which waits for it. There is one per kind: the last call wins,
// and a nil f removes it. It is an error after the informer has started.
func (i *SharedInformer[T]) SetErrorHandler(f func(ctx context.Context, err error)) error {
	if err := i.Err(); err != nil {
		return err
	}
	return i.core.settings.setErrorHandler(f)
}

// Progress returns the present work of the informer.
func (i *SharedInformer[T]) Progress() Progress { return i.core.progress() }

// WaitForSync blocks until the first list of every scope of this handle is
// stored. It returns the state of the whole informer, synced or not. If ctx or
// the run ends first, or a scope has state.Misuse, the error is a *SyncError;
// misuse and a release are returned at once.
func (i *SharedInformer[T]) WaitForSync(ctx context.Context) (state.Informer, error) {
	if err := i.Err(); err != nil {
		return i.Snapshot(), fmt.Errorf("wait for sync: %w", err)
	}
	err := awaitSync(ctx, i.Synced(), i.Ended(), func() (<-chan struct{}, error) {
		return i.core.critical.misusedBy(&i.core.misuses, func(h *handle) bool { return h == i.handle })
	})
	current := i.Snapshot()
	if gone := i.Err(); err != nil && gone != nil {
		return current, fmt.Errorf("wait for sync: %w", gone)
	}
	if err != nil {
		return current, &SyncError{States: []state.Informer{current}, Err: err}
	}
	return current, nil
}
