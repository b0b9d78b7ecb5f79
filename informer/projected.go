// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/informer/internal/compact"
	"github.com/flyball-dev/flyball/informer/internal/fields"
	"github.com/flyball-dev/flyball/internal/origin"
	"github.com/flyball-dev/flyball/kube"
)

// Projected reports whether obj may be a copy of an object of which an informer
// of the factory keeps, or has kept, only the Fields of some Scope, and returns
// these. Written whole, it would remove the other fields from the server. An
// object without uid and resourceVersion is new, and one with managedFields was
// read from the server. Projected compares identities and does not block.
func (f *SharedInformerFactory) Projected(kind schema.GroupVersionKind, obj kube.Object) (kept []string, projected bool) {
	if !f.narrow.any() || len(obj.GetManagedFields()) > 0 || obj.GetUID() == "" && obj.GetResourceVersion() == "" {
		return nil, false
	}
	t := reflect.TypeOf(obj)
	var other *fields.Set // of another Go type
	own, foreign := false, false
	for _, id := range f.narrow.ids() {
		if f.kindOfID(id).GroupKind() != kind.GroupKind() {
			continue
		}
		set, _ := f.narrow.of(id)
		if id.object == t {
			if f.mayHaveGiven(id, obj) {
				return set.Paths(), true
			}
			own = true
			continue
		}
		other, foreign = set, true
	}
	if own || !foreign {
		return nil, false
	}
	for _, c := range f.cores() {
		if c.object == t && c.gvk().GroupKind() == kind.GroupKind() {
			return nil, false // it keeps all fields, and obj is of its type
		}
	}
	return other.Paths(), true
}

func (f *SharedInformerFactory) kindOfID(id coreID) schema.GroupVersionKind {
	if kind, ok := f.resolver.KindOf(id.target()); ok {
		return kind
	}
	return id.named()
}

// mayHaveGiven reports whether the informer of id, which has kept only some
// fields, may have given obj to a reader then.
func (f *SharedInformerFactory) mayHaveGiven(id coreID, obj kube.Object) bool {
	c := f.existing(id)
	if c == nil {
		return true
	}
	narrow, whole := lastNarrow(c)
	switch version := obj.GetResourceVersion(); {
	case !whole || version == "":
		return true
	case kube.ParseVersion(version) > narrow:
		return false
	}
	held, _, _ := c.indexer.Get(kube.KeyOf(obj))
	if held == nil || held.GetResourceVersion() != obj.GetResourceVersion() {
		return true // not every write carries the version, so the server may accept it
	}
	open, err := compact.Open(held)
	return err != nil || !origin.Same(open, obj)
}

func (f *SharedInformerFactory) existing(id coreID) *core {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.informers[id]
}
