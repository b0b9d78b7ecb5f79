// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/flyball-dev/flyball/internal/contextvalues"
	"github.com/flyball-dev/flyball/internal/recording"
)

func TestPathOf_HasNoCredentials_M28(t *testing.T) {
	for path, want := range map[string]string{
		web + "?fieldManager=x&force=true":                     web + "?fieldManager=x&force=true",
		all + "?labelSelector=a%3Db&continue=eyJ2IjoibWV0YSJ9": all + "?labelSelector=a%3Db&continue=eyJ2IjoibWV0YSJ9",
		all + "?labelSelector=password%3Dc4n4ry&limit=1":       all + "?labelSelector=%28hidden%29&limit=1",
		all + "?token=c4n4ry":                                  all + "?token=%28hidden%29",
		all + "?x=%zz":                                         all + "?x=%28hidden%29",
		"/api/v1/namespaces/a/pods/b/exec?command=c4n4ry":      "/api/v1/namespaces/a/pods/b/exec",
		"/api/v1/namespaces/a/pods/b/attach?x=c4n4ry":          "/api/v1/namespaces/a/pods/b/attach",
		"/api/v1/namespaces/a/services/b/proxy/c4n4ry/?x=y":    "/api/v1/namespaces/a/services/b/proxy",
		"/api/v1/nodes/b/proxy":                                "/api/v1/nodes/b/proxy",
	} {
		if got := PathOf(request(t, "GET", path, ""), "/prefix"); got != want {
			t.Errorf("%s is written as %s, want %s", path, got, want)
		}
	}
}

// transcribing is a task with a recording.
type transcribing struct {
	task
	run *recording.Run
}

func (t *transcribing) Recording() *recording.Run { return t.run }

// transcribed returns what a recording has after do has used a transport to server.
func transcribed(t *testing.T, server transport, do func(rt http.RoundTripper, ctx context.Context)) []recording.Entry {
	t.Helper()
	var r recording.Recorder
	w, err := r.Open(recording.Options{Decode: func(kind string, body []byte) (any, error) { return Tree(nil, kind, body) }})
	if err != nil {
		t.Fatal(err)
	}
	by := &transcribing{task: task{off: true}, run: w.Begin("c", "k", "")}
	rt, ctx := recordedBy(t, &by.task, server)
	do(rt, context.WithValue(ctx, contextvalues.TaskKey{}, by))
	r.Stop()
	var out bytes.Buffer
	if err := w.Write(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	b, err := recording.Read(&out)
	if err != nil {
		t.Fatal(err)
	}
	return b.Entries[1:]
}

// The caller's request stays as it is, and the server gets the whole body.
func TestTranscribed_LeavesTheRequestAlone(t *testing.T) {
	var got []byte
	server := func(req *http.Request) (*http.Response, error) {
		got, _ = io.ReadAll(req.Body)
		return answer(500, "{}"), nil
	}
	entries := transcribed(t, server, func(rt http.RoundTripper, ctx context.Context) {
		for _, length := range []int64{-1, largestTranscribed + 1} {
			req := request(t, "PUT", web, "").WithContext(ctx)
			body := io.NopCloser(strings.NewReader(`{"a":"b"}`))
			req.Body, req.GetBody, req.ContentLength = body, nil, length
			resp, err := rt.RoundTrip(req)
			if err != nil || req.Body != body || string(got) != `{"a":"b"}` {
				t.Errorf("the body of the request is %v, the server gets %s, %v", req.Body, got, err)
			}
			_ = resp.Body.Close()
		}
	})
	if string(entries[0].Body.JSON) != `{"a":"b"}` || entries[2].Body.Missing != tooLarge {
		t.Errorf("the recording has %+v", entries)
	}
}

// A stream is one that the API server takes for one, and what goes to another server has no body.
func TestTranscribed_StreamsHaveNoBody(t *testing.T) {
	for path, want := range map[string]string{
		all + "?watch=true": "it is a stream", all + "?watch=1": "it is a stream", all + "?watch": "it is a stream",
		all + "?watch=false": "", all + "?watch=0": "", all + "?labelSelector=watch%3D1": "",
		"/api/v1/namespaces/a/pods/b/log?follow=true": "it is a stream",
		"/api/v1/nodes/b/proxy/x":                     notRecorded,
	} {
		entries := transcribed(t, func(*http.Request) (*http.Response, error) { return answer(200, `{"a":"c4n4ry"}`), nil }, func(rt http.RoundTripper, ctx context.Context) {
			resp, err := rt.RoundTrip(request(t, "POST", path, `{"a":"c4n4ry"}`).WithContext(ctx))
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.ReadAll(resp.Body)
			_ = resp.Body.Close()
		})
		if len(entries) != 2 || entries[1].Body.Missing != want || (entries[0].Body.Missing == notRecorded) != (want == notRecorded) {
			t.Errorf("%s: the recording has %+v, want an answer without a body because %q", path, entries, want)
		}
	}
}

// A body that is closed while it is read is written once.
func TestTranscribed_CloseWhileItIsRead(t *testing.T) {
	entries := transcribed(t, func(*http.Request) (*http.Response, error) {
		resp := answer(200, "")
		resp.Body = io.NopCloser(strings.NewReader(`{"a":"` + strings.Repeat("x", 1<<20) + `"}`))
		return resp, nil
	}, func(rt http.RoundTripper, ctx context.Context) {
		for range 20 {
			resp, err := rt.RoundTrip(request(t, "GET", web, "").WithContext(ctx))
			if err != nil {
				t.Fatal(err)
			}
			var both sync.WaitGroup
			both.Go(func() { _, _ = io.Copy(io.Discard, resp.Body) })
			both.Go(func() { _ = resp.Body.Close() })
			both.Wait()
		}
	})
	if len(entries) != 40 {
		t.Errorf("the recording has %d entries, want 20 requests and their answers", len(entries))
	}
}
