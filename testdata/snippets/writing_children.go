// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package snippet

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	webv1 "github.com/flyball-dev/flyball/examples/website/api/v1"
)

func deploymentFor(*webv1.Website) *appsv1.Deployment { return &appsv1.Deployment{} }

func serviceFor(*webv1.Website) *corev1.Service { return &corev1.Service{} }

var _ = setup
