// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

const (
	syncLabel      = "example.flyball.dev/sync"
	copyLabel      = "example.flyball.dev/copy"
	originNote     = "example.flyball.dev/origin"
	namespacesNote = "example.flyball.dev/namespaces"
	byOrigin       = "origin"
)

// setup adds the controllers to mgr. main and the tests call it.
func setup(mgr *manager.Manager) error {
	// Two scopes of one kind: two watches, each with only what it needs.
	originals := informer.For[*corev1.ConfigMap](mgr.Informers(), informer.Scope{LabelSelector: syncLabel + "=true"})
	copies := informer.For[*corev1.ConfigMap](mgr.Informers(), informer.Scope{LabelSelector: copyLabel + "=true"})
	namespaces := informer.For[*corev1.Namespace](mgr.Informers(), informer.Scope{Fields: []string{"status.phase"}})
	if err := copies.AddIndex(byOrigin, func(cm *corev1.ConfigMap) []string { return []string{cm.Annotations[originNote]} }); err != nil {
		return err
	}

	r := reconciler{originals: originals.Lister(), copies: copies.Lister(), namespaces: namespaces.Lister(), client: mgr.Client()}
	c := reconcile.New("configmapsync", r.reconcile, reconcile.Options{})
	c.Watch(source.Kind(originals, source.Self))
	c.Watch(source.Mapped(copies, originOf))
	c.Watch(source.Mapped(namespaces, r.allOriginals, source.LabelsChanged))
	return mgr.Add(c)
}

type reconciler struct {
	originals, copies informer.Lister[*corev1.ConfigMap]
	namespaces        informer.Lister[*corev1.Namespace]
	client            *client.Client
}

// reconcile makes the copies of one original equal to it, and deletes copies that should
// not exist.
func (r reconciler) reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	original, err := r.originals.Get(key)
	if err != nil && !apierrors.IsNotFound(err) {
		return reconcile.Result{}, err
	}
	var wanted []string
	if err == nil && original.DeletionTimestamp == nil {
		wanted = r.targets(original)
	}
	var errs []error
	for _, namespace := range wanted {
		errs = append(errs, r.copyTo(ctx, original, namespace))
	}
	existing, err := r.copies.ByIndex(byOrigin, key.String())
	if err != nil {
		return reconcile.Result{}, err
	}
	for cm := range existing {
		if !slices.Contains(wanted, cm.Namespace) {
			err := r.client.Delete(ctx, cm, client.Preconditions{UID: cm.UID})
			errs = append(errs, reconcile.IgnoreNotFound(err))
		}
	}
	return reconcile.Result{}, errors.Join(errs...)
}

// copyTo writes the copy in one namespace unless it is equal already. It does not overwrite
// a ConfigMap of that name without the label of copies or from another original: it returns
// an error, which is retried with backoff.
func (r reconciler) copyTo(ctx context.Context, original *corev1.ConfigMap, namespace string) error {
	want := copyOf(original, namespace)
	have, err := r.copies.Get(kube.KeyOf(want))
	switch {
	case apierrors.IsNotFound(err):
		return r.client.Create(ctx, want)
	case err != nil:
		return err
	case have.Annotations[originNote] != want.Annotations[originNote]:
		return fmt.Errorf("copy %s to namespace %s: a copy of %s is there", kube.KeyOf(original), namespace, have.Annotations[originNote])
	case maps.Equal(have.Data, want.Data) && maps.EqualFunc(have.BinaryData, want.BinaryData, slices.Equal):
		return nil
	}
	have = kube.Copy(have)
	have.Data, have.BinaryData = want.Data, want.BinaryData
	return r.client.Update(ctx, have)
}

func copyOf(original *corev1.ConfigMap, namespace string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   namespace,
			Name:        original.Name,
			Labels:      map[string]string{copyLabel: "true"},
			Annotations: map[string]string{originNote: kube.KeyOf(original).String()},
		},
		Data:       original.Data,
		BinaryData: original.BinaryData,
	}
}

// targets returns the namespaces that original is copied to: those it names that exist and
// are not being deleted.
func (r reconciler) targets(original *corev1.ConfigMap) []string {
	named, some := original.Annotations[namespacesNote]
	names := strings.Split(named, ",")
	var out []string
	for ns := range r.namespaces.All() {
		switch {
		case ns.Name == original.Namespace, ns.DeletionTimestamp != nil:
		case some && !slices.ContainsFunc(names, func(name string) bool { return strings.TrimSpace(name) == ns.Name }):
		default:
			out = append(out, ns.Name)
		}
	}
	slices.Sort(out)
	return out
}

// originOf returns the key of the original of a copy.
func originOf(cm *corev1.ConfigMap) []reconcile.Key {
	namespace, name, ok := strings.Cut(cm.Annotations[originNote], "/")
	if !ok {
		return nil
	}
	return []reconcile.Key{{Namespace: namespace, Name: name}}
}

// allOriginals returns every original: a namespace that comes or goes concerns all of them.
func (r reconciler) allOriginals(*corev1.Namespace) []reconcile.Key {
	var keys []reconcile.Key
	for cm := range r.originals.All() {
		keys = append(keys, kube.KeyOf(cm))
	}
	return keys
}
