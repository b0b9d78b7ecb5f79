// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// PastRun is a reconcile that has ended, as Controller.Runs returns it. It has no values of
// objects' fields.
type PastRun struct {
	// ID is the reconcileID of the logs.
	ID string
	// Began is when it began.
	Began time.Time
	// Waited is how long the key had waited then, since its first cause was added. 0: no cause is
	// recorded. The wait for a retry or a timer counts.
	Waited time.Duration
	// Took is how long it ran.
	Took time.Duration
	// Causes are why it ran, as CausesOf returned them.
	Causes Causes
	// Outcome is how it ended.
	Outcome Outcome
	// After is the RequeueAfter of OutcomeAfter.
	After time.Duration
	// Reason of its Result, up to 256 bytes.
	Reason string
	// Err is the text of its error, up to 512 bytes.
	Err string
	// Requests that it sent with its context, through clients with the manager's configuration, in
	// their order; the first 32.
	Requests []Request
	// MoreRequests is how many others it sent.
	MoreRequests int
}

// Request is one request of a PastRun to the API server. A retry is another request.
type Request struct {
	// Verb as in rules of RBAC: get, list, watch, create, update, patch, delete or
	// deletecollection; apply for a server-side apply. Of a request for no resource its
	// method in lower case.
	Verb string
	// Resource and Subresource. Empty: the request is for no resource.
	Resource    schema.GroupResource
	Subresource string
	// Kind of the resource, if an informer watches it or a client of package client has sent it.
	Kind string
	// Key of the object. The name is empty for a list, a collection, and a create.
	Key Key
	// Path of a request for no resource, such as /version, up to 512 bytes.
	Path string
	// Sent is when it was sent.
	Sent time.Time
	// Took is how long it took until the answer had been read, or the reconcile ended.
	Took time.Duration
	// Code is the status of the answer. 0: there was none before the reconcile ended.
	Code int
	// BytesSent and BytesReceived are the sizes of the bodies, without compression.
	BytesSent, BytesReceived int64
	// Effect of a write: "created", "changed", "deleted", or "nothing" if the object is in the
	// version that it had. Empty: it is a read, has failed, or its object is not watched. It compares
	// the object that the informers had before the request with the one that the server answered
	// with; if they lagged behind, it includes what others had changed by then.
	Effect string
	// Fields that a write has changed, such as spec.replicas or metadata.labels["app"]; the first 8.
	// Empty although Effect is "changed": they are not known, or are none that the informer keeps, as
	// in a change of managedFields.
	Fields []string
	// MoreFields is how many others it has changed.
	MoreFields int
}

// KeyRuns sums up the past runs of a key.
type KeyRuns struct {
	// Key as in the logs.
	Key string
	// Runs is how many have ended since the key was first recorded, and Recorded how many of them
	// Controller.Runs returns.
	Runs, Recorded int
	// Began and Ended are those of the last run.
	Began, Ended time.Time
	// Outcome and Err of the last run.
	Outcome Outcome
	Err     string
	// FailingSince is when the first of the runs ended that have failed in a row: with an error, a
	// terminal error, a panic or a timeout. Conflicts and stops do not count. Zero: the last one did
	// not fail.
	FailingSince time.Time
}

// KeysQuery selects recorded keys.
type KeysQuery struct {
	// Key is the only one wanted, as in the logs. Empty: all are.
	Key string
	// Match reports whether a key is wanted. Nil: all are.
	Match func(KeyRuns) bool
	// Compare sorts the keys, as for slices.SortFunc. Nil: the last run first.
	Compare func(a, b KeyRuns) int
	// Skip and Limit select a page. A Limit of 0: 100. Negative: no limit.
	Skip, Limit int
}

// KeysPage is the answer to a KeysQuery.
type KeysPage struct {
	// Keys of the page.
	Keys []KeyRuns
	// Matching is how many keys match, and Recorded how many there are.
	Matching, Recorded int
	// Outcomes counts the matching keys by the outcome of their last run.
	Outcomes map[Outcome]int
	// Failing counts the matching keys whose last run failed.
	Failing int
	// Bytes is the memory that the runs of all keys take, within 20 percent.
	Bytes int64
}
