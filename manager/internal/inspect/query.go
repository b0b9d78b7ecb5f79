// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/flyball-dev/flyball/internal/redact"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
	"github.com/flyball-dev/flyball/workqueue"
)

// Query selects keys of a controller.
type Query struct {
	// Filter is a regular expression that matches a part of the key, Contains a part of it.
	Filter, Contains string
	// State is one of States; empty: all.
	State string
	// Sort is one of Sorts; empty: the first.
	Sort string
	// Offset and Limit select a page. A Limit of 0: 100.
	Offset, Limit int
}

const (
	idle    = "idle"
	failing = "failing"

	perPage   = 100
	mostKeys  = 500 // of a page
	mostRegex = 256 // bytes
)

// StatePaused is the state of a paused key that was woken; as a filter, of all paused keys.
const StatePaused = "paused"

// States of keys to ask for.
var States = []string{
	string(workqueue.Ready), string(workqueue.Held), string(workqueue.HeldDirty), string(workqueue.Delayed), string(workqueue.Counted), idle, failing, StatePaused,
}

// Sorts are the orders of keys: the last run first; by key; the most failures first; the longest in
// its state first.
var Sorts = []string{"recent", "key", "failures", "age"}

// queryError is an error of who asks.
type queryError struct {
	status int
	text   string
}

func (e *queryError) Error() string { return e.text }

// StatusOf returns the HTTP status for an error of this package.
func StatusOf(err error) int {
	if wrong, ok := errors.AsType[*queryError](err); ok {
		return wrong.status
	}
	return http.StatusInternalServerError
}

