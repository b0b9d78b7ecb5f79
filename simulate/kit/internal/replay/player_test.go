// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/recording"
)

const (
	path     = "/apis/apps/v1/namespaces/shop/deployments/web?fieldManager=web&force=true"
	apply    = "application/apply-patch+yaml"
	merge    = "application/merge-patch+json"
	deployed = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"shop","name":"web","resourceVersion":"3","labels":{"app":"web"}},"spec":{"replicas":2,"template":{"spec":{"containers":[{"name":"side"},{"name":"web","image":"nginx"}]}}}}`
)

// playing returns a player with a cached Deployment and a reconcile that has sent requests.
func playing(t *testing.T, requests ...recording.Entry) (*player, *run) {
	t.Helper()
	kind := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	b := &recording.Bundle{Entries: []recording.Entry{
		{What: recording.Informer, Informer: 1, Kind: kind, Resource: "deployments"},
		{What: recording.Object, Informer: 1, Object: json.RawMessage(deployed)},
		{What: recording.Begin, Run: 1, Controller: "web", Key: "shop/web", Causes: "updated"},
	}}
	for i := range requests {
		requests[i].Run, requests[i].What, requests[i].Number = 1, recording.Request, i+1
	}
	b.Entries = append(b.Entries, requests...)
	p := newPlayer(b, nil, nil)
	if err := p.informers.start(b.Entries); err != nil {
		t.Fatal(err)
	}
	return p, p.runs[1]
}

func recordedPatch(kind, body string) recording.Entry {
	return recording.Entry{Method: http.MethodPatch, Path: path, Type: kind, Body: recording.Body{JSON: json.RawMessage(body)}}
}

func sentPatch(kind, body string) *call {
	return &call{method: http.MethodPatch, path: path, patch: kind, body: []byte(body), answered: make(chan *recording.Entry, 1)}
}

func TestPlayer_ComparesRequests_K17(t *testing.T) {
	const unchanged = `{"spec":{"replicas":2,"template":{"spec":{"containers":[{"name":"web","image":"nginx"}]}}}}`
	for name, c := range map[string]struct {
		recorded recording.Entry
		replayed *call // nil: nothing
		says     string
		omitted  bool // the replay's is answered, and the recorded one waited for
	}{
		"equal":                         {recordedPatch(apply, `{"spec":{"replicas":3}}`), sentPatch(apply, `{"spec": {"replicas": 3}}`), "", false},
		"another value":                 {recordedPatch(apply, `{"spec":{"replicas":3}}`), sentPatch(apply, `{"spec":{"replicas":4}}`), "spec.replicas: 3 recorded, 4 replayed", false},
		"a field less, of no effect":    {recordedPatch(apply, unchanged), sentPatch(apply, `{"spec":{}}`), "spec.replicas: 2 recorded, nothing replayed", false},
		"a field more":                  {recordedPatch(apply, `{"spec":{}}`), sentPatch(apply, unchanged), "spec.replicas: nothing recorded, 2 replayed", false},
		"another type of patch":         {recordedPatch(apply, `{"a":1}`), sentPatch(merge, `{"a":1}`), `which is of the type "` + merge, false},
		"null is not nothing":           {recordedPatch(merge, `{"a":null}`), sentPatch(merge, `{}`), "a: null recorded, nothing replayed", false},
		"all digits":                    {recordedPatch(merge, `{"a":9007199254740993}`), sentPatch(merge, `{"a":9007199254740992}`), "a: 9007199254740993 recorded", false},
		"omitted, changes nothing":      {recordedPatch(apply, unchanged), nil, "", false},
		"omitted, changes something":    {recordedPatch(apply, `{"spec":{"replicas":3}}`), nil, "has sent nothing", false},
		"a merge patch is not omitted":  {recordedPatch(merge, unchanged), nil, "has sent nothing", false},
		"a list of another length":      {recordedPatch(merge, `{"a":[1]}`), sentPatch(merge, `{"a":[1,2]}`), "a: [1] recorded, [1,2] replayed", false},
		"times":                         {recordedPatch(merge, `{"a":"2026-01-02T03:04:05Z"}`), sentPatch(merge, `{"a":"2000-01-01T00:00:00Z"}`), "take the time from reconcile.Now", false},
		"one that the recorded omitted": {recording.Entry{Method: "GET", Path: "/api/v1/x"}, sentPatch(apply, unchanged), "has sent nothing", true},
		"one that the recorded had not": {recording.Entry{Method: "GET", Path: "/api/v1/x"}, sentPatch(apply, `{"spec":{"replicas":3}}`), "the replayed program sends\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			p, r := playing(t, c.recorded)
			if c.replayed != nil {
				r.pending = []*call{c.replayed}
			}
			err := p.sent(r, r.requests[0])
			early, is := errors.AsType[notYet](err)
			if is {
				err = early.error
			}
			if (c.says == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("the difference is %v, want %q", err, c.says)
			}
			if c.omitted != (c.replayed != nil && len(c.replayed.answered) == 1) {
				t.Errorf("it is answered: %v, want %v", !c.omitted, c.omitted)
			}
		})
	}
}

func TestPlayer_ComparesEnds_K17(t *testing.T) {
	for name, c := range map[string]struct {
		recorded recording.Entry
		outcome  string
		after    time.Duration
		says     string
	}{
		"equal":          {recording.Entry{Outcome: "after", After: time.Minute}, "after", time.Minute + 500*time.Millisecond, ""},
		"another time":   {recording.Entry{Outcome: "after", After: time.Minute}, "after", time.Hour, "asked to run again after 1m0s"},
		"another result": {recording.Entry{Outcome: "error", Error: "bad"}, "done", 0, "ended, as error: bad"},
	} {
		t.Run(name, func(t *testing.T) {
			p, r := playing(t)
			r.ended, r.outcome, r.after = true, c.outcome, c.after
			if err := p.done(r, &c.recorded); (c.says == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("the difference is %v, want %q", err, c.says)
			}
		})
	}
}

// A crafted recording is an error, and does not hang or panic.
func TestPlayer_BadRecordings(t *testing.T) {
	for name, entries := range map[string][]recording.Entry{
		"an event before the state":   {{What: recording.Event, Informer: 7, Type: "ADDED", Object: json.RawMessage(deployed)}},
		"an object that is not there": {{What: recording.Informer, Informer: 1}, {What: recording.Object, Informer: 1}},
		"an object that is a list":    {{What: recording.Informer, Informer: 1}, {What: recording.Object, Informer: 1, Object: json.RawMessage(`[1]`)}},
		"an event without an object":  {{What: recording.Informer, Informer: 1}, {What: recording.Event, Informer: 1, Type: "MODIFIED"}},
	} {
		t.Run(name, func(t *testing.T) {
			var s informers
			var err error
			for _, e := range entries {
				err = errors.Join(err, s.take(e))
			}
			if err == nil {
				t.Error("it is taken")
			}
		})
	}
	p, r := playing(t, recording.Entry{Method: "GET", Path: "/api/v1/x"})
	c := &call{method: "GET", path: "/api/v1/x", answered: make(chan *recording.Entry, 1)}
	r.pending = []*call{c}
	answer := &recording.Entry{What: recording.Answer, Run: 1, Number: 1, Code: 200}
	for _, err := range []error{p.sent(r, r.requests[0]), p.answer(r, answer), p.answer(r, answer), p.answer(r, &recording.Entry{Number: 99})} {
		if err != nil {
			t.Error(err)
		}
	}
}
