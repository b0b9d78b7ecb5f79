// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package snippet

import (
	"k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/client"
	webv1 "github.com/flyball-dev/flyball/examples/website/api/v1"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
)

func testScheme() *runtime.Scheme { return runtime.NewScheme() }

func setup(*manager.Manager) error { return nil }

type forgetful struct {
	client  *client.Client
	written map[reconcile.Key]int64
}

func pageFor(site *webv1.Website) *v1.ConfigMap {
	return &v1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: site.Namespace, Name: site.Name},
		Data:       map[string]string{"index.html": site.Spec.Content},
	}
}
