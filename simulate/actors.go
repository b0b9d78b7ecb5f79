// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/simulate/internal/access"
	"github.com/flyball-dev/flyball/simulate/internal/actors"
	"github.com/flyball-dev/flyball/simulate/internal/defaults"
	"github.com/flyball-dev/flyball/simulate/internal/kinds"
	"github.com/flyball-dev/flyball/simulate/internal/object"
	"github.com/flyball-dev/flyball/simulate/internal/revisions"
	"github.com/flyball-dev/flyball/simulate/internal/write"
)

// Actors are the programs of a cluster besides the API server. The zero value runs none.
type Actors struct {
	// GarbageCollector deletes objects that have lost all their owners, and completes
	// foreground and orphaning deletions.
	GarbageCollector bool
	// Namespaces empties and removes deleted namespaces. It creates the ServiceAccount
	// "default" and the ConfigMap "kube-root-ca.crt" in the others.
	Namespaces bool
	// Workloads lets Deployments, ReplicaSets, StatefulSets, DaemonSets and Jobs run Pods,
	// and gives Services their EndpointSlices. With it, Pods runs too.
	Workloads bool
	// Pods lets Pods become ready, complete and end, gives them nodes, and protects their
	// claims. Alone it is for programs that are themselves controllers of workloads.
	Pods bool
	// Delay is the longest delay of one step. Each delay is drawn from the server's seed.
	// 0: 50 ms.
	Delay time.Duration
	// Statuses stand in for the controllers of other kinds. Nil: nothing does.
	Statuses *Statuses
}

// Statuses are what is written to the status of all objects of a kind, whenever they change: the fields of JSON. A
// field observedGeneration gets the generation of the object. One that the server refuses is tried again when the object
// changes: see StatusRefused.
type Statuses map[schema.GroupKind]map[string]any

// StatusRefused is the reason of the Event about an object whose status of Statuses the server refuses.
const StatusRefused = actors.StatusRefused

// RunActors runs actors on the server's objects until ctx ends. Their writes pass admission
// like those of other clients, but not the network, and faults of requests do not affect
// them. The time of a step depends on its object, on the number of steps before it for the
// same object, and on the server's seed. RunActors returns an error only for invalid
// options.
func (s *Server) RunActors(ctx context.Context, opts Actors) error {
	all := actors.Options{GarbageCollector: opts.GarbageCollector, Namespaces: opts.Namespaces, Workloads: opts.Workloads, Pods: opts.Pods, Delay: opts.Delay}
	if opts.Statuses != nil {
		all.Statuses = *opts.Statuses
	}
	return actors.Run(ctx, actorCluster{s}, s.seed, all)
}

// ActorsDue returns when the actors of RunActors take their next step: a time in the past while they have work. Zero:
// they have nothing to do until something changes.
func (s *Server) ActorsDue() time.Time {
	if at := s.actorsDue.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// actorCluster is the server as its actors see it.
type actorCluster struct{ server *Server }

func (c actorCluster) Get(about actors.Reference) *object.Object {
	return c.server.store.Get(about.GroupResource, about.NamespacedName)
}

func (c actorCluster) Kind(gvk schema.GroupVersionKind) (r schema.GroupResource, namespaced, served bool) {
	kind := c.server.kinds.Kind(gvk)
	if kind == nil {
		return r, false, false
	}
	return kind.GroupResource(), kind.Namespaced, true
}

func (c actorCluster) Stored(r schema.GroupResource) (gv schema.GroupVersion, served bool) {
	kind := c.server.kinds.Stored(r)
	if kind == nil {
		return gv, false
	}
	return kind.GroupVersion(), true
}

func (c actorCluster) Observe(see func(revisions.Change)) (leave func()) {
	return c.server.store.Observe(see)
}

func (c actorCluster) Wait(ctx context.Context, until time.Time, done func() bool) {
	c.server.store.Wait(ctx, until, done)
}

func (c actorCluster) Due(at time.Time) {
	if at.IsZero() {
		c.server.actorsDue.Store(0)
		return
	}
	c.server.actorsDue.Store(at.UnixNano())
}

// request returns a write of an actor as a client would ask for it.
func (c actorCluster) request(manager, verb string, about actors.Reference, subresource string) (*write.Request, error) {
	kind := c.server.kinds.Stored(about.GroupResource)
	if kind == nil {
		return nil, apierrors.NewNotFound(about.GroupResource, about.Name)
	}
	return &write.Request{
		Verb: verb, User: access.User{Name: "system:" + manager, Groups: []string{access.GroupMasters, access.GroupAuthenticated}},
		Kind: kind, Namespace: about.Namespace, Name: about.Name, Subresource: subresource, Manager: manager,
	}, nil
}

func (c actorCluster) Create(ctx context.Context, manager string, r schema.GroupResource, typed metav1.Object) (*object.Object, error) {
	q, err := c.request(manager, "create", actors.Reference{GroupResource: r}, "")
	if err != nil {
		return nil, err
	}
	q.Namespace = typed.GetNamespace()
	made, ok := typed.(runtime.Object)
	if !ok {
		return nil, fmt.Errorf("create a %T", typed)
	}
	defaults.Set(made)
	obj, err := kinds.ObjectOfTyped(q.Kind, made)
	if err != nil {
		return nil, err
	}
	if metadata, _ := obj.Fields["metadata"].(map[string]any); metadata["creationTimestamp"] == nil {
		delete(metadata, "creationTimestamp")
	}
	return c.server.writes.Create(ctx, q, obj)
}

func (c actorCluster) Update(ctx context.Context, manager string, about actors.Reference, subresource string, edit func(old *object.Object) (*object.Object, error)) (*object.Object, error) {
	q, err := c.request(manager, "update", about, subresource)
	if err != nil {
		return nil, err
	}
	obj, _, err := c.server.writes.Change(ctx, q, false, func(old *object.Object) (*object.Object, error) {
		obj, err := edit(old)
		if err != nil || object.Same(old, obj) {
			return obj, err
		}
		return obj, q.Own(old, obj)
	})
	return obj, err
}

func (c actorCluster) Bind(ctx context.Context, manager string, about actors.Reference, node string) error {
	q, err := c.request(manager, "create", about, "binding")
	if err != nil {
		return err
	}
	return c.server.writes.Assign(ctx, q, &corev1.Binding{Target: corev1.ObjectReference{Name: node}})
}

func (c actorCluster) Delete(ctx context.Context, manager string, about actors.Reference, opts *metav1.DeleteOptions) error {
	q, err := c.request(manager, "delete", about, "")
	if err != nil {
		return err
	}
	_, _, err = c.server.writes.Delete(ctx, q, opts)
	return err
}
