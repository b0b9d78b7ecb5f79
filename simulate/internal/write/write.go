// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package write takes writes of objects through the steps of a Kubernetes API server:
//
//	body ─▶ decode or patch ─▶ managed fields ─▶ mutating admission ─▶ prepare, fill
//	     ─▶ validate ─▶ built-in and validating admission ─▶ commit
//
// A Request says what a client asks for, without the protocol that it came by; a Path
// carries it out. No lock is held until the commit, which stores the object only if what it
// was made from is still stored. Otherwise the steps are repeated on what is stored now.
// A dry run goes through all steps and commits nothing.
//
// The steps that need no other package are here, as functions of their arguments: what a write
// may do to an object of its kind (prepare and validate, as the strategies of a real server's
// registry), what a DELETE does, the standards of Pod Security, warnings about objects that
// are valid but unwise, and an Allotter of what each object gets once: UIDs, the ends of
// generated names, addresses and ports, which follow from its seed and how often it was asked.
//
// The package sees kinds and the packages of the steps. It sees the rest of the server
// through the fields of a Path: what is stored, rights, and the webhooks.
package write

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/access"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/webhooks"
)

// Path carries out writes. It is safe for concurrent use.
type Path struct {
	Store     Store
	Kinds     Kinds
	Rights    Rights
	Admission Admission
	Allotter  *Allotter
	// Seen returns a stored object as a Request with Sound sees it, in the transaction in
	// which the object was read.
	Seen func(kind *kinds.Kind, obj *object.Object) *object.Object
}

// Store is where objects are kept. They are immutable.
type Store interface {
	// Get returns one object; nil: there is none.
	Get(r schema.GroupResource, key types.NamespacedName) *object.Object
	// Lists returns the objects of some resources, all at one revision.
	Lists(of ...schema.GroupResource) [][]*object.Object
	// Begin locks the store. The caller must call End.
	Begin() Tx
}

// Tx is the store with its lock held.
type Tx interface {
	// Get returns one object; nil: there is none.
	Get(r schema.GroupResource, key types.NamespacedName) *object.Object
	// Put stores an object at the next revision, and returns it with that revision.
	Put(r schema.GroupResource, obj *object.Object) *object.Object
	// Remove removes an object at the next revision, and returns its last state.
	Remove(r schema.GroupResource, key types.NamespacedName) *object.Object
	// End unlocks the store.
	End()
}

// Kinds knows what is served.
type Kinds interface {
	// Terminating reports whether a resource is served, and whether it is being deleted.
	Terminating(r schema.GroupResource) (terminating, served bool)
	// Stored returns the version in which the objects of a resource are stored.
	Stored(r schema.GroupResource) *kinds.Kind
}

// Rights decides what a user may grant.
type Rights interface {
	// Escalates refuses a write that grants more than its user has. old is nil for a create.
	Escalates(user access.User, kind *kinds.Kind, old, obj *object.Object) error
}

// Admission asks webhooks about a write.
type Admission interface {
	// Mutate replaces the object of a call with what mutating webhooks make of it.
	Mutate(ctx context.Context, call *webhooks.Call) error
	// Validate returns the refusal of a validating webhook.
	Validate(ctx context.Context, call *webhooks.Call) error
}

// Do creates, updates or patches an object, as the verb of the Request says. It returns the
// object as the answer shows it, and whether it was created.
func (p *Path) Do(ctx context.Context, q *Request) (obj *object.Object, created bool, err error) {
	switch {
	case q.Verb == "create":
		obj, err = p.create(ctx, q)
		return obj, true, err
	case q.Verb == "update":
		return p.update(ctx, q)
	case q.applies():
		return p.apply(ctx, q)
	}
	return p.patch(ctx, q)
}
