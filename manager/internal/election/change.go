// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package election

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// changeTries bounds the tries of Change. The holder writes the Lease every few seconds.
const changeTries = 10

// Change lets change modify the metadata of the Lease, whoever holds it, and writes it if change
// returns true. If another client writes meanwhile, it calls change again with what that wrote. An
// error of change is returned as it is. The elector's own write that conflicts with this one is sent
// again at once.
func (e *Elector) Change(ctx context.Context, change func(l *coordinationv1.Lease) (bool, error)) error {
	var err error
	for range changeTries {
		var got *coordinationv1.Lease
		if got, err = e.lease.client.get(ctx); err != nil {
			break
		}
		e.lease.show(got)
		next := got.DeepCopy()
		write, refused := change(next)
		if refused != nil || !write {
			return refused
		}
		if got, err = e.lease.client.update(ctx, next); err == nil {
			e.lease.show(got)
			return nil
		}
		if !apierrors.IsConflict(err) {
			break
		}
	}
	return fmt.Errorf("change lease %s: %w", e.lease.key, err)
}

// show calls Options.Shown.
func (l *lease) show(got *coordinationv1.Lease) {
	if l.shown != nil {
		l.shown(got)
	}
}
