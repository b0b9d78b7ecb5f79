// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/flyball-dev/flyball/manager/internal/inspect"
)

// overviewPage is the first page.
type overviewPage struct {
	inspect.Overview
	Bytes  int64
	Lanes  []lane
	Latest []latestRun
}

// latestRun is the last recorded run of a key.
type latestRun struct {
	Controller, Key string
	inspect.Run
	Sent  int // requests
	Ended time.Time
}

const mostLatest = 10

// lane is the path of one controller's data.
type lane struct {
	inspect.Controller
	Sources []sourceRow
	RunRate float64 // reconciles per second; 0: none, or not known yet
	Bars    []bool  // workers; true: it works
	Results []result
}

type sourceRow struct {
	inspect.Source
	EventRate float64
}

type result struct {
	Outcome, Class string
	Count          uint64
}

func (c *console) overview(_ *http.Request, before any) (title, name string, data any, status int) {
	now := overviewPage{Overview: c.program.Parts().Of()}
	was, _ := before.(overviewPage)
	for _, i := range now.Informers {
		now.Bytes += i.Bytes
	}
	for _, ctl := range now.Controllers {
		now.Lanes = append(now.Lanes, laneOf(ctl, was.Overview, now.Now))
	}
	now.Latest = c.latest(now.Controllers)
	return "Overview", "overview", now, http.StatusOK
}

// latest returns the last runs of the keys that ran last.
func (c *console) latest(controllers []inspect.Controller) (out []latestRun) {
	for _, ctl := range controllers {
		for _, k := range inspect.Latest(c.program, ctl.Name, mostLatest) {
			r := k.Timeline[0]
			out = append(out, latestRun{ctl.Name, k.Key, r, len(r.Requests) + r.MoreRequests, k.Ended})
		}
	}
	slices.SortStableFunc(out, func(a, b latestRun) int { return b.Ended.Compare(a.Ended) })
	return out[:min(len(out), mostLatest)]
}

const mostBars = 64

func laneOf(now inspect.Controller, was inspect.Overview, at time.Time) lane {
	l := lane{Controller: now}
	elapsed := at.Sub(was.Now).Seconds()
	i := slices.IndexFunc(was.Controllers, func(c inspect.Controller) bool { return c.Name == now.Name })
	for n, s := range now.Sources {
		row := sourceRow{Source: s}
		if i >= 0 && n < len(was.Controllers[i].Sources) && elapsed > 0 {
			row.EventRate = float64(s.Events-was.Controllers[i].Sources[n].Events) / elapsed
		}
		l.Sources = append(l.Sources, row)
	}
	if i >= 0 && elapsed > 0 {
		l.RunRate = float64(now.Reconciles()-was.Controllers[i].Reconciles()) / elapsed
	}
	for n := range min(now.Workers, mostBars) {
		l.Bars = append(l.Bars, n < now.Active)
	}
	for outcome, count := range now.Outcomes {
		if count > 0 {
			l.Results = append(l.Results, result{outcome, outcomeClass(outcome), count})
		}
	}
	slices.SortFunc(l.Results, func(a, b result) int { return int(b.Count) - int(a.Count) })
	return l
}

func (c *console) informers(*http.Request, any) (title, name string, data any, status int) {
	return "Informers", "informers", c.program.Parts().Of(), http.StatusOK
}

// keysPage is a part of the keys of one or all controllers.
type keysPage struct {
	Controller                 string
	Filter, State, Sort, Wrong string
	States, Sorts              []string
	Known, Matched             int
	Keys                       []keyRow
	ShowController             bool
	HasBefore, HasAfter        bool
	Before, After              string
}

type keyRow struct {
	Controller string
	inspect.KeyRow
}

func (c *console) keys(r *http.Request, _ any) (title, name string, data any, status int) {
	p := keysPage{
		Controller: r.PathValue("name"), Filter: r.FormValue("filter"), State: r.FormValue("state"), Sort: r.FormValue("sort"),
		States: append([]string{""}, inspect.States...), Sorts: inspect.Sorts,
	}
	offset, err := strconv.Atoi(r.FormValue("offset"))
	if err != nil || offset < 0 {
		offset = 0
	}
	found, err := inspect.KeysOf(c.program, p.Controller, inspect.Query{Filter: p.Filter, State: p.State, Sort: p.Sort, Offset: offset, Limit: perPage})
	if err != nil {
		p.Wrong = err.Error()
		return p.Controller, "keys", p, inspect.StatusOf(err)
	}
	p.Known, p.Matched = found.Known, found.Matched
	for _, k := range found.Keys {
		p.Keys = append(p.Keys, keyRow{p.Controller, k})
	}
	at := func(offset int) string {
		q := r.URL.Query()
		q.Set("offset", strconv.Itoa(offset))
		return "?" + q.Encode()
	}
	p.HasBefore, p.Before = offset > 0, at(max(0, offset-perPage))
	p.HasAfter, p.After = found.Next > 0, at(found.Next)
	return p.Controller, "keys", p, http.StatusOK
}

func (c *console) search(r *http.Request, _ any) (title, name string, data any, status int) {
	p := keysPage{Filter: r.FormValue("q"), ShowController: true}
	for _, ctl := range c.program.Parts().Controllers {
		found, err := inspect.KeysOf(c.program, ctl.Name, inspect.Query{Contains: p.Filter, Limit: perPage})
		if err != nil {
			continue
		}
		for _, k := range found.Keys {
			p.Keys = append(p.Keys, keyRow{ctl.Name, k})
		}
	}
	return "Search", "search", p, http.StatusOK
}

// keyPage is one key.
type keyPage struct {
	inspect.Key
	Name   string
	Line   template.HTML // the runs in time
	Object *inspect.Object
}

func (c *console) key(r *http.Request, _ any) (title, name string, data any, status int) {
	controller, key := r.PathValue("name"), r.FormValue("key")
	found, err := inspect.KeyOf(c.program, controller, key)
	if err != nil {
		p := keysPage{Controller: controller, Wrong: err.Error(), Sorts: inspect.Sorts, States: append([]string{""}, inspect.States...)}
		return key, "keys", p, inspect.StatusOf(err)
	}
	return key, "key", keyPage{found, key, timeline(found.Timeline, time.Now()), inspect.ObjectOf(c.program, controller, key)}, http.StatusOK
}

func keysOf(controller string) string { return Path + "controllers/" + url.PathEscape(controller) }

func keyOf(controller, key string) string {
	return keysOf(controller) + "/key?" + url.Values{"key": {key}}.Encode()
}
