// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package suite is an operator whose suite runs on envtest. It makes a Secret, the ticket, for each ConfigMap with
// the label order, and writes the ticket's name on the order.
package suite

import (
	"context"

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
	orderLabel = "example.flyball.dev/order"
	ticketNote = "example.flyball.dev/ticket"
)

type tickets struct {
	orders informer.Lister[*corev1.ConfigMap]
	client *client.Client
	// random is the mistake: an answer that is lost leads to a second ticket.
	random bool
}

func setUp(random bool) func(*manager.Manager) error {
	return func(mgr *manager.Manager) error {
		orders := informer.For[*corev1.ConfigMap](mgr.Informers())
		r := &tickets{orders: orders.Lister(), client: mgr.Client(), random: random}
		c := reconcile.New("ticket", r.reconcile, reconcile.Options{})
		c.Watch(source.Kind(orders, source.Self))
		return mgr.Add(c)
	}
}

func (r *tickets) reconcile(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
	order, err := r.orders.Get(key)
	if err != nil {
		return reconcile.Result{}, reconcile.IgnoreNotFound(err)
	}
	if order.Labels[orderLabel] == "" || order.Annotations[ticketNote] != "" {
		return reconcile.Result{}, nil
	}
	ticket := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: order.Namespace, Name: order.Name, Labels: order.Labels}}
	if r.random {
		ticket.Name, ticket.GenerateName = "", order.Name+"-"
	}
	if err := r.client.Create(ctx, ticket); err != nil && !apierrors.IsAlreadyExists(err) {
		return reconcile.Result{}, err
	}
	order = kube.Copy(order)
	order.Annotations = map[string]string{ticketNote: ticket.Name}
	return reconcile.Result{}, r.client.Update(ctx, order)
}
