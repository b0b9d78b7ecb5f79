// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/reference"

	"github.com/flyball-dev/flyball/internal/textlog"
)

// maxNote is what the server takes as an Event's note, in bytes.
const maxNote = 1024

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
	m.mailOnce.Do(func() {
		// With the servers it is the last to end: all that tells has ended before.
		if err := m.AddTo(StageServers, m.mail); err != nil {
			m.log.Error(err, "no events are sent")
		}
	})
	return recorder{m.mail, m.scheme, controller}
}

// recorder makes Events of what one controller tells.
type recorder struct {
	mail       *eventMail
	scheme     *runtime.Scheme
	controller string
}

// Eventf implements events.EventRecorder. What cannot become an Event is logged.
func (r recorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	event, err := r.event(regarding, related, eventtype, reason, action, fmt.Sprintf(note, args...))
	if err != nil {
		r.mail.log.Error(err, "an event is not sent", "controller", r.controller, "reason", reason)
		return
	}
	r.mail.tell(event, time.Now())
}

func (r recorder) event(regarding, related runtime.Object, eventtype, reason, action, note string) (*eventsv1.Event, error) {
	about, err := r.refer(regarding)
	if err != nil {
		return nil, fmt.Errorf("event about %T: %w", regarding, err)
	}
	if eventtype != corev1.EventTypeNormal && eventtype != corev1.EventTypeWarning {
		return nil, fmt.Errorf("event of type %q: give corev1.EventTypeNormal or corev1.EventTypeWarning", eventtype)
	}
	event := &eventsv1.Event{
		ReportingController: r.controller,
		Type:                eventtype,
		Reason:              reason,
		Action:              action,
		Note:                shorten(textlog.VisibleLines(strings.ToValidUTF8(note, "?")), maxNote), // people read it in terminals
		Regarding:           *about,
	}
	event.Namespace = about.Namespace
	if event.Namespace == "" {
		event.Namespace = metav1.NamespaceDefault // as the server asks for cluster-scoped objects
	}
	if !isNil(related) {
		if event.Related, err = r.refer(related); err != nil {
			return nil, fmt.Errorf("event related to %T: %w", related, err)
		}
	}
	return event, nil
}

func (r recorder) refer(obj runtime.Object) (*corev1.ObjectReference, error) {
	if isNil(obj) {
		return nil, reference.ErrNilObject
	}
	ref, err := reference.GetReference(r.scheme, obj)
	if err == nil && ref.Name == "" {
		err = errors.New("the object has no name")
	}
	return ref, err
}

// shorten cuts text to limit bytes of UTF-8.
func shorten(text string, limit int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= limit {
		return text
	}
	const rest = "…"
	end := limit - len(rest)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + rest
}
