// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/internal/textlog"
)

// clock says how long ago something was.
type clock struct {
	now  time.Time
	zone *time.Location
	// hidden: ages are left out, to see whether anything else has changed.
	hidden bool
}

func (c clock) age(since time.Time) string {
	switch {
	case since.IsZero():
		return "<none>"
	case c.hidden:
		return ""
	}
	return duration.HumanDuration(c.now.Sub(since))
}

// seconds returns a short time, such as 3.4ms, 12s or 5m12s.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	for _, step := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		switch {
		case d >= 100*time.Second:
			return duration.HumanDuration(d)
		case d >= 10*step:
			return d.Round(step).String()
		case d >= step:
			return d.Round(step / 10).String()
		}
	}
	return d.String()
}

func size(n int64) string {
	units := []string{"", "Ki", "Mi", "Gi", "Ti"}
	value := float64(n)
	for value >= 1000 && len(units) > 1 {
		value, units = value/1024, units[1:]
	}
	if units[0] == "" {
		return strconv.FormatInt(n, 10)
	}
	return strconv.FormatFloat(value, 'f', 1, 64) + units[0]
}

// seen are parts of a text that were printed; nil remembers none.
type seen map[string]string

// isNew reports whether a part was not yet printed with this text.
func (s seen) isNew(id, text string) bool {
	was, known := s[id]
	if s != nil {
		s[id] = text
	}
	return s == nil || !known || was != text
}

// cells are the values of one row of a table.
type cells []any

