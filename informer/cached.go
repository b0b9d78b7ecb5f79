// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/internal/compact"
	"github.com/flyball-dev/flyball/kube"
)

// Cached returns what an informer of the factory holds of key: an object of the Go type of
// like, of any type if that is nil, and of exactly that kind. It is shared, and must not be
// modified. Nil: there is no such informer, it does not hold the object, the effect of an own
// write on it is unknown, or one of its watches is not live. Cached starts no informer, asks no
// server and does not block.
func (f *SharedInformerFactory) Cached(kind schema.GroupVersionKind, key kube.Key, like kube.Object) kube.Object {
	t := reflect.TypeOf(like)
	f.mu.Lock()
	order := f.mu.order // copied on removal
	f.mu.Unlock()
	for _, c := range order {
		if (like == nil || c.object == t) && c.gvk() == kind {
			return cachedIn(c, key)
		}
	}
	return nil
}

// FieldOwners returns the managedFields that an object had at a version, as the server has sent them
// to one of the factory's informers. Nil: they are not known. Informers keep them from the first call
// for the object on, for ten minutes after the last, of four objects of a kind, and four states of
// each. A server that supports it is asked not to send them. FieldOwners does not block.
func (f *SharedInformerFactory) FieldOwners(kind schema.GroupKind, key kube.Key, version kube.Version) (owners []metav1.ManagedFieldsEntry) {
	for _, c := range f.cores() {
		if c.gvk().GroupKind() != kind {
			continue
		}
		if found := c.owners.Of(key, version); found != nil {
			owners = found
		}
	}
	return owners
}

func cachedIn(c *core, key kube.Key) kube.Object {
	select {
	case <-c.ended:
		return nil // it follows the server no more
	default:
	}
	for _, w := range c.critical.watchedNow() {
		if r := c.critical.reflectorOf(w); r == nil || !r.IsLive() {
			return nil
		}
	}
	if c.writes.settler.Has(key) { // before the read: what settles it may be stored after
		return nil
	}
	c.usage.touch()
	obj, _, err := c.indexer.Get(key)
	if err != nil {
		return nil
	}
	if obj, err = compact.Open(obj); err != nil {
		return nil
	}
	return obj
}
