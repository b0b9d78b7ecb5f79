// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What answers say about the server's load.
func TestPacer_JudgesAnswers_A23(t *testing.T) {
	const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"storage is (re)initializing","reason":"TooManyRequests","code":429}`
	for _, c := range []struct {
		name  string
		code  int
		body  string
		level []string
		want  verdict
		named string
		after time.Duration
	}{
		{"an answer", 200, `{}`, []string{"low"}, verdictServed, "low", 0},
		{"a missing right", 403, `{}`, []string{"low"}, verdictServed, "low", 0},
		{"a storage that is not ready", 429, status, []string{"low"}, verdictRefused, "low", 3 * time.Second},
		{"priority and fairness", 429, "Too many requests, please try again later.\n", []string{"low"}, verdictBlocked, "low", 7 * time.Second},
		{"an aggregated server's", 429, "Too many requests, please try again later.\n", []string{"low", "its own"}, verdictBlocked, "", 7 * time.Second},
		{"a proxy", 503, "<html>", nil, verdictBlocked, "", 7 * time.Second},
		{"an internal error", 500, `{}`, []string{"low"}, verdictFaulty, "low", 0},
	} {
		answer := &http.Response{StatusCode: c.code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(c.body))}
		for _, level := range c.level {
			answer.Header.Add("X-Kubernetes-PF-PriorityLevel-UID", level)
		}
		var err error
		if c.code != http.StatusOK {
			answer.Header.Set("Retry-After", "7")
			isStatus := c.body == status
			err = apierrors.NewGenericServerResponse(c.code, "list", schema.GroupResource{Resource: "pods"}, "", c.body, int(c.after/time.Second), !isStatus)
		}
		r := Answered(answer, err, false)
		if r.verdict != c.want || r.level != c.named || AskedToWait(err) != c.after {
			t.Errorf("%s: got verdict %d of level %q, to wait for %s; want %d, %q, %s", c.name, r.verdict, r.level, AskedToWait(err), c.want, c.named, c.after)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	dial := &url.Error{Op: "Get", Err: &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}}
	for _, c := range []struct {
		name string
		ctx  context.Context
		err  error
		want verdict
	}{
		{"no connection", t.Context(), dial, verdictDead},
		{"a broken connection", t.Context(), &net.OpError{Op: "read", Err: syscall.ECONNRESET}, verdictLost},
		{"an end of its own", ended, dial, verdictGaveUp},
		{"another error", t.Context(), errors.New("stream error"), verdictLost},
	} {
		if r := Unanswered(c.ctx, c.err, false); r.verdict != c.want {
			t.Errorf("%s: got verdict %d, want %d", c.name, r.verdict, c.want)
		}
	}
}
