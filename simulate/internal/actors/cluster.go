// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actors

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
)

// Reference names an object in the store.
type Reference struct {
	schema.GroupResource
	types.NamespacedName
}

// String returns a text that is unique for each reference.
func (r Reference) String() string {
	return r.GroupResource.String() + " " + r.NamespacedName.String()
}

// Cluster is the API server as actors see it: what it stores, what changes, and
// the writes that it takes. A write names its field manager.
type Cluster interface {
	// Get returns what is stored; nil: nothing.
	Get(about Reference) *object.Object
	// Kind returns the resource of a kind, and whether its objects are in
	// namespaces. It is false for kinds that are not served.
	Kind(gvk schema.GroupVersionKind) (r schema.GroupResource, namespaced, served bool)
	// Stored returns the version in which a resource is stored. It is false for
	// resources that are not served.
	Stored(r schema.GroupResource) (gv schema.GroupVersion, served bool)
	// Observe calls see for all that is stored, as if it were created now, and
	// from then on for each change, in order. see is called under a lock: it
	// must neither block nor ask the cluster for anything. leave ends the calls.
	Observe(see func(revisions.Change)) (leave func())
	// Wait blocks until done, which is called under the lock of Observe, until a
	// time (zero: for ever), or until ctx ends.
	Wait(ctx context.Context, until time.Time, done func() bool)

	// Create stores a new object, with its defaults.
	Create(ctx context.Context, manager string, r schema.GroupResource, typed metav1.Object) (*object.Object, error)
	// Update replaces an object by what edit makes of it, or part of it by a
	// subresource. It calls edit again when the object has changed meanwhile.
	Update(ctx context.Context, manager string, about Reference, subresource string, edit func(old *object.Object) (*object.Object, error)) (*object.Object, error)
	// Bind gives a Pod its node.
	Bind(ctx context.Context, manager string, about Reference, node string) error
	// Delete deletes an object.
	Delete(ctx context.Context, manager string, about Reference, opts *metav1.DeleteOptions) error
}