func bad(format string, args ...any) error {
	return &queryError{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

func find(p Program, name string) (Controlled, error) {
	c := p.Controller(name)
	if c == nil {
		return nil, &queryError{http.StatusNotFound, fmt.Sprintf("there is no controller %q that records its runs; the overview lists all", name)}
	}
	return c, nil
}

// KeysOf returns a page of the keys of a controller: those in its queue, and those whose runs are
// recorded.
func KeysOf(p Program, controller string, q Query) (KeyPage, error) {
	c, err := find(p, controller)
	if err != nil {
		return KeyPage{}, err
	}
	wanted, err := q.filter()
	if err != nil {
		return KeyPage{}, err
	}
	rows := rowsOf(c)
	page := KeyPage{Version: Version, Controller: controller, Known: len(rows), Keys: []KeyRow{}}
	s := c.Snapshot()
	page.Paused, page.Woken = pausedOf(s.Pauses.All), s.Woken
	rows = slices.DeleteFunc(rows, func(r KeyRow) bool { return !wanted(r) })
	page.Matched = len(rows)
	slices.SortFunc(rows, q.compare())
	rows = rows[min(max(q.Offset, 0), len(rows)):]
	limit := min(cmp.Or(max(q.Limit, 0), perPage), mostKeys)
	if len(rows) > limit {
		page.Next = max(q.Offset, 0) + limit
		rows = rows[:limit]
	}
	page.Keys = append(page.Keys, rows...)
	return page, nil
}

func (q Query) filter() (func(KeyRow) bool, error) {
	if q.State != "" && !slices.Contains(States, q.State) {
		return nil, bad("the state %q is none of %s", q.State, strings.Join(States, ", "))
	}
	if q.Sort != "" && !slices.Contains(Sorts, q.Sort) {
		return nil, bad("the order %q is none of %s", q.Sort, strings.Join(Sorts, ", "))
	}
	if len(q.Filter) > mostRegex {
		return nil, bad("the filter has %d bytes; give at most %d", len(q.Filter), mostRegex)
	}
	expression, err := regexp.Compile(q.Filter)
	if err != nil {
		return nil, bad("the filter is no regular expression: %v", err)
	}
	return func(r KeyRow) bool {
		return (q.State == "" || r.is(q.State)) && strings.Contains(r.Key, q.Contains) && expression.MatchString(r.Key)
	}, nil
}

// is reports whether a key is in one of States.
func (r KeyRow) is(state string) bool {
	switch state {
	case failing:
		return !r.FailingSince.IsZero() || r.Attempts > 0
	case StatePaused:
		return r.Paused != nil
	}
	return r.State == state
}

func (q Query) compare() func(a, b KeyRow) int {
	byKey := func(a, b KeyRow) int { return cmp.Compare(a.Key, b.Key) }
	switch q.Sort {
	case "key":
		return byKey
	case "failures":
		return func(a, b KeyRow) int { return cmp.Or(cmp.Compare(b.Attempts, a.Attempts), byKey(a, b)) }
	case "age":
		return func(a, b KeyRow) int { return cmp.Or(cmp.Compare(b.AgeSeconds, a.AgeSeconds), byKey(a, b)) }
	}
	return func(a, b KeyRow) int { return cmp.Or(b.Ended.Compare(a.Ended), byKey(a, b)) }
}

// rowsOf returns all keys of a controller, in no order.
func rowsOf(c Controlled) []KeyRow {
	recorded := c.RecordedKeys(reconcile.KeysQuery{Limit: -1}).Keys
	rows := make([]KeyRow, 0, len(recorded))
	at := make(map[string]int, len(recorded))
	for _, k := range recorded {
		at[k.Key] = len(rows)
		rows = append(rows, rowOf(k))
	}
	for _, k := range c.QueuedKeys() {
		i, known := at[k.Key]
		if !known {
			i = len(rows)
			rows = append(rows, KeyRow{Key: k.Key})
		}
		at[k.Key] = i
		rows[i].queued(k)
	}
	pauses := c.Snapshot().Pauses
	for key := range pauses.Keys {
		if _, known := at[key]; !known {
			rows = append(rows, KeyRow{Key: key, State: idle})
		}
	}
	for i := range rows {
		rows[i].Paused = pausedOf(pauses.Of(rows[i].Key))
	}
	return rows
}

func pausedOf(p *reconcile.Pause) *Paused {
	if p == nil {
		return nil
	}
	return &Paused{By: p.By, Since: p.At}
}

// rowOf returns a key that is not in the queue.
func rowOf(k reconcile.KeyRuns) KeyRow {
	return KeyRow{Key: k.Key, State: idle, Outcome: string(k.Outcome), Ended: k.Ended, Error: redact.Text(k.Err), FailingSince: k.FailingSince, Runs: k.Runs}
}

func (r *KeyRow) queued(k workqueue.KeyState[string]) {
	r.State, r.AgeSeconds, r.Attempts, r.Due = string(k.State), k.Age.Seconds(), k.Attempts, k.Due
}

// KeyOf returns a key with its recorded runs.
func KeyOf(p Program, controller, key string) (Key, error) {
	c, err := find(p, controller)
	if err != nil {
		return Key{}, err
	}
	out := Key{Version: Version, Controller: controller, KeyRow: KeyRow{Key: key, State: idle}, Timeline: []Run{}, Findings: []Finding{}}
	known := c.RecordedKeys(reconcile.KeysQuery{Key: key, Match: func(k reconcile.KeyRuns) bool { return k.Key == key }}).Keys
	for _, k := range known {
		out.KeyRow = rowOf(k)
	}
	queued := c.QueuedKeys()
	i := slices.IndexFunc(queued, func(k workqueue.KeyState[string]) bool { return k.Key == key })
	if i >= 0 {
		out.queued(queued[i])
	}
	pauses := c.Snapshot().Pauses
	out.Paused = pausedOf(pauses.Of(key))
	if _, out.PausedItself = pauses.Keys[key]; i < 0 && len(known) == 0 && !out.PausedItself {
		return Key{}, &queryError{http.StatusNotFound, fmt.Sprintf("the controller %q has no key %q in its queue, and no recorded run of it", controller, key) + Elsewhere(p, c, key)}
	}
	out.Place = placeOf(p, c, key)
	for _, f := range c.Findings() {
		if f.Key == key {
			out.Findings = append(out.Findings, Finding{string(f.Kind), f.Since, f.Object, f.Fields, f.Count, f.By, redact.Text(f.String())})
		}
	}
	for _, r := range slices.Backward(c.RunsOf(key)) {
		out.Timeline = append(out.Timeline, runOf(r))
	}
	return out, nil
}

// Latest returns the keys of a controller that have run last, each with its last run alone.
func Latest(p Program, controller string, most int) (out []Key) {
	c := p.Controller(controller)
	if c == nil {
		return nil
	}
	for _, k := range c.RecordedKeys(reconcile.KeysQuery{Limit: most}).Keys {
		runs := c.RunsOf(k.Key)
		if len(runs) == 0 {
			continue // it was dropped meanwhile
		}
		out = append(out, Key{Version: Version, Controller: controller, KeyRow: rowOf(k), Timeline: []Run{runOf(runs[len(runs)-1])}, Findings: []Finding{}})
	}
	return out
}

func runOf(r reconcile.PastRun) Run {
	out := Run{
		ID: r.ID, Began: r.Began, WaitSeconds: r.Waited.Seconds(), TookSeconds: r.Took.Seconds(),
		Causes: []Cause{}, CauseCount: r.Causes.Count, Outcome: string(r.Outcome), AfterSeconds: r.After.Seconds(),
		Reason: redact.Text(r.Reason), Error: redact.Text(r.Err), Requests: []Request{}, MoreRequests: r.MoreRequests,
	}
	if r.Causes.Count > 0 {
		out.Causes = append(out.Causes, causeOf(r.Causes.First))
	}
	if r.Causes.Count > 1 {
		out.Causes = append(out.Causes, causeOf(r.Causes.Last))
	}
	for _, q := range r.Requests {
		out.Requests = append(out.Requests, requestOf(q))
	}
	return out
}

func causeOf(c source.Cause) Cause {
	out := Cause{Text: redact.Text(c.String()), Source: c.Source, OldVersion: uint64(c.OldVersion), Version: uint64(c.Version), Own: c.Own}
	out.Changed, out.MoreChanged = c.Changed()
	if c.Type != 0 {
		out.Event, out.Object = c.Type.String(), strings.TrimPrefix(c.Object.String(), "/")
	}
	if c.Kind.Kind != "" {
		out.Kind = c.Kind.String()
	}
	return out
}

func requestOf(q reconcile.Request) Request {
	out := Request{
		Verb: q.Verb, Resource: q.Resource.String(), Kind: q.Kind, Object: strings.TrimPrefix(q.Key.String(), "/"), Code: q.Code,
		TookSeconds: q.Took.Seconds(), SentBytes: q.BytesSent, ReceivedBytes: q.BytesReceived,
		Effect: q.Effect, Fields: q.Fields, MoreFields: q.MoreFields,
	}
	if q.Subresource != "" {
		out.Resource += "/" + q.Subresource
	}
	if q.Path != "" {
		out.Resource = q.Path
	}
	return out
}

// ObjectOf returns the object that a key of a controller names, as it is cached; nil: no source of
// the controller has one.
func ObjectOf(p Program, controller, key string) *Object {
	c := p.Controller(controller)
	if c == nil {
		return nil
	}
	obj, kind := Cached(p, c, key)
	if obj == nil {
		return nil
	}
	out, err := objectOf(kind, obj)
	if err != nil {
		return nil
	}
	return out
}
