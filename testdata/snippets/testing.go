// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package snippet

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	webv1 "github.com/flyball-dev/flyball/examples/website/api/v1"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
)

func testScheme() *runtime.Scheme { return runtime.NewScheme() }

func setup(*manager.Manager) error { return nil }

type reconciler struct{}

func (*reconciler) reconcile(context.Context, *webv1.Website) (reconcile.Result, error) {
	return reconcile.Result{}, nil
}

type forgetful struct {
	*reconciler
	mu      sync.Mutex
	written map[reconcile.Key]int64
}
