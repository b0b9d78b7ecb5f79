// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"embed"
	"fmt"

	"github.com/flyball-dev/flyball/manager"
)

//go:embed testdata/crd.yaml
var crds embed.FS

func newInstalling(opts manager.Options) (*manager.Manager, error) {
	opts.InstallCRDs = crds // Run installs or updates them before the informers start
	return manager.New(opts)
}

// A program that brings its CustomResourceDefinitions along.
func ExampleOptions_installCRDs() {
	mgr, err := newInstalling(manager.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := mgr.Run(manager.SignalContext()); err != nil {
		fmt.Println(err)
	}
}
