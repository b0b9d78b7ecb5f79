// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/record"

	"github.com/flyball-dev/flyball/manager/internal/recorder"
)

// Events returns a recorder of Events (events.k8s.io/v1) that the controller of
// that name reports: kubectl describe shows them below the object. Eventf does not
// block, and may be called before Run and on every replica.
//
// Events that differ in their note alone are one: the same event of the same objects,
// type, reason and action is counted up in the Event that is there, as long as it
// comes again within six minutes, and the server lets nobody change the note, so that
// of several the first is shown. Give what is to be told apart a reason or an action
// of its own. flyball_events_total{result="merged"} counts those whose note was lost
// in this way, and {result="counted"} those that were the same to the letter.
//
// Of one object and one controller 25 others are sent, and then one in five minutes;
// the rest is left out, as are those that the server refuses and those of more than
// 1000 that wait for it. What was told before the manager stops is sent before Run
// returns, unless the server does not answer.
//
// A test gives its code events.NewFakeRecorder of k8s.io/client-go/tools/events in
// place of it, with room for all that it tells: a full one blocks.
func (m *Manager) Events(controller string) events.EventRecorder {
	m.sendEvents()
	return recorder.New(m.mail, m.scheme, controller)
}

// EventRecorderFor is Events for code that takes the older record.EventRecorder of
// client-go: the Events are the same, and all that Events says holds for them. The
// reason is their action, too. New code takes Events.
func (m *Manager) EventRecorderFor(controller string) record.EventRecorder {
	m.sendEvents()
	return recorder.NewOlder(m.mail, m.scheme, controller)
}

// sendEvents has the manager send what recorders are told.
func (m *Manager) sendEvents() {
	m.mailOnce.Do(func() {
		// With the servers it is the last to end: all that tells has ended before.
		if err := m.AddTo(StageServers, m.mail); err != nil {
			m.log.Error(err, "Cannot send Events")
		}
	})
}
