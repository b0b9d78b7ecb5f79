// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package election

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/informer"
)

// requests are those for the Lease.
type requests interface {
	get(ctx context.Context) (*coordinationv1.Lease, error)
	create(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error)
	update(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error)
}

// sender sends requests to the API server.
type sender struct {
	client rest.Interface
	key    informer.Key
}

func newSender(cfg *rest.Config, codec runtime.NegotiatedSerializer, key informer.Key) (*sender, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.APIPath, cfg.GroupVersion, cfg.NegotiatedSerializer = "/apis", &coordinationv1.SchemeGroupVersion, codec
	client, err := rest.RESTClientFor(cfg)
	return &sender{client, key}, err
}

func (s *sender) get(ctx context.Context) (*coordinationv1.Lease, error) {
	return s.send(ctx, s.client.Get().Name(s.key.Name), nil)
}

func (s *sender) create(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return s.send(ctx, s.client.Post(), l)
}

func (s *sender) update(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return s.send(ctx, s.client.Put().Name(s.key.Name), l)
}

func (s *sender) send(ctx context.Context, r *rest.Request, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	r = r.Namespace(s.key.Namespace).Resource("leases")
	if l != nil {
		r = r.Body(l)
	}
	answer := &coordinationv1.Lease{}
	err := r.Do(ctx).Into(answer)
	return answer, err
}
