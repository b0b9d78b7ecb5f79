// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

// OfFactory reports whether a SharedInformerFactory runs the informer. Its own
// Run is an error then.
func (i *SharedInformer[T]) OfFactory() bool { return i.core.shared }

// Ended is closed when the informer's run has ended: nothing new is stored any
// more, while what is stored can still be read.
func (i *SharedInformer[T]) Ended() <-chan struct{} { return i.core.ended }

// Reached is the resourceVersion that the store has reached in every scope of
// this handle, the lowest of several. It is 0 before the first lists, and where
// resourceVersions are not numbers.
func (i *SharedInformer[T]) Reached() Version {
	var lowest Version
	for n, scope := range i.scopes {
		v := i.core.indexer.reached(scope)
		if n == 0 || v < lowest {
			lowest = v
		}
	}
	return lowest
}
