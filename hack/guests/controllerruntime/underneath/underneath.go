// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package underneath creates controller-runtime's managers with the bridge, for the
// overlays with which the tests build other projects' suites: calls of controller-runtime's
// constructors become calls of these.
package underneath

import (
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	bridge "github.com/flyball-dev/flyball/bridge/controllerruntime"
)

// New is cache.New with flyball's informers.
func New(config *rest.Config, opts cache.Options) (cache.Cache, error) {
	return bridge.NewCache(config, opts)
}

// NewManager is manager.New with flyball's cache and client.
func NewManager(config *rest.Config, opts manager.Options) (manager.Manager, error) {
	return manager.New(config, bridge.Options(opts))
}