// table returns rows as kubectl prints them; the first is the header.
func table(rows []cells) string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 6, 4, 3, ' ', 0)
	for _, row := range rows {
		for i, value := range row {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			text := fmt.Sprint(value)
			if text == "" {
				text = "<none>"
			}
			fmt.Fprint(w, textlog.Visible(text))
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush() // into memory
	return trimmed(out.String())
}

// trimmed removes spaces at the end of lines.
func trimmed(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	return out.String()
}

// problems are what is wrong.
func problems(o overview, c clock) string {
	if len(o.Problems) == 0 {
		return "Nothing is wrong now.\n"
	}
	var out strings.Builder
	fmt.Fprintf(&out, "Wrong now: %s.\n", count(len(o.Problems), "problem"))
	for _, p := range o.Problems {
		fmt.Fprintf(&out, "  %s %s: %s", p.Of, textlog.Visible(strings.TrimSpace(p.Name+" "+p.Key)), textlog.Visible(p.Text))
		if !p.Since.IsZero() && !c.hidden {
			fmt.Fprintf(&out, " (for %s)", c.age(p.Since))
		}
		out.WriteString("\n")
		if p.Hint != "" {
			fmt.Fprintf(&out, "    %s\n", textlog.Visible(p.Hint))
		}
	}
	return out.String()
}

// status is the overview in short.
func status(o overview, c clock, wide bool) string {
	c.now = o.Now // its clock may differ from ours
	about := o.Program + ": " + o.Phase
	if !c.hidden {
		about += " for " + c.age(o.Since)
	}
	switch l := o.Leadership; {
	case l != nil && l.Leading:
		about += ", leads by the Lease " + l.Lease
	case l != nil && l.Holder != "":
		about += ", waits for the Lease " + l.Lease + " of " + l.Holder
	case l != nil:
		about += ", waits for the Lease " + l.Lease
	}
	shares := ""
	if s := o.Sharing; s != nil {
		number, by, _ := strings.Cut(s.Plan, "/")
		about += fmt.Sprintf(", %s share %s shards by %s", count(len(s.Replicas), "replica"), number, by)
		shares = replicas(s, wide) + "\n"
	}
	return problems(o, c) + textlog.Visible(about) + "\n\n" + shares + controllers(o, c, wide) + "\n" + informers(o, false, c)
}

// replicas has who holds which shards.
func replicas(s *sharing, wide bool) string {
	held, moving := map[string][]int{}, 0
	for _, one := range s.Shards {
		if held[one.Holder] = append(held[one.Holder], one.Shard); one.Next != "" {
			moving++
		}
	}
	rows := []cells{{"REPLICA", "STATE", "SHARDS", "WHICH"}}
	if wide {
		rows[0] = append(rows[0], "WEIGHT", "CONSOLE")
	}
	known := map[string]bool{"": true}
	for _, r := range s.Replicas {
		known[r.Name] = true
		state := "active"
		switch {
		case r.Leaving:
			state = "leaving"
		case r.Plan != s.Plan:
			state = "divides into " + r.Plan
		}
		row := cells{r.Name, state, len(held[r.Name]), shards.SetOf(held[r.Name]...)}
		if wide {
			row = append(row, r.Weight, r.Address)
		}
		rows = append(rows, row)
	}
	for _, name := range slices.Sorted(maps.Keys(held)) {
		if !known[name] {
			rows = append(rows, cells{name, "ended", len(held[name]), shards.SetOf(held[name]...)})
		}
	}
	if none := held[""]; len(none) > 0 {
		rows = append(rows, cells{"", "", len(none), shards.SetOf(none...)})
	}
	text := table(rows)
	if moving > 0 {
		text += fmt.Sprintf("%s to move.\n", count(moving, "shard"))
	}
	return text
}

func controllers(o overview, c clock, wide bool) string {
	rows := []cells{{"CONTROLLER", "WORKERS", "READY", "DELAYED", "FAILING", "RECONCILES", "ERRORS", "WAIT", "TOOK", "LAST"}}
	if wide {
		rows[0] = append(rows[0], "SOURCES")
	}
	for _, one := range o.Controllers {
		var all, failed uint64
		for outcome, n := range one.Outcomes {
			all += n
			if outcome != "done" && outcome != "after" && outcome != "stopped" {
				failed += n
			}
		}
		row := cells{one.Name, fmt.Sprintf("%d/%d", one.Active, one.Workers), one.Ready, one.Delayed, one.Failing, all, failed,
			seconds(one.MeanWaitSeconds), seconds(one.MeanSeconds), c.age(one.LastEnded)}
		if wide {
			var from []string
			for _, s := range one.Sources {
				text := fmt.Sprintf("%s (%d)", s.Name, s.Events)
				if !s.Synced {
					text += " not synced"
				}
				from = append(from, text)
			}
			row = append(row, strings.Join(from, ", "))
		}
		rows = append(rows, row)
	}
	if len(rows) == 1 {
		return "No controllers.\n"
	}
	return table(rows)
}

// informers are the caches in short, or with a row for each list and watch.
func informers(o overview, scopes bool, c clock) string {
	rows := []cells{{"INFORMER", "STATE", "OBJECTS", "MEMORY", "BACKLOG", "SINCE"}}
	if scopes {
		rows[0] = append(rows[0], "SCOPE", "CONTACT", "LISTS", "WATCHES", "HANDLERS", "REASON")
	}
	divided := scopes && slices.ContainsFunc(o.Informers, func(i informer) bool { return i.Form != "" })
	if divided {
		rows[0] = append(rows[0], "SELECTED", "DROPPED")
	}
	for _, i := range o.Informers {
		objects, backlog, handlers := strconv.Itoa(i.Objects), 0, []string{}
		if i.Undecodable > 0 {
			objects += fmt.Sprintf(" (+%d undecodable)", i.Undecodable)
		}
		for _, h := range i.Handlers {
			backlog, handlers = backlog+h.Backlog, append(handlers, h.Name)
		}
		for _, s := range shown(i.Scopes, scopes) {
			row := cells{i.Kind, s.State, objects, size(i.Bytes), backlog, c.age(s.Since)}
			if scopes {
				row = append(row, s.Scope, c.age(s.LastContact), 1+s.Relists, s.Watches, strings.Join(handlers, ", "),
					strings.Trim(s.Reason+"; "+s.Hint, "; "))
			}
			if divided {
				row = append(row, i.Form, i.Dropped)
			}
			rows = append(rows, row)
		}
	}
	if len(rows) == 1 {
		return "No informers.\n"
	}
	return table(rows)
}

// shown returns all scopes, or the first of those in the worst state.
func shown(scopes []scope, all bool) []scope {
	switch {
	case len(scopes) == 0:
		return []scope{{}}
	case all:
		return scopes
	}
	for _, s := range scopes {
		if s.State != "Live" {
			return []scope{s}
		}
	}
	return scopes[:1]
}

// keyTable has the keys of controllers that have changed since they were seen. named: the
// controller's name is in each row.
func keyTable(pages []keyPage, named bool, c clock, wide bool, s seen) string {
	rows := []cells{{"KEY", "STATE", "RUNS", "OUTCOME", "FAILURES", "LAST"}}
	if wide {
		rows[0] = append(rows[0], "DUE", "FAILING", "ERROR")
	}
	if named {
		rows[0] = append(cells{"CONTROLLER"}, rows[0]...)
	}
	for _, page := range pages {
		for _, raw := range page.Keys {
			var k keyRow
			_ = json.Unmarshal(raw, &k) // it has been decoded before
			if k.Paused != nil && k.State != "paused" {
				k.State += ", paused"
			}
			row := cells{k.Key, k.State, k.Runs, k.Outcome, k.Attempts, c.age(k.Ended)}
			if wide {
				row = append(row, c.until(k.Due), c.age(k.FailingSince), k.Error)
			}
			if !s.isNew(page.Controller+" "+k.Key, fmt.Sprint(k.State, k.Runs, k.Outcome, k.Attempts, k.Ended, k.Error)) {
				continue
			}
			if named {
				row = append(cells{page.Controller}, row...)
			}
			rows = append(rows, row)
		}
	}
	if len(rows) == 1 {
		return ""
	}
	return table(rows)
}

func (c clock) until(due time.Time) string {
	switch left := due.Sub(c.now); {
	case due.IsZero():
		return "<none>"
	case c.hidden:
		return ""
	case left <= 0:
		return "now"
	default:
		return duration.HumanDuration(left)
	}
}

// count returns "1 key" or "3 keys".
func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
