// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/record"
)

// olderRecorder is a recorder with the methods of package record.
type olderRecorder struct{ to Recorder }

// NewOlder is New with the methods of package record.
func NewOlder(mail *Mail, scheme *runtime.Scheme, controller string) record.EventRecorder {
	return olderRecorder{Recorder{mail, scheme, controller}}
}

func (o olderRecorder) Event(object runtime.Object, eventtype, reason, message string) {
	o.record(object, nil, eventtype, reason, message)
}

func (o olderRecorder) Eventf(object runtime.Object, eventtype, reason, message string, args ...any) {
	o.record(object, nil, eventtype, reason, fmt.Sprintf(message, args...))
}

func (o olderRecorder) AnnotatedEventf(object runtime.Object, annotations map[string]string, eventtype, reason, message string, args ...any) {
	o.record(object, annotations, eventtype, reason, fmt.Sprintf(message, args...))
}

// record creates an Event as Eventf of recorder does. It also accepts a reference instead
// of the object.
func (o olderRecorder) record(object runtime.Object, annotations map[string]string, eventtype, reason, message string) {
	if ref, ok := object.(*corev1.ObjectReference); ok && ref != nil {
		object = ref.DeepCopy()
	}
	event, err := o.to.event(object, nil, eventtype, reason, reason, message)
	if err != nil {
		o.to.mail.log.Error(err, "Cannot send an Event", "controller", o.to.controller, "reason", reason)
		return
	}
	event.Annotations = maps.Clone(annotations)
	o.to.mail.record(event, time.Now())
}
