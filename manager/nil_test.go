// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// A program that does not check the error of New has a nil manager. Setting up a controller
// with it ends in an error.
func TestManager_NilIsAnErrorOfAddAndRun_B26(t *testing.T) {
	var mgr *manager.Manager
	pods := informer.For[*corev1.Pod](mgr.Informers())
	c := reconcile.New("pods", func(context.Context, reconcile.Key) (reconcile.Result, error) { return reconcile.Result{}, nil }, reconcile.Options{})
	c.Watch(source.Kind(pods, source.Self))
	for name, err := range map[string]error{"Add": mgr.Add(c), "Run": mgr.Run(t.Context())} {
		if err == nil || !strings.Contains(err.Error(), "the manager is nil") {
			t.Errorf("%s: got %v, want an error that says so", name, err)
		}
	}
	if mgr.Client() != nil || mgr.StandbyClient() != nil || mgr.Scheme() != nil {
		t.Error("a nil manager has parts")
	}
}
