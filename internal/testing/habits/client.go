// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package habits

import (
	"context"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	appsac "k8s.io/client-go/applyconfigurations/apps/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// Client is what a habit reads and writes with.
type Client interface {
	// Child reads from the cache.
	Child(ctx context.Context, key kube.Key) (*corev1.ConfigMap, error)
	Create(ctx context.Context, obj kube.Object) error
	Update(ctx context.Context, obj kube.Object) error
	// UpdateElsewhere updates by a client of its own, made from the manager's configuration.
	UpdateElsewhere(ctx context.Context, obj kube.Object) error
	UpdateStatus(ctx context.Context, obj kube.Object) error
	// Patch and PatchStatus are merge patches.
	Patch(ctx context.Context, obj kube.Object, patch string) error
	PatchStatus(ctx context.Context, obj kube.Object, patch string) error
	// PatchChanges patches object and status by their differences.
	PatchChanges(ctx context.Context, from, to kube.Object) error
	SetFinalizers(ctx context.Context, obj kube.Object, finalizers []string) error
	Apply(ctx context.Context, child *corev1.ConfigMap, ifChanged bool) error
	ApplyStatus(ctx context.Context, d *appsac.DeploymentApplyConfiguration) error
	CreateOrUpdate(ctx context.Context, child *corev1.ConfigMap) error
	// Delete names UID and version where they are not empty.
	Delete(ctx context.Context, obj kube.Object, uid, version string) error
	// ApplyChildren has these children, and no others.
	ApplyChildren(ctx context.Context, d *appsv1.Deployment, children ...kube.Object) error
}

// Add adds a controller for the habits to mgr, by reconcile.For or reconcile.New.
func Add(mgr *manager.Manager, byNew bool, opts reconcile.Options) error {
	deployments := informer.For[*appsv1.Deployment](mgr.Informers())
	maps := informer.For[*corev1.ConfigMap](mgr.Informers())
	other, err := client.New(mgr.Config(), mgr.Scheme(), client.Options{FieldOwner: "habits"})
	if err != nil {
		return err
	}
	children := reconcile.NewChildSet(mgr.Client(), mgr.Scheme(),
		[]reconcile.ChildKind{reconcile.Children(maps)}, reconcile.ChildSetOptions{FieldOwner: "habits"})
	f := flyball{mgr.Client().With(client.FieldOwner("habits")), other, maps.Lister(), children}
	do := func(ctx context.Context, d *appsv1.Deployment) (reconcile.Result, error) {
		return reconcile.Result{}, Reconcile(ctx, f, d)
	}
	owned := source.Owned(maps, deployments)
	if !byNew {
		c := reconcile.For(deployments, do, opts)
		c.Watch(owned)
		return mgr.Add(c)
	}
	c := reconcile.New("habits", func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
		d, err := deployments.Lister().Get(key)
		if err != nil {
			return reconcile.Result{}, reconcile.IgnoreNotFound(err)
		}
		return do(ctx, d)
	}, opts)
	c.Watch(source.Kind(deployments, source.Self), owned)
	return mgr.Add(c)
}

// flyball is the Client of package client and Listers.
type flyball struct {
	*client.Client
	other    *client.Client
	maps     informer.Lister[*corev1.ConfigMap]
	children *reconcile.ChildSet
}

func (f flyball) Child(_ context.Context, key kube.Key) (*corev1.ConfigMap, error) {
	return f.maps.Get(key)
}

func (f flyball) Create(ctx context.Context, obj kube.Object) error {
	return f.Client.Create(ctx, obj)
}

func (f flyball) Update(ctx context.Context, obj kube.Object) error {
	return f.Client.Update(ctx, obj)
}

func (f flyball) UpdateElsewhere(ctx context.Context, obj kube.Object) error {
	return f.other.Update(ctx, obj)
}

func (f flyball) UpdateStatus(ctx context.Context, obj kube.Object) error {
	return f.Status().Update(ctx, obj)
}

func (f flyball) Patch(ctx context.Context, obj kube.Object, patch string) error {
	return f.Client.Patch(ctx, obj, client.MergePatch([]byte(patch)))
}

func (f flyball) PatchStatus(ctx context.Context, obj kube.Object, patch string) error {
	return f.Status().Patch(ctx, obj, client.MergePatch([]byte(patch)))
}

func (f flyball) PatchChanges(ctx context.Context, from, to kube.Object) error {
	_, err := f.Client.PatchChanges(ctx, from, to)
	return err
}

func (f flyball) Apply(ctx context.Context, child *corev1.ConfigMap, ifChanged bool) error {
	if ifChanged {
		return f.Client.Apply(ctx, child, client.Force{}, client.IfChanged{})
	}
	return f.Client.Apply(ctx, child, client.Force{})
}

func (f flyball) ApplyStatus(ctx context.Context, d *appsac.DeploymentApplyConfiguration) error {
	return f.Status().Apply(ctx, d, client.Force{})
}

func (f flyball) CreateOrUpdate(ctx context.Context, child *corev1.ConfigMap) error {
	is := &corev1.ConfigMap{ObjectMeta: child.ObjectMeta}
	_, err := f.Client.CreateOrUpdate(ctx, is, func() error {
		is.OwnerReferences, is.Data = child.OwnerReferences, maps.Clone(child.Data)
		return nil
	})
	return err
}

func (f flyball) Delete(ctx context.Context, obj kube.Object, uid, version string) error {
	if uid == "" && version == "" {
		return f.Client.Delete(ctx, obj)
	}
	return f.Client.Delete(ctx, obj, client.Preconditions{UID: obj.GetUID(), ResourceVersion: version})
}

func (f flyball) ApplyChildren(ctx context.Context, d *appsv1.Deployment, children ...kube.Object) error {
	if _, err := f.children.Apply(ctx, d, children...); err != nil {
		return fmt.Errorf("children: %w", err)
	}
	return nil
}
