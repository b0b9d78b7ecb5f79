// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package snippet

import (
	"context"

	"github.com/flyball-dev/flyball/reconcile"
)

func reconcileWebsite(context.Context, reconcile.Key) (reconcile.Result, error) {
	return reconcile.Result{}, nil
}

var _ = setup
