// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

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

// Ended is closed when the informer's run has ended, or this handle was
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
