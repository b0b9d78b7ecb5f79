// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package election

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/kube"
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
	key    kube.Key
}

func newSender(cfg *rest.Config, codec runtime.NegotiatedSerializer, key kube.Key) (*sender, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.APIPath, cfg.GroupVersion, cfg.NegotiatedSerializer = "/apis", &coordinationv1.SchemeGroupVersion, codec
	client, err := rest.RESTClientFor(cfg)
	return &sender{client, key}, err
}

func (s *sender) get(ctx context.Context) (*coordinationv1.Lease, error) {
	return s.send(ctx, "get", s.client.Get().Name(s.key.Name), nil)
}

func (s *sender) create(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return s.send(ctx, "create", s.client.Post(), l)
}

func (s *sender) update(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	return s.send(ctx, "update", s.client.Put().Name(s.key.Name), l)
}

func (s *sender) send(ctx context.Context, verb string, r *rest.Request, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	r = r.Namespace(s.key.Namespace).Resource("leases")
	if l != nil {
		r = r.Body(l)
	}
	answer := &coordinationv1.Lease{}
	err := r.Do(ctx).Into(answer)
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("%w; add to the Role in namespace %q: %s", err, s.key.Namespace, ruleFor(verb, s.key.Name))
	}
	return answer, err
}

// ruleFor returns the rule of a Role that allows verb. A create cannot be restricted to a
// name.
func ruleFor(verb, name string) string {
	only := "resourceNames: [" + name + "], "
	if verb == "create" {
		only = ""
	}
	return "{apiGroups: [coordination.k8s.io], resources: [leases], " + only + "verbs: [" + verb + "]}"
}
