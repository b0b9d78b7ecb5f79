// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VerbDiscover is the verb of requests for the resources of a group and
// version.
const VerbDiscover = "discover"

// Answered returns what answer says about the server's load. err is the error in
// it, or nil.
func Answered(answer *http.Response, err error, aside bool) reply {
	r := reply{verdict: verdictServed, level: priorityLevel(answer.Header), aside: aside}
	switch code := answer.StatusCode; {
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		r.verdict, r.why = verdictRefused, err.Error()
		if apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
			// Storages answer with a Status. Priority and fairness, a server
			// that is shutting down, and proxies do not.
			r.verdict = verdictBlocked
		}
	case code >= http.StatusInternalServerError:
		r.verdict, r.why = verdictFaulty, err.Error()
	}
	return r
}

// Unanswered is the reply for a request that failed with err.
func Unanswered(ctx context.Context, err error, aside bool) reply {
	r := reply{verdict: verdictLost, aside: aside, why: err.Error()}
	if ctx.Err() != nil {
		r.verdict = verdictGaveUp
	} else if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		r.verdict = verdictDead
	}
	return r
}

// priorityLevel returns the UID in header. An aggregated API server adds its
// own to that of kube-apiserver: two values count as none.
func priorityLevel(header http.Header) string {
	if named := header.Values("X-Kubernetes-PF-PriorityLevel-UID"); len(named) == 1 {
		return named[0]
	}
	return ""
}

// AskedToWait returns the Retry-After of a 429 or 503.
func AskedToWait(err error) time.Duration {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || status.ErrStatus.Details == nil {
		return 0
	}
	if code := status.ErrStatus.Code; code != http.StatusTooManyRequests && code != http.StatusServiceUnavailable {
		return 0
	}
	return time.Duration(max(status.ErrStatus.Details.RetryAfterSeconds, 0)) * time.Second
}
