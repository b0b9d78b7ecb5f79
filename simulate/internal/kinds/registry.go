// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Registry holds the kinds that a server serves, by kind and by resource. It is
// safe for concurrent use.
type Registry struct {
	mu struct {
		sync.RWMutex
		kinds    map[schema.GroupVersionKind]*Kind
		families map[schema.GroupResource]*Family
	}
}

// NewRegistry returns a registry of the built-in kinds.
func NewRegistry() *Registry {
	r := &Registry{}
	r.mu.kinds = map[schema.GroupVersionKind]*Kind{}
	r.mu.families = map[schema.GroupResource]*Family{}
	r.installBuiltins()
	return r
}

// installBuiltins installs the built-in kinds. Of a resource with several versions, the
// first in the table is the storage version. The two groups of Events are versions of one
// resource, stored as the older one.
func (r *Registry) installBuiltins() {
	for _, kind := range builtins() {
		k := kind.Completed()
		f := FamilyOf(k)
		if old := r.Family(k.GroupResource()); old != nil {
			f.Versions, f.Storage = append(old.Versions, k), old.Storage
		}
		r.Install(f)
	}
	events := FamilyOf(r.Stored(coreEvents), r.Stored(laterEvents))
	events.Convert = convertEvent
	r.Remove(laterEvents)
	r.Install(events)
	r.alias(laterEvents, events)
	r.Family(autoscalers).Convert = convertAutoscaler
}

// alias serves a family under the name of another resource too.
func (r *Registry) alias(as schema.GroupResource, f *Family) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.families[as] = f
}

// Install serves kinds as the versions of one resource and replaces the previous ones. The
// first is preferred; Storage is the stored one.
func (r *Registry) Install(f *Family) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.removeLocked(f.Resource)
	r.mu.families[f.Resource] = f
	for _, k := range f.Versions {
		k.Family = f
		if !k.Unserved {
			r.mu.kinds[k.GroupVersionKind] = k
		}
	}
}

// Remove stops serving a resource.
func (r *Registry) Remove(of schema.GroupResource) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.removeLocked(of)
}

func (r *Registry) removeLocked(of schema.GroupResource) {
	old := r.mu.families[of]
	if old == nil {
		return
	}
	for _, k := range old.Versions {
		delete(r.mu.kinds, k.GroupVersionKind)
	}
	delete(r.mu.families, of)
}

// Terminate records whether the CRD of a family is being deleted.
func (r *Registry) Terminate(f *Family, terminating bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f.Terminating = terminating
}

// Terminating reports whether the CRD of a resource is being deleted, and
// whether the resource is served at all.
func (r *Registry) Terminating(of schema.GroupResource) (terminating, served bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	f := r.mu.families[of]
	return f != nil && f.Terminating, f != nil
}

// Kind returns the kind of a name, or nil if it is not served.
func (r *Registry) Kind(gvk schema.GroupVersionKind) *Kind {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.mu.kinds[gvk]
}

// Family returns a resource in all its versions, or nil if it is not served.
func (r *Registry) Family(of schema.GroupResource) *Family {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.mu.families[of]
}

// Stored returns the storage version of a resource, or nil if it is not served.
func (r *Registry) Stored(of schema.GroupResource) *Kind {
	if f := r.Family(of); f != nil {
		return f.Storage
	}
	return nil
}

// Held returns the resource under which the objects of another are stored.
func (r *Registry) Held(of schema.GroupResource) schema.GroupResource {
	if f := r.Family(of); f != nil {
		return f.Resource
	}
	return of
}

// Lookup returns the kind of a path, or nil if there is none.
func (r *Registry) Lookup(gv schema.GroupVersion, resource string) *Kind {
	f := r.Family(schema.GroupResource{Group: gv.Group, Resource: resource})
	if f == nil {
		return nil
	}
	for _, k := range f.Versions {
		if k.GroupVersion() == gv && !k.Unserved {
			return k
		}
	}
	return nil
}

// Served returns the kinds for which asked is true, in no order.
func (r *Registry) Served(asked func(*Kind) bool) (out []*Kind) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, k := range r.mu.kinds {
		if asked(k) {
			out = append(out, k)
		}
	}
	return out
}

// Resources returns all served resources, in no order.
func (r *Registry) Resources() []schema.GroupResource {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Collect(maps.Keys(r.mu.families))
}

// AnswersFor reports whether a version of a group has kinds that are not defined by CRDs,
// or has no kinds while others of its group have such. In both cases an absent resource is
// answered with a Status.
func (r *Registry) AnswersFor(gv schema.GroupVersion) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	known, builtin := false, false
	for _, k := range r.mu.kinds {
		switch {
		case k.Group != gv.Group:
		case k.Version != gv.Version:
			builtin = builtin || !k.Custom()
		case !k.Custom():
			return true
		default:
			known = true
		}
	}
	return builtin && !known
}
