// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// The main function of an operator with one controller, which reports how many keys
// each ConfigMap has.
func Example() {
	var opts manager.Options
	opts.BindFlags(flag.CommandLine)
	flag.Parse()

	mgr, err := manager.New(opts)
	exitOn(err)
	exitOn(setup(mgr))
	exitOn(mgr.Run(manager.SignalContext()))
}

func setup(mgr *manager.Manager) error {
	maps := informer.For[*corev1.ConfigMap](mgr.Informers())
	lister := maps.Lister()

	c := reconcile.New("counter", func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
		cm, err := lister.Get(key)
		if err != nil {
			return reconcile.Result{}, reconcile.IgnoreNotFound(err)
		}
		logr.FromContextOrDiscard(ctx).Info("counted", "keys", len(cm.Data))
		return reconcile.Result{}, nil
	}, reconcile.Options{})
	c.Watch(source.Kind(maps, source.Self))
	return mgr.Add(c)
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
