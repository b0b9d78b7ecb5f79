// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"context"
	"errors"

	theirs "sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/flyball-dev/flyball/reconcile"
)

// Reconciler returns the function for reconcile.New that calls r. RequeueAfter, Requeue and Priority of its result, errors, and
// reconcile.TerminalError mean what they mean in controller-runtime; the logger of the context is flyball's. A nil r is
// misuse, which Add of the manager returns.
func Reconciler(r theirs.Reconciler) reconcile.Func[reconcile.Key] {
	if r == nil {
		return nil
	}
	return func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
		result, err := r.Reconcile(ctx, theirs.Request{NamespacedName: key})
		if err != nil && errors.Is(err, theirs.TerminalError(nil)) {
			err = reconcile.Terminal(err)
		}
		return reconcile.Result{
			RequeueAfter: max(result.RequeueAfter, 0),
			//lint:ignore SA1019 programs still use it
			Retry:    result.Requeue,
			Priority: result.Priority,
		}, err
	}
}
