// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Format is the version of the files that this package writes, and the only one that it reads.
const Format = "flyball-recording-1"

// Head is what bundle.json says.
type Head struct {
	Format string `json:"format"`
	// Program is the name of the executable.
	Program string `json:"program"`
	// Began is when the Window was opened; times of entries count from then.
	Began time.Time `json:"began"`
	// Redact are the fields that Options.Redact named.
	Redact []string `json:"redact,omitempty"`
}

// End is what end.json says. A bundle without it was cut off.
type End struct {
	Entries int `json:"entries"`
	// Reason is why the Window ended.
	Reason string `json:"reason"`
}

// What an Entry is.
type What string

const (
	// Informer begins the state of an informer: Kind, Resource and Metadata say which. Another of the
	// same number tells what was not known at the first.
	Informer What = "informer"
	// Object is one object of that state.
	Object What = "object"
	// Event is a change of an informer's objects, as its watch or list said; Type is that of a watch
	// event. A bookmark has a Version alone.
	Event What = "event"
	// Begin and Done are a reconcile's.
	Begin What = "begin"
	Done  What = "end"
	// Request and Answer are a reconcile's; Number pairs them.
	Request What = "request"
	Answer  What = "answer"
	// Clock and Chance are what a reconcile was given.
	Clock  What = "clock"
	Chance What = "chance"
)

// Apply begins the Type of a request that is a server-side apply.
const Apply = "application/apply-patch"

// Entry is a line of the log. What says which fields are set.
type Entry struct {
	// At is when, in nanoseconds since the Window was opened.
	At   time.Duration `json:"at"`
	What What          `json:"what"`

	// Of informers.
	Informer   int                     `json:"informer,omitempty"` // from 1
	Kind       schema.GroupVersionKind `json:"kind,omitzero"`
	Resource   string                  `json:"resource,omitempty"`
	Namespaced bool                    `json:"namespaced,omitempty"`
	Metadata   bool                    `json:"metadata,omitempty"` // it has the metadata of objects alone
	Type       string                  `json:"type,omitempty"`
	Version    string                  `json:"version,omitempty"`
	Object     json.RawMessage         `json:"object,omitempty"`

	// Of reconciles.
	Run        int           `json:"run,omitempty"` // from 1
	Controller string        `json:"controller,omitempty"`
	Key        string        `json:"key,omitempty"`
	Causes     string        `json:"causes,omitempty"`
	Outcome    string        `json:"outcome,omitempty"`
	After      time.Duration `json:"after,omitempty"` // the requested time until the next run
	Error      string        `json:"error,omitempty"`
	Number     int           `json:"number,omitempty"` // from 1, in a reconcile
	Method     string        `json:"method,omitempty"`
	Path       string        `json:"path,omitempty"`       // with the query
	Code       int           `json:"code,omitempty"`       // 0: no answer came
	RetryAfter string        `json:"retryAfter,omitempty"` // the header, which clients obey
	Body       Body          `json:"body,omitzero"`
	Time       time.Time     `json:"time,omitzero"`
	Chance     float64       `json:"chance,omitempty"`
}

// Body is that of a request or an answer, with what is hidden hidden.
type Body struct {
	JSON json.RawMessage `json:"json,omitempty"`
	// Text of a body that is not JSON.
	Text string `json:"text,omitempty"`
	// Missing is why the body is not here; empty: it is.
	Missing string `json:"missing,omitempty"`
}
