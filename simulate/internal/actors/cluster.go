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

// Reference names a stored object.
type Reference struct {
	schema.GroupResource
	types.NamespacedName
}

// String returns a text that is unique for each reference.
func (r Reference) String() string {
	return r.GroupResource.String() + " " + r.NamespacedName.String()
}

// Cluster is the API server as actors see it. Each write names its field manager.
type Cluster interface {
	// Get returns a stored object, or nil.
	Get(about Reference) *object.Object
	// Kind returns the resource of a kind, and whether it is namespaced. served is false
	// for kinds that the server does not serve.
	Kind(gvk schema.GroupVersionKind) (r schema.GroupResource, namespaced, served bool)
	// Stored returns the version in which a resource is stored. served is false for
	// resources that the server does not serve.
	Stored(r schema.GroupResource) (gv schema.GroupVersion, served bool)
	// Observe calls see for each stored object, as if it were created now, and then for
	// each change, in order. It calls see under a lock: see must neither block nor use the
	// cluster. leave ends the calls.
	Observe(see func(revisions.Change)) (leave func())
	// Wait blocks until done returns true, until a time (zero: no limit), or until ctx
	// ends. It calls done under the lock of Observe.
	Wait(ctx context.Context, until time.Time, done func() bool)
	// Due takes note of when the next step is due; zero: none is planned. It is called under
	// the lock of Observe.
	Due(at time.Time)

	// Create stores a new object, with its defaults.
	Create(ctx context.Context, manager string, r schema.GroupResource, typed metav1.Object) (*object.Object, error)
	// Update replaces an object, or part of it by a subresource, with what edit returns. It
	// calls edit again if the object has changed in the meantime.
	Update(ctx context.Context, manager string, about Reference, subresource string, edit func(old *object.Object) (*object.Object, error)) (*object.Object, error)
	// Bind binds a Pod to a node.
	Bind(ctx context.Context, manager string, about Reference, node string) error
	// Delete deletes an object.
	Delete(ctx context.Context, manager string, about Reference, opts *metav1.DeleteOptions) error
}
