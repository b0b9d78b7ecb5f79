// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package snippet

import (
	appsv1 "k8s.io/api/apps/v1"

	webv1 "github.com/flyball-dev/flyball/examples/website/api/v1"
)

func deploymentFor(*webv1.Website) *appsv1.Deployment { return &appsv1.Deployment{} }

var _ = rehearse
