// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
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
	controls
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
	Results []result
	Charts  *charts // nil: nothing has happened in the last minutes
}

type sourceRow struct {
	inspect.Source
	EventRate float64
}

type result struct {
	Outcome string
	Count   uint64
}

func (c *console) overview(r *http.Request, before content) (string, content, int) {
	now := overviewPage{Overview: c.program.Parts().Of(), controls: c.controls(r)}
	was, _ := before.(overviewPage)
	for _, i := range now.Informers {
		now.Bytes += i.Bytes
	}
	for _, ctl := range now.Controllers {
		now.Lanes = append(now.Lanes, laneOf(ctl, was.Overview, now.Now))
	}
	now.Latest = c.latest(now.Controllers)
	return "Overview", now, http.StatusOK
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
	l := lane{Controller: now, Charts: chartsOf(now.Recent, at)}
	elapsed := at.Sub(was.Now).Seconds()
	i := slices.IndexFunc(was.Controllers, func(c inspect.Controller) bool { return c.Name == now.Name })
	for n, s := range now.Sources {
		row := sourceRow{Source: s}
		if i >= 0 && n < len(was.Controllers[i].Sources) && elapsed > 0 {
			if old := was.Controllers[i].Sources[n]; old.Name == s.Name && old.Events <= s.Events { // one before it may have ended
				row.EventRate = float64(s.Events-old.Events) / elapsed
			}
		}
		l.Sources = append(l.Sources, row)
	}
	if i >= 0 && elapsed > 0 {
		l.RunRate = float64(now.Reconciles()-was.Controllers[i].Reconciles()) / elapsed
	}
	for outcome, count := range now.Outcomes {
		if count > 0 {
			l.Results = append(l.Results, result{outcome, count})
		}
	}
	slices.SortFunc(l.Results, func(a, b result) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Outcome, b.Outcome))
	})
	return l
}

// informersPage shows each list and watch.
type informersPage struct{ inspect.Overview }

func (c *console) informers(*http.Request, content) (title string, now content, status int) {
	return "Informers", informersPage{c.program.Parts().Of()}, http.StatusOK
}

// keysPage is a part of the keys of one or all controllers.
type keysPage struct {
	controls
	paused                     *inspect.Paused
	woken                      int
	Controller                 string
	Filter, State, Sort, Wrong string
	Known, Matched             int
	Keys                       []keyRow
	Before, After              string // links to other pages; empty: there is none
	all                        bool   // controllers
	sharing                    *inspect.Sharing
	// key that was asked for, and where it belongs; nil: not known.
	key   string
	place *inspect.Place
}

type keyRow struct {
	Controller string
	inspect.KeyRow
}

func (c *console) keys(r *http.Request, _ content) (title string, now content, status int) {
	p := keysPage{
		sharing: c.program.Sharing(), Controller: r.PathValue("name"), Filter: r.FormValue("filter"), State: r.FormValue("state"), Sort: r.FormValue("sort"),
	}
	offset, err := strconv.Atoi(r.FormValue("offset"))
	if err != nil || offset < 0 {
		offset = 0
	}
	found, err := inspect.KeysOf(c.program, p.Controller, inspect.Query{Filter: p.Filter, State: p.State, Sort: p.Sort, Offset: offset, Limit: perPage})
	if err != nil {
		p.Wrong = err.Error()
		return p.Controller, p, inspect.StatusOf(err)
	}
	p.Known, p.Matched = found.Known, found.Matched
	p.controls, p.paused, p.woken = c.controls(r), found.Paused, found.Woken
	for _, k := range found.Keys {
		p.Keys = append(p.Keys, keyRow{p.Controller, k})
	}
	at := func(offset int) string {
		q := r.URL.Query()
		q.Del("did")
		q.Set("offset", strconv.Itoa(offset))
		return "?" + q.Encode()
	}
	if offset > 0 {
		p.Before = at(max(0, offset-perPage))
	}
	if found.Next > 0 {
		p.After = at(found.Next)
	}
	return p.Controller, p, http.StatusOK
}

func (c *console) search(r *http.Request, _ content) (title string, now content, status int) {
	p := keysPage{sharing: c.program.Sharing(), Filter: r.FormValue("q"), all: true}
	for _, ctl := range c.program.Parts().Controllers {
		found, err := inspect.KeysOf(c.program, ctl.Name, inspect.Query{Contains: p.Filter, Limit: perPage})
		if err != nil {
			continue
		}
		for _, k := range found.Keys {
			p.Keys = append(p.Keys, keyRow{ctl.Name, k})
		}
	}
	return "Search", p, http.StatusOK
}

// keyPage is one key.
type keyPage struct {
	inspect.Key
	controls
	Object *inspect.Object
}

func (c *console) key(r *http.Request, _ content) (title string, now content, status int) {
	controller, key := r.PathValue("name"), r.FormValue("key")
	found, err := inspect.KeyOf(c.program, controller, key)
	if err != nil {
		return key, keysPage{Controller: controller, Wrong: err.Error(), key: key, place: inspect.PlaceOf(c.program, controller, key)}, inspect.StatusOf(err)
	}
	return key, keyPage{found, c.controls(r), inspect.ObjectOf(c.program, controller, key)}, http.StatusOK
}

func keysOf(controller string) string { return Path + "controllers/" + url.PathEscape(controller) }

func keyOf(controller, key string) string {
	return keysOf(controller) + "/key?" + url.Values{"key": {key}}.Encode()
}
