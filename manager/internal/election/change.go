// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package election

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/flyball-dev/flyball/internal/ownership"
)

// Change lets change modify the metadata of the Lease, whoever holds it, and writes it if change
// returns true. If another client writes meanwhile, it calls change again with what that wrote. An
// error of change is returned as it is. The elector's own write that conflicts with this one is sent
// again at once.
func (e *Elector) Change(ctx context.Context, change func(l *coordinationv1.Lease) (bool, error)) error {
	return ownership.ChangeLease(ctx, e.lease.key.String(), e.lease.client.get, e.lease.client.update, e.lease.show, change)
}

// show calls Options.Shown.
func (l *lease) show(got *coordinationv1.Lease) {
	if l.shown != nil {
		l.shown(got)
	}
}
