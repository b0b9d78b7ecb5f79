// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var (
	olderEvents = schema.GroupResource{Resource: "events"}
	newerEvents = schema.GroupResource{Group: "events.k8s.io", Resource: "events"}
)

// What is put, found, selected or removed as an Event of one group is one of the
// other.
func TestServer_EventsOfBothGroupsAreOne(t *testing.T) {
	s := New(Options{})
	about := corev1.ObjectReference{Kind: "Pod", Name: "p"}
	for _, put := range []runtime.Object{
		&eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Regarding: about, Note: "n", ReportingController: "c"},
		&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"}, InvolvedObject: about, Message: "n", ReportingController: "c"},
	} {
		if _, err := s.Put(put); err != nil {
			t.Fatal(err)
		}
	}
	for path, check := range map[string]func(text []byte) (n int, notes string, err error){
		"/api/v1/events?fieldSelector=involvedObject.name%3Dp,reportingComponent%3Dc": func(text []byte) (int, string, error) {
			var list corev1.EventList
			err := json.Unmarshal(text, &list)
			notes := ""
			for _, e := range list.Items {
				notes += e.Message + e.InvolvedObject.Kind + e.ReportingController
			}
			return len(list.Items), notes, err
		},
		"/apis/events.k8s.io/v1/events?fieldSelector=regarding.name%3Dp,reportingController%3Dc": func(text []byte) (int, string, error) {
			var list eventsv1.EventList
			err := json.Unmarshal(text, &list)
			notes := ""
			for _, e := range list.Items {
				notes += e.Note + e.Regarding.Kind + e.ReportingController
			}
			return len(list.Items), notes, err
		},
	} {
		answer := httptest.NewRecorder()
		s.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		if n, notes, err := check(answer.Body.Bytes()); err != nil || n != 2 || notes != "nPodcnPodc" {
			t.Errorf("%s: got %d events of %q (%v), want two of nPodc: %s", path, n, notes, err, answer.Body)
		}
	}
	for r, name := range map[string]string{"": "a", "events.k8s.io": "b"} {
		resource := olderEvents
		resource.Group = r
		if err := s.Remove(resource, types.NamespacedName{Namespace: "default", Name: name}); err != nil {
			t.Error(err)
		}
	}
	if here, there := s.Objects(olderEvents), s.Objects(newerEvents); len(here) != 0 || len(there) != 0 {
		t.Errorf("got %d and %d events, want none: they were removed", len(here), len(there))
	}
}

// Events go in both of their groups, whichever is named, and each is told of.
func TestServer_EventsAreUninstalledInBothGroups(t *testing.T) {
	for _, r := range []schema.GroupResource{olderEvents, newerEvents} {
		s := New(Options{})
		if _, err := s.Put(&corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, InvolvedObject: corev1.ObjectReference{Namespace: "default"}}); err != nil {
			t.Fatal(err)
		}
		before := s.Revision()
		s.Uninstall(r)
		if left := s.Objects(olderEvents); len(left) != 0 || s.Revision() == before {
			t.Errorf("Uninstall(%s) leaves %d events at revision %d, want none at another than %d", r, len(left), s.Revision(), before)
		}
		for _, path := range []string{"/api/v1/events", "/apis/events.k8s.io/v1/events"} {
			answer := httptest.NewRecorder()
			if s.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil)); answer.Code != http.StatusNotFound {
				t.Errorf("after Uninstall(%s) %s is answered %d, want 404", r, path, answer.Code)
			}
		}
	}
}
