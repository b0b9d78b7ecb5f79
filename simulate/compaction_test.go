// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// changed stores a ConfigMap anew, and returns its version.
func changed(t *testing.T, s *Server, value int) string {
	t.Helper()
	version, err := s.Put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Data: map[string]string{"v": fmt.Sprint(value)}})
	if err != nil {
		t.Fatal(err)
	}
	return version
}

// What was there before the last round of five minutes but one can be neither
// watched from nor listed; what came after it can.
func TestServer_HistoryIsForgotten_S4(t *testing.T) {
	for _, c := range []struct {
		every time.Duration
		age   time.Duration // of the version that is asked for
		gone  bool
	}{
		{0, 5 * time.Minute, false},
		{0, 10*time.Minute - 2*time.Second, false},
		{0, 10 * time.Minute, true},
		{0, time.Hour, true},
		{time.Second, 3 * time.Second, true},
		{-1, 24 * time.Hour, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := New(Options{CompactEvery: c.every, Namespaces: []string{"ns"}})
			old := changed(t, s, 0)
			changed(t, s, 1)
			for begin, n := time.Now(), 2; time.Since(begin) < c.age; n++ {
				time.Sleep(c.age / 2)
				changed(t, s, n)
			}
			for path, want := range map[string]string{
				mapsPath + "?watch=true&timeoutSeconds=1&resourceVersion=" + old: `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version`,
				mapsPath + "?resourceVersionMatch=Exact&resourceVersion=" + old:  "The resourceVersion for the provided list is too old.",
			} {
				answer := httptest.NewRecorder()
				s.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
				if gone := strings.Contains(answer.Body.String(), want); gone != c.gone {
					t.Errorf("every %v, %s of %v ago: got %d %.200s, want it gone: %v", c.every, path, c.age, answer.Code, answer.Body, c.gone)
				}
			}
		})
	}
}

// An open watch loses nothing by that.
func TestServer_HistoryIsForgottenBehindOpenWatches_S1(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Namespaces: []string{"ns"}})
		answer := httptest.NewRecorder()
		var watching sync.WaitGroup
		watching.Go(func() {
			s.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, mapsPath+"?watch=true&timeoutSeconds=3600", nil))
		})
		const changes = 20
		for n := range changes {
			time.Sleep(2 * time.Minute)
			changed(t, s, n)
		}
		watching.Wait()
		if got := strings.Count(answer.Body.String(), "\n"); got != changes || strings.Contains(answer.Body.String(), "ERROR") {
			t.Errorf("got %d events, want %d: %.300s", got, changes, answer.Body)
		}
	})
}

// deaf is a client that takes the header of an answer, and then nothing until
// it listens.
type deaf struct {
	*httptest.ResponseRecorder
	listens chan struct{}
}

func (d deaf) Write(p []byte) (int, error) {
	<-d.listens
	return d.ResponseRecorder.Write(p)
}

// unreadAtMost is how many events a watch may leave unread for longer than a second.
const unreadAtMost = 1000

// A watch that nobody reads ends when it has missed too much; one that is read
// late but in time, or all at once, does not.
func TestServer_UnreadWatchEnds_S1(t *testing.T) {
	for name, c := range map[string]struct {
		events int
		over   time.Duration // for how long they come
		ends   bool
	}{
		"many for long": {3 * unreadAtMost, time.Minute, true},
		"many at once":  {3 * unreadAtMost, 0, false},
		"few for long":  {unreadAtMost / 2, time.Hour, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := New(Options{Namespaces: []string{"ns"}})
			client := deaf{httptest.NewRecorder(), make(chan struct{})}
			over := make(chan struct{})
			go func() {
				defer close(over)
				s.ServeHTTP(client, httptest.NewRequest(http.MethodGet, mapsPath+"?watch=true&timeoutSeconds=7200", nil))
			}()
			synctest.Wait()
			changed(t, s, -1)
			synctest.Wait() // it is being sent
			for n := range c.events {
				time.Sleep(c.over / time.Duration(c.events))
				changed(t, s, n)
			}
			if ended := s.Watches(object.ConfigMaps) == 0; ended != c.ends {
				t.Errorf("%s: the watch has ended: %v, want %v", name, ended, c.ends)
			}
			close(client.listens)
			<-over
			if got := strings.Count(client.Body.String(), "\n"); c.ends != (got < c.events) {
				t.Errorf("%s: got %d events of %d", name, got, c.events)
			}
		})
	}
}
