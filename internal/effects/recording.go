// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/flyball-dev/flyball/internal/contextvalues"
)

// Recording records the requests of reconciles with them: those of whatever client, whose context
// belongs to one.
type Recording struct {
	*Observer
	cache contextvalues.Cache
}

// Recording returns a Recording of the requests to the server of o, whose watched objects are in
// cache.
func (o *Observer) Recording(cache contextvalues.Cache) Recording { return Recording{o, cache} }

// Wrap records the requests that pass next, and writes them to a recording that is being made.
func (r Recording) Wrap(next http.RoundTripper) http.RoundTripper { return recorded{next, r} }

type recorded struct {
	next http.RoundTripper
	Recording
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (t recorded) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper.
func (t recorded) RoundTrip(req *http.Request) (*http.Response, error) {
	task := contextvalues.TaskOf(req.Context())
	if task == nil {
		return t.next.RoundTrip(req)
	}
	number := -1
	if task.Records() {
		number = task.Sent(t.request(req))
	}
	resp, err := t.send(req, contextvalues.RecordingOf(task))
	if number < 0 {
		return resp, err
	}
	if err != nil {
		task.Answered(number, contextvalues.Answer{Ended: true})
		return resp, err
	}
	task.Answered(number, contextvalues.Answer{Code: resp.StatusCode})
	if resp.Body != nil && resp.StatusCode != http.StatusSwitchingProtocols {
		resp.Body = &recordedBody{ReadCloser: resp.Body, task: task, number: number, code: resp.StatusCode}
	}
	return resp, nil
}

// request returns what is recorded of req when it is sent.
func (r Recording) request(req *http.Request) contextvalues.Request {
	out := contextvalues.Request{Bytes: max(req.ContentLength, 0)} // of another server, whose paths may be secret, no more
	var to Target
	ok := false
	if req.URL.Host == r.host {
		below, is := strings.CutPrefix(req.URL.Path, r.prefix)
		if out.Path = below; is {
			to, ok = Parse(below, "")
		}
	}
	if out.Verb = verbOf(req, to); !ok {
		out.Verb = strings.ToLower(req.Method)
		return out
	}
	out.Path = strings.TrimSuffix(strings.TrimSuffix(out.Path, to.Rest), "/")
	out.Version, out.Key = to.Resource.GroupVersion(), to.Key
	if by := ReporterOf(req.Context()); by != nil {
		out.Kind = by.Kind().Kind
	} else {
		kind, _ := r.kinds.WatchedKind(to.Resource)
		out.Kind = kind.Kind
	}
	if out.Kind != "" && req.Method != http.MethodGet && changes(to.Subresource) {
		out.Cache = r.cache
	}
	return out
}

// verbOf returns the verb of a request for a resource, as rules of RBAC name it, and "apply" for a
// server-side apply.
func verbOf(req *http.Request, to Target) string {
	one := to.Key.Name != ""
	switch req.Method {
	case http.MethodGet:
		switch query := req.URL.RawQuery; {
		case strings.Contains(query, "watch=true") || strings.Contains(query, "watch=1"):
			return "watch"
		case one:
			return "get"
		}
		return "list"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		if strings.HasPrefix(req.Header.Get("Content-Type"), "application/apply-patch") {
			return "apply"
		}
		return "patch"
	case http.MethodDelete:
		if one {
			return "delete"
		}
		return "deletecollection"
	}
	return strings.ToLower(req.Method)
}

// recordedBody is the body of an answer, whose end is recorded. One goroutine reads it; any may
// close it.
type recordedBody struct {
	io.ReadCloser
	task   contextvalues.Task
	number int
	code   int
	read   atomic.Int64
	ended  atomic.Bool
}

// Read implements io.Reader.
func (b *recordedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.read.Add(int64(n)); err != nil {
		b.end()
	}
	return n, err
}

// Close implements io.Closer.
func (b *recordedBody) Close() error {
	b.end()
	return b.ReadCloser.Close()
}

func (b *recordedBody) end() {
	if b.ended.CompareAndSwap(false, true) {
		b.task.Answered(b.number, contextvalues.Answer{Code: b.code, Bytes: b.read.Load(), Ended: true})
	}
}
