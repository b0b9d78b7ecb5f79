// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import "time"

// KeyRow is one key of a controller in short.
type KeyRow struct {
	Key string `json:"key"`
	// State in the queue: "ready", "held", "held and dirty", "delayed", "counted", or "idle":
	// the queue does not have it; "paused": it was woken, and runs when it is resumed.
	State string `json:"state"`
	// AgeSeconds in the state, and when a delayed key is due.
	AgeSeconds float64   `json:"ageSeconds"`
	Due        time.Time `json:"due,omitzero"`
	// Attempts that have failed in a row.
	Attempts int `json:"attempts"`
	// Outcome and end of the last recorded run, the error if it failed, and since when the runs
	// have failed, conflicts left out.
	Outcome      string    `json:"outcome,omitempty"`
	Ended        time.Time `json:"ended,omitzero"`
	Error        string    `json:"error,omitempty"`
	FailingSince time.Time `json:"failingSince,omitzero"`
	// Runs that have ended since the key was first recorded.
	Runs int `json:"runs"`
	// Paused is why it does not run; absent: it does.
	Paused *Paused `json:"paused,omitempty"`
}

// Paused is who has paused a controller or a key, and when.
type Paused struct {
	By    string    `json:"by"`
	Since time.Time `json:"since"`
}

// KeyPage is one page of a controller's keys: GET controllers/NAME/keys.
type KeyPage struct {
	Version    string `json:"version"`
	Controller string `json:"controller"`
	// Keys that are known, and those of them that the filter has left.
	Known   int `json:"known"`
	Matched int `json:"matched"`
	// Paused is why the controller does not run; absent: it does. Woken paused keys run when they are
	// resumed.
	Paused *Paused  `json:"paused,omitempty"`
	Woken  int      `json:"woken,omitempty"`
	Keys   []KeyRow `json:"keys"`
	// Next is the offset of the next page; 0: this is the last one.
	Next int `json:"next,omitempty"`
}

// Key is one key with its recorded runs, the newest first: GET controllers/NAME/key?key=….
type Key struct {
	Version    string `json:"version"`
	Controller string `json:"controller"`
	KeyRow
	// PausedItself: it is paused by itself, and not only with its controller.
	PausedItself bool `json:"pausedItself,omitempty"`
	// Place is the shard that it belongs to; absent: not known, or nothing is shared.
	Place *Place `json:"place,omitempty"`
	// Findings are what its recorded runs show that is wrong.
	Findings []Finding `json:"findings"`
	// Timeline has its recorded runs.
	Timeline []Run `json:"timeline"`
}

// Finding is what the recorded runs of a key show.
type Finding struct {
	Kind   string    `json:"kind"`
	Since  time.Time `json:"since"`
	Object string    `json:"object,omitempty"`
	Fields []string  `json:"fields,omitempty"`
	Count  int       `json:"count"`
	// By is who or what does it: the other field manager of a fight, the priority and flow of a starved
	// key; absent: not known.
	By   string `json:"by,omitempty"`
	Text string `json:"text"`
}

// Run is one recorded reconcile.
type Run struct {
	// ID is the reconcileID of the log.
	ID    string    `json:"id"`
	Began time.Time `json:"began"`
	// Seconds that the key waited in the queue, and that the reconcile took.
	WaitSeconds float64 `json:"waitSeconds"`
	TookSeconds float64 `json:"tookSeconds"`
	// Causes: the first and the last of CauseCount.
	Causes     []Cause `json:"causes"`
	CauseCount int     `json:"causeCount"`
	Outcome    string  `json:"outcome"`
	// AfterSeconds until the next run, and why.
	AfterSeconds float64 `json:"afterSeconds,omitempty"`
	Reason       string  `json:"reason,omitempty"`
	Error        string  `json:"error,omitempty"`
	// Requests that it has sent, and the number of those that are not listed.
	Requests     []Request `json:"requests"`
	MoreRequests int       `json:"moreRequests,omitempty"`
}

// Cause is why a reconcile ran.
type Cause struct {
	// Text is the cause in a few words.
	Text   string `json:"text"`
	Source string `json:"source"`
	// Event, kind, key and versions of an object.
	Event      string `json:"event,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Object     string `json:"object,omitempty"`
	OldVersion uint64 `json:"oldVersion,omitempty"`
	Version    uint64 `json:"version,omitempty"`
	// Own: it follows from writes of this process.
	Own bool `json:"own,omitempty"`
	// Changed are the paths of the fields that an update has changed.
	Changed     []string `json:"changed,omitempty"`
	MoreChanged int      `json:"moreChanged,omitempty"`
}

// Request is one request of a reconcile.
type Request struct {
	Verb     string `json:"verb"`
	Resource string `json:"resource"`
	Kind     string `json:"kind,omitempty"`
	Object   string `json:"object,omitempty"`
	// Code of the answer; 0: there was none.
	Code          int     `json:"code"`
	TookSeconds   float64 `json:"tookSeconds"`
	SentBytes     int64   `json:"sentBytes"`
	ReceivedBytes int64   `json:"receivedBytes"`
	// Effect of a write: "nothing", "changed", "created", "deleted"; absent: not known. Fields are
	// paths that it changed, and MoreFields the number of others.
	Effect     string   `json:"effect,omitempty"`
	Fields     []string `json:"fields,omitempty"`
	MoreFields int      `json:"moreFields,omitempty"`
}
