// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package snippet

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
)

type reconciler struct {
	deployments informer.Lister[*appsv1.Deployment]
	client      *client.Client
}

var _ = (*reconciler).reconcile
