// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package ownership

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// changeTries bounds the tries of ChangeLease. Its holder may write the Lease every few seconds.
const changeTries = 10

// ChangeLease lets change modify a Lease, and writes it if change returns true. If another client writes
// meanwhile, it calls change again with what that wrote. An error of change is returned as it is.
func ChangeLease(
	ctx context.Context, name string, get func(context.Context) (*coordinationv1.Lease, error),
	update func(context.Context, *coordinationv1.Lease) (*coordinationv1.Lease, error),
	shown func(*coordinationv1.Lease), change func(l *coordinationv1.Lease) (bool, error),
) error {
	var err error
	for range changeTries {
		var got *coordinationv1.Lease
		if got, err = get(ctx); err != nil {
			break
		}
		shown(got)
		next := got.DeepCopy()
		write, refused := change(next)
		if refused != nil || !write {
			return refused
		}
		if got, err = update(ctx, next); err == nil {
			shown(got)
			return nil
		}
		if !apierrors.IsConflict(err) {
			break
		}
	}
	return fmt.Errorf("change lease %s: %w", name, err)
}

func (o *Options) show(l *coordinationv1.Lease) {
	if o.Shown != nil {
		o.Shown(l)
	}
}

// Change lets change modify the metadata of the plan's Lease, which all replicas share.
func (a *Agent) Change(ctx context.Context, change func(l *coordinationv1.Lease) (bool, error)) error {
	get := func(ctx context.Context) (*coordinationv1.Lease, error) { return a.sender.get(ctx, a.ID) }
	return ChangeLease(ctx, a.Namespace+"/"+a.ID, get, a.sender.write, a.show, change)
}
