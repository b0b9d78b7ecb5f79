// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package snippet

import (
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	webv1 "github.com/flyball-dev/flyball/examples/website/api/v1"
)

var scheme = runtime.NewScheme()

func deploymentFor(site *webv1.Website) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	d.Namespace, d.Name = site.Namespace, site.Name
	return d
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "website:", err)
		os.Exit(1)
	}
}
