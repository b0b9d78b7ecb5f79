// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package migration_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
)

func runManager(scheme *runtime.Scheme) error {
	mgr, err := manager.New(manager.Options{
		Scheme:         scheme,
		LeaderElection: &manager.LeaderElection{ID: "backup.example.dev"},
		MetricsAddress: ":8080",
		Informers:      informer.Options{Namespaces: []string{"prod"}},
	})
	if err != nil {
		return err
	}
	if err := setup(mgr); err != nil {
		return err
	}
	return mgr.Run(manager.SignalContext())
}

func Example_manager() {
	scheme := runtime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		fmt.Println(err)
		return
	}
	if err := runManager(scheme); err != nil {
		fmt.Println(err)
	}
}
