// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package bridge

import ctrl "sigs.k8s.io/controller-runtime"

// Options returns opts with flyball's cache and client, for ctrl.NewManager. A NewCache or NewClient of opts stays.
func Options(opts ctrl.Options) ctrl.Options {
	if opts.NewCache == nil {
		opts.NewCache = NewCache
	}
	if opts.NewClient == nil {
		opts.NewClient = NewClient
	}
	return opts
}
