// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
)

// EventRecorderFor is Events for code that takes the older record.EventRecorder of
// client-go: the Events are the same, and all that Events says holds for them. The
// reason is their action, too. New code takes Events.
func (m *Manager) EventRecorderFor(controller string) record.EventRecorder {
	return olderRecorder{m.Events(controller).(recorder)}
}

// olderRecorder is a recorder with the methods of package record.
type olderRecorder struct{ to recorder }

func (o olderRecorder) Event(object runtime.Object, eventtype, reason, message string) {
	o.tell(object, nil, eventtype, reason, message)
}

func (o olderRecorder) Eventf(object runtime.Object, eventtype, reason, message string, args ...any) {
	o.tell(object, nil, eventtype, reason, fmt.Sprintf(message, args...))
}

func (o olderRecorder) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, message string, args ...any) {
	o.tell(object, annotations, eventtype, reason, fmt.Sprintf(message, args...))
}

// tell makes an Event as Eventf of Events does. A reference, which that code may give in
// the object's place, is taken as it is.
func (o olderRecorder) tell(object runtime.Object, annotations map[string]string, eventtype, reason, message string) {
	if ref, ok := object.(*corev1.ObjectReference); ok && ref != nil {
		object = ref.DeepCopy()
	}
	event, err := o.to.event(object, nil, eventtype, reason, reason, message)
	if err != nil {
		o.to.mail.log.Error(err, "an event is not sent", "controller", o.to.controller, "reason", reason)
		return
	}
	event.Annotations = maps.Clone(annotations)
	o.to.mail.tell(event, time.Now())
}
