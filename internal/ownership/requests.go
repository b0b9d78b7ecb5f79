// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// sender sends the requests for Leases of a namespace.
type sender struct {
	client    rest.Interface
	namespace string
}

func newSender(cfg *rest.Config, codec runtime.NegotiatedSerializer, namespace string) (*sender, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.APIPath, cfg.GroupVersion, cfg.NegotiatedSerializer = "/apis", &coordinationv1.SchemeGroupVersion, codec
	client, err := rest.RESTClientFor(cfg)
	return &sender{client, namespace}, err
}

func (s *sender) get(ctx context.Context, name string) (*coordinationv1.Lease, error) {
	return s.send(ctx, "get", s.client.Get().Name(name), nil)
}

// write updates a Lease that has a version, and creates one that has none.
func (s *sender) write(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if l.ResourceVersion == "" {
		return s.send(ctx, "create", s.client.Post(), l)
	}
	return s.send(ctx, "update", s.client.Put().Name(l.Name), l)
}

// remove deletes exactly this state of a Lease.
func (s *sender) remove(ctx context.Context, l *coordinationv1.Lease) error {
	err := s.client.Delete().Namespace(s.namespace).Resource("leases").Name(l.Name).
		Body(&metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &l.UID, ResourceVersion: &l.ResourceVersion}}).Do(ctx).Error()
	return s.explain("delete", err)
}

func (s *sender) send(ctx context.Context, verb string, r *rest.Request, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	r = r.Namespace(s.namespace).Resource("leases")
	if l != nil {
		r = r.Body(l)
	}
	answer := &coordinationv1.Lease{}
	err := r.Do(ctx).Into(answer)
	return answer, s.explain(verb, err)
}

func (s *sender) explain(verb string, err error) error {
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("%w; add to the Role in namespace %q: {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, list, watch, create, update, delete]} (%s is missing)",
			err, s.namespace, verb)
	}
	return err
}
