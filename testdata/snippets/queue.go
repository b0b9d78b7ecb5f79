// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package snippet

import (
	"context"

	"github.com/flyball-dev/flyball/reconcile"

	webv1 "github.com/flyball-dev/flyball/examples/website/api/v1"
)

func reconcileWebsite(context.Context, *webv1.Website) (reconcile.Result, error) {
	return reconcile.Result{}, nil
}

var _ = setup
