// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"k8s.io/client-go/tools/record"
	theirs "sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/flyball-dev/flyball/manager"
)

// Recorders returns mgr's event recorders as controller-runtime provides them. They have the limits and the deduplication of
// mgr.Events.
func Recorders(mgr *manager.Manager) theirs.Provider {
	return providing(mgr, theirs.Provider.GetEventRecorder)
}

// recorders have the type R, which differs between versions of controller-runtime.
type recorders[R any] struct{ mgr *manager.Manager }

// providing takes R from the type of a method.
func providing[R any](mgr *manager.Manager, _ func(theirs.Provider, string) R) recorders[R] {
	return recorders[R]{mgr}
}

// GetEventRecorderFor implements recorder.Provider.
func (r recorders[R]) GetEventRecorderFor(name string) record.EventRecorder {
	return r.mgr.EventRecorderFor(name)
}

// GetEventRecorder implements recorder.Provider.
func (r recorders[R]) GetEventRecorder(name string) R { return any(r.mgr.Events(name)).(R) }
