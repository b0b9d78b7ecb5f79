// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"testing"

	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
)

func TestManager_SnapshotPrintsTheStartOrder(t *testing.T) {
	m := newManager(t, manager.Options{HealthAddress: "127.0.0.1:0", MetricsAddress: "127.0.0.1:0"})
	must(t, m.Add(reconcile.New("website", func(context.Context, string) (reconcile.Result, error) {
		return reconcile.Result{}, nil
	}, reconcile.KeyedOptions[string]{})))
	want := `STAGE          NAME                  STATE
1 servers      health server         waiting
1 servers      metrics server        waiting
3 informers    shared informers      waiting
6 controllers  controller "website"  waiting
`
	if got := m.Snapshot().String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
