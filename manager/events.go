// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"

	"github.com/flyball-dev/flyball/manager/internal/recorder"
)

// EventRecorder has the methods of client-go's events.EventRecorder and
// events.AnnotatedEventRecorder, and can be assigned to both. Their package brings all
// built-in kinds into a program.
type EventRecorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
	AnnotatedEventf(regarding, related runtime.Object, annotations map[string]string, eventtype, reason, action, note string, args ...any)
}

// Events returns a recorder of Events (events.k8s.io/v1) reported by the named
// controller; kubectl describe shows them for the object. Eventf does not block, and
// may be called before Run and on every replica.
//
// Events that differ only in their note are deduplicated: an event with the same
// objects, type, reason and action increases the count of the existing Event if it is
// repeated within six minutes. The server does not allow a change of the note, so the
// first note is kept. Use different reasons or actions for events that must stay
// separate. flyball_events_total{result="merged"} counts those whose note was dropped,
// and {result="counted"} exact repetitions.
//
// For each object and controller 25 different events are sent, and then one every five
// minutes. The rest is dropped, and so are events that the server refuses and those
// beyond a backlog of 1000. Events recorded before the stop are sent before Run
// returns, unless the server does not answer.
//
// Annotations of an Event that only increases a count are dropped.
//
// In tests use events.NewFakeRecorder of k8s.io/client-go/tools/events with a large
// enough buffer: it blocks when full.
func (m *Manager) Events(controller string) EventRecorder {
	m.sendEvents()
	return recorder.New(m.mail, m.scheme, controller)
}

// EventRecorderFor is Events for code that uses the older record.EventRecorder of
// client-go. The Events are the same, with the reason as action. New code should use
// Events.
func (m *Manager) EventRecorderFor(controller string) record.EventRecorder {
	m.sendEvents()
	return recorder.NewOlder(m.mail, m.scheme, controller)
}
