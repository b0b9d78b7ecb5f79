// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"
	theirs "sigs.k8s.io/controller-runtime/pkg/recorder"

	"github.com/flyball-dev/flyball/manager"
)

// Recorders returns mgr's event recorders as controller-runtime provides them. They have the limits and the deduplication of
// mgr.Events.
func Recorders(mgr *manager.Manager) theirs.Provider { return recorders{mgr} }

type recorders struct{ mgr *manager.Manager }

// GetEventRecorderFor implements recorder.Provider.
func (r recorders) GetEventRecorderFor(name string) record.EventRecorder {
	return r.mgr.EventRecorderFor(name)
}

// GetEventRecorder implements recorder.Provider.
func (r recorders) GetEventRecorder(name string) theirs.EventRecorder {
	recorder := r.mgr.Events(name)
	return annotating{recorder, recorder.(events.AnnotatedEventRecorder)}
}

type annotating struct {
	events.EventRecorder
	events.AnnotatedEventRecorder
}
