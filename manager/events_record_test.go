// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/manager"
)

func TestEventRecorderFor_SendsWhatEventsWould(t *testing.T) {
	p := newPostbox()
	m := newManager(t, manager.Options{Config: p.config()})
	recorder := m.EventRecorderFor("website")
	stop, wait := run(t, m)
	recorder.Event(newConfigMap("a"), corev1.EventTypeNormal, "Plain", "as it is: %s")
	recorder.Eventf(&corev1.ObjectReference{Kind: "ConfigMap", Namespace: "ns", Name: "b"}, corev1.EventTypeWarning, "Formatted", "%d of %d", 1, 2)
	recorder.AnnotatedEventf(newConfigMap("a"), map[string]string{"k": "v"}, corev1.EventTypeNormal, "Annotated", "x")
	recorder.Event(nil, corev1.EventTypeNormal, "Nobody", "is told of nothing")
	stop()
	must(t, wait())
	got := map[string]string{}
	for _, e := range p.events {
		got[e.Reason] = e.Action + " " + e.ReportingController + " " + e.Regarding.Name + " " + e.Type + " " + e.Note + " " + e.Annotations["k"]
	}
	want := map[string]string{
		"Plain":     "Plain website a Normal as it is: %s ",
		"Formatted": "Formatted website b Warning 1 of 2 ",
		"Annotated": "Annotated website a Normal x v",
	}
	if !maps.Equal(got, want) {
		t.Errorf("sent %q, want %q; reasons %v", got, want, slices.Collect(maps.Keys(got)))
	}
}
