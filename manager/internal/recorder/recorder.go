// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package recorder

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/reference"

	"github.com/flyball-dev/flyball/internal/textlog"
)

// maxNote is the server's limit for the note of an Event, in bytes.
const maxNote = 1024

// Recorder makes Events of what a controller says.
type Recorder struct {
	mail       *Mail
	scheme     *runtime.Scheme
	controller string
}

// New returns a recorder for the named controller; mail sends its Events.
func New(mail *Mail, scheme *runtime.Scheme, controller string) Recorder {
	return Recorder{mail, scheme, controller}
}

// Eventf implements client-go's events.EventRecorder. It logs what cannot become an Event.
func (r Recorder) Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any) {
	r.AnnotatedEventf(regarding, related, nil, eventtype, reason, action, note, args...)
}

// AnnotatedEventf implements client-go's events.AnnotatedEventRecorder.
func (r Recorder) AnnotatedEventf(regarding, related runtime.Object, annotations map[string]string, eventtype, reason, action, note string, args ...any) {
	event, err := r.event(regarding, related, eventtype, reason, action, fmt.Sprintf(note, args...))
	if err != nil {
		r.mail.log.Error(err, "Cannot send an Event", "controller", r.controller, "reason", reason)
		return
	}
	event.Annotations = maps.Clone(annotations)
	r.mail.record(event, time.Now())
}

func (r Recorder) event(regarding, related runtime.Object, eventtype, reason, action, note string) (*eventsv1.Event, error) {
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
		Note:                shorten(textlog.VisibleLines(strings.ToValidUTF8(note, "?")), maxNote), // it is read in terminals
		Regarding:           *about,
	}
	event.Namespace = about.Namespace
	if event.Namespace == "" {
		event.Namespace = metav1.NamespaceDefault // as the server requires for cluster-scoped objects
	}
	if !noObject(related) {
		if event.Related, err = r.refer(related); err != nil {
			return nil, fmt.Errorf("event related to %T: %w", related, err)
		}
	}
	return event, nil
}

func (r Recorder) refer(obj runtime.Object) (*corev1.ObjectReference, error) {
	if noObject(obj) {
		return nil, reference.ErrNilObject
	}
	ref, err := reference.GetReference(r.scheme, obj)
	if err == nil && ref.Name == "" {
		err = errors.New("the object has no name")
	}
	return ref, err
}

// shorten truncates text to limit bytes of UTF-8.
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

// noObject reports whether obj is nil, or an interface around a nil pointer.
func noObject(obj runtime.Object) bool {
	v := reflect.ValueOf(obj)
	return obj == nil || v.Kind() == reflect.Pointer && v.IsNil()
}
