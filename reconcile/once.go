// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/kube"
)

// Once returns child as one that ChildSet.Apply creates if it does not exist, and otherwise
// leaves as it is: for a generated password, a key, or content that others change.
//
//	children.Apply(ctx, site, deploymentFor(site), reconcile.Once(secretFor(site), func(s *corev1.Secret) {
//		s.StringData = map[string]string{"password": rand.Text()}
//	}))
//
// fill completes the child. Nil means that the child is complete. It is called only before the
// child is created, so that random values are made once; it is a function of its own, because
// Apply needs the child's name to find out whether it exists. Apply then sets child to the
// stored object; if it exists, to the one in the cache, provided that the informer has the same
// Go type.
//
// In everything else it is a child like the others: it is owned, source.Owned wakes its parent
// when it is deleted, and the next Apply makes a new one; it is pruned when it is no longer
// wanted, and goes with its parent. With ChildSetOptions.Adopt, an existing object without a
// controller gets the owner and the set's labels, and keeps the rest. One that the parent controls
// gets labels that it lacks.
func Once[T kube.Object](child T, fill func(child T)) kube.Object {
	return &once{Object: child, fill: func() {
		if fill != nil {
			fill(child)
		}
	}}
}

// once is a wanted child of Once.
type once struct {
	kube.Object
	fill func()
}

// keep creates a child of Once if there is none, and adopts it if it may.
func (s *ChildSet) keep(ctx context.Context, parent kube.Object, c child, confirm func(context.Context) error, report *ChildReport) error {
	owners := c.object.GetOwnerReferences()
	is, err := c.kind.get(c.name.Key)
	if apierrors.IsNotFound(err) {
		var created bool
		stored := kube.Copy(c.object) // what is there may be another owner's secret
		created, err = s.writer.EnsureChild(ctx, stored, onceOwner(s.owner()), func(ctx context.Context) error {
			if confirm != nil {
				if err := confirm(ctx); err != nil {
					return err
				}
			}
			c.fill()
			setTo(stored, c.object)
			return nil
		})
		if created {
			setTo(c.object, stored)
			report.Created = append(report.Created, c.name)
		}
		if created || err != nil {
			return err
		}
		is = stored
	}
	if err != nil {
		return err
	}
	if err := s.mayTake(parent, is); err != nil {
		return err
	}
	setTo(c.object, is)
	if metav1.GetControllerOfNoCopy(is) != nil && s.labeled(is) {
		report.Unchanged = append(report.Unchanged, c.name)
		return nil
	}
	owned := &unstructured.Unstructured{}
	owned.SetGroupVersionKind(c.name.Kind)
	owned.SetNamespace(c.name.Key.Namespace)
	owned.SetName(c.name.Key.Name)
	owned.SetOwnerReferences(owners)
	owned.SetLabels(s.opts.Labels)
	if err := s.writer.ApplyChild(ctx, owned, s.opts.FieldOwner, confirm); err != nil {
		return err
	}
	c.object.SetOwnerReferences(owned.GetOwnerReferences())
	c.object.SetLabels(owned.GetLabels())
	c.object.SetResourceVersion(owned.GetResourceVersion())
	report.Updated = append(report.Updated, c.name)
	return nil
}

// setTo sets obj to a copy of is, if both have the same Go type.
func setTo(obj, is kube.Object) {
	to, from := reflect.ValueOf(obj), reflect.ValueOf(is)
	if to.Type() == from.Type() && to.Pointer() != from.Pointer() {
		to.Elem().Set(reflect.ValueOf(kube.Copy(is)).Elem())
	}
}
