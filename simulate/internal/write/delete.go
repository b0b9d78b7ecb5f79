// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package write

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// Delete deletes the object that q addresses, or marks it. It returns the object as the
// answer shows it, and whether it was removed.
func (p *Path) Delete(ctx context.Context, q *Request, opts *metav1.DeleteOptions) (obj *object.Object, removed bool, err error) {
	q.deleting = opts
	for ctx.Err() == nil {
		held, old, err := p.current(q)
		if err != nil {
			return nil, false, err
		}
		if held == nil {
			return nil, false, apierrors.NewNotFound(q.Kind.GroupResource(), q.Name)
		}
		if err := p.admitDelete(ctx, q, old); err != nil {
			return nil, false, err
		}
		obj, removed, done, err := p.commitDelete(q, held, opts)
		if err != nil {
			return nil, false, err
		}
		if !done {
			continue
		}
		if obj, err = q.Kind.FromStorage(obj); err != nil {
			return nil, false, err
		}
		return obj, removed, nil
	}
	return nil, false, apierrors.NewTimeoutError("the request was given up", 0)
}

// commitDelete deletes held, if that is still what is stored.
func (p *Path) commitDelete(q *Request, held *object.Object, opts *metav1.DeleteOptions) (obj *object.Object, removed, done bool, err error) {
	tx := p.Store.Begin()
	defer tx.End()
	if tx.Get(q.Kind.Held(), q.key()) != held {
		return nil, false, false, nil
	}
	obj, removed, err = Delete(tx, q.Kind, held, opts)
	return obj, removed, true, err
}

func (p *Path) admitDelete(ctx context.Context, q *Request, old *object.Object) error {
	if q.Kind.GroupResource() == object.Namespaces && slices.Contains(immortal, q.Name) {
		return apierrors.NewForbidden(object.Namespaces, q.Name, errors.New("this namespace may not be deleted"))
	}
	if _, err := p.mutate(ctx, q, "DELETE", nil, old); err != nil {
		return err
	}
	return p.Admission.Validate(ctx, q.reviewed("DELETE", nil, old))
}

// immortal are the namespaces that nobody may delete.
var immortal = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic}
