// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"net/url"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/manager/internal/inspect"
)

// layout writes a whole page around its content.
func (c *console) layout(title, page, query string, main markup) string {
	links := [][2]string{{"", "Overview"}, {"informers", "Informers"}}
	if c.program.Sharing() != nil {
		links = append(links, [2]string{"replicas", "Replicas"})
	}
	var w writer
	w.put(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%s · %s</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="%sstatic/console.css">
<script defer src="%[3]sstatic/idiomorph.min.js"></script>
<script defer src="%[3]sstatic/console.js"></script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
  <a class="program" href="%[3]s">%[2]s</a>
  <nav aria-label="Pages">
`, title, c.program.Parts().Program, Path)
	for _, link := range links {
		current := markup("")
		if page == link[0] {
			current = ` aria-current="page"`
		}
		w.put("    <a href=\"%s%s\"%s>%s</a>\n", Path, link[0], current, link[1])
	}
	w.put(`  </nav>
  <form role="search" action="%ssearch">
    <input type="search" name="q" value="%s" placeholder="Find a key" aria-label="Find a key, such as shop/web">
  </form>
</header>
<p id="lost" role="status" hidden>No answer from the operator since <time></time>. This page tries again by itself.</p>
<main id="main" tabindex="-1">
%s
</main>
</body>
</html>
`, Path, query, main)
	return w.String()
}

func (p overviewPage) write(w *writer) {
	w.put("<h1 class=\"hidden\">Overview</h1>\n")
	p.writeProblems(w)
	w.put(`<p class="facts">%s for %s`, p.Phase, since(p.Since))
	switch l := p.Leadership; {
	case l == nil:
	case l.Leading:
		w.put(" · leads%s", orNone(" for ", l.Since))
	case l.Holder == "":
		w.put(" · waits for the Lease, which nobody holds")
	default:
		w.put(" · waits for the Lease, which %s holds", l.Holder)
	}
	if s := p.Sharing; s != nil {
		mine := 0
		for _, one := range s.Shards {
			if one.Holder != "" && one.Holder == s.Identity {
				mine++
			}
		}
		w.put(" · holds %d of <a href=\"%sreplicas\">%s</a>", mine, Path, planText(s.Plan))
	}
	w.put(" · %d %s · %d %s, %s</p>\n", len(p.Controllers), plural(len(p.Controllers), "controller"), len(p.Informers), plural(len(p.Informers), "informer"), size(p.Bytes))
	w.section("path", "From event to write", func() {
		w.put("<div class=\"path\">\n")
		for _, l := range p.Lanes {
			l.write(w)
		}
		if len(p.Lanes) == 0 {
			w.put(`<p class="soft">The program has no controllers.</p>`)
		}
		w.put("</div>\n")
	})
	if len(p.Latest) > 0 {
		w.section("latest", "Latest reconciles", func() { p.writeLatest(w) })
	}
	w.section("caches", "Informers", func() { writeInformers(w, p.Informers) })
	p.writeWebhooks(w)
	p.writeProfiles(w)
}

func (p overviewPage) writeProblems(w *writer) {
	if len(p.Problems) == 0 {
		w.put("<p class=\"well\"><span aria-hidden=\"true\">✓</span> Nothing is wrong now.</p>\n")
		return
	}
	w.put("<section class=\"problems\" aria-labelledby=\"wrong\">\n<h2 id=\"wrong\">Wrong now</h2>\n<ul>\n")
	for _, problem := range p.Problems {
		w.put(`<li><a href="%s"><b>%s</b></a> %s`, link(problem), strings.TrimSpace(problem.Name+" "+problem.Key), problem.Text)
		if !problem.Since.IsZero() {
			w.put(` <span class="soft">for %s</span>`, since(problem.Since))
		}
		if problem.Hint != "" {
			w.put(`<br><span class="soft">%s</span>`, problem.Hint)
		}
		w.put("</li>\n")
	}
	w.put("</ul>\n</section>\n")
}

func (l lane) write(w *writer) {
	w.put("<article aria-label=\"controller %s\">\n<h3><a href=\"%s\">%[1]s</a>%[3]s</h3>\n<ol>\n<li class=\"box\"><b>Sources</b><ul>", l.Name, keysOf(l.Name), pausedIn(l.Controller))
	for _, s := range l.Sources {
		w.put(`<li>%s <span class="num">%s</span>%s`, s.Name, count(s.Events), rated(s.EventRate))
		if !s.Synced {
			w.put(` <em class="warn">not synced</em>`)
		}
		w.put("</li>")
	}
	busy := ""
	if l.Ready > 0 {
		busy = " busy"
	}
	w.put("</ul></li>\n<li class=\"box\"><b>Queue</b><ul><li>ready <span class=\"num%s\">%d</span></li><li>for later <span class=\"num\">%d</span></li><li>wait <span class=\"num\">%s</span></li></ul></li>\n",
		busy, l.Ready, l.Delayed, duration(l.MeanWaitSeconds))
	w.put(`<li class="box"><b>Workers</b><div class="workers" role="img" aria-label="%d of %d work">`, l.Active, l.Workers)
	for n := range min(l.Workers, mostBars) {
		if n < l.Active {
			w.put(`<i class="on"></i>`)
		} else {
			w.put("<i></i>")
		}
	}
	w.put("</div><ul><li>each <span class=\"num\">%s</span></li>", duration(l.MeanSeconds))
	if l.RunRate > 0 {
		w.put("<li>%s</li>", rated(l.RunRate))
	}
	w.put("</ul></li>\n<li class=\"box\"><b>Outcomes</b><ul>")
	for _, r := range l.Results {
		w.put(`<li class="%s">%s <span class="num">%s</span></li>`, outcomeClass(r.Outcome), r.Outcome, count(r.Count))
	}
	if len(l.Results) == 0 {
		w.put(`<li class="soft">none yet</li>`)
	}
	if l.Failing > 0 {
		w.put(`<li class="bad">failing now <span class="num">%d</span></li>`, l.Failing)
	}
	w.put("</ul></li>\n</ol>\n")
	if l.Charts != nil {
		l.Charts.write(w)
	}
	w.put("</article>\n")
}

func (p overviewPage) writeLatest(w *writer) {
	w.table("Latest reconciles", []string{"Key", "Why", "Result", "#Requests", "#Ended"}, func() {
		for _, r := range p.Latest {
			w.put(`<tr><th scope="row"><a href="%s">%s</a></th><td class="why">%s</td><td class="%s">%s`, keyOf(r.Controller, r.Key), r.Key, why(r.Run), outcomeClass(r.Outcome), r.Outcome)
			if r.Error != "" {
				w.put(`<br><span class="reason">%s</span>`, r.Error)
			}
			w.put("</td><td class=\"n\">%d</td><td class=\"n\">%s ago</td></tr>\n", r.Sent, since(r.Ended))
		}
	})
}

// why says why a reconcile ran.
func why(r inspect.Run) markup {
	var w writer
	for i, c := range r.Causes {
		if i > 0 {
			w.put("; last: ")
		}
		what, reason, _ := strings.Cut(c.Text, ": ")
		switch w.put("<b>%s</b>", what); {
		case reason == "":
		case strings.HasPrefix(r.Error, strings.TrimSuffix(reason, "…")):
			w.put(` <span class="soft">after the same error</span>`)
		default:
			w.put(`: <span class="soft">%s</span>`, reason)
		}
		if len(c.Changed) > 0 {
			w.put(" in %s", fields(c.Changed, c.MoreChanged))
		}
	}
	if len(r.Causes) == 0 {
		w.put("<b>not recorded</b>")
	}
	if r.CauseCount > 2 {
		w.put(` <span class="soft">%d causes</span>`, r.CauseCount)
	}
	return markup(w.String())
}

func writeInformers(w *writer, informers []inspect.Informer) {
	w.table("Informers", []string{"Kind", "State", "#Objects", "#Memory", "#Backlog", "Handlers"}, func() {
		for _, i := range informers {
			w.put(`<tr><th scope="row"><a href="%sinformers#%s">%[2]s</a></th><td class="%s">%s</td><td class="n">%d`, Path, i.Kind, stateClass(i.State()), i.State(), i.Objects)
			if i.Undecodable > 0 {
				w.put(` <span class="bad">%d undecodable</span>`, i.Undecodable)
			}
			w.put(`</td><td class="n">%s</td><td class="n">%d</td><td class="soft">`, size(i.Bytes), backlog(i))
			for n, h := range i.Handlers {
				if n > 0 {
					w.put(", ")
				}
				w.put("%s", h.Name)
			}
			if len(i.Handlers) == 0 {
				w.put(`<span class="warn">none</span>`)
			}
			w.put("</td></tr>\n")
		}
		if len(informers) == 0 {
			w.put(`<tr><td colspan="6" class="soft">The program has no informers.</td></tr>`)
		}
	})
}

func (p informersPage) write(w *writer) {
	w.put("<h1>Informers</h1>\n")
	writeInformers(w, p.Informers)
	for _, i := range p.Informers {
		w.section(i.Kind, i.Kind, func() { writeInformer(w, i) })
	}
}

func writeInformer(w *writer, i inspect.Informer) {
	if len(i.Fields) > 0 {
		w.put("<p class=\"soft\">Keeps only %s</p>\n", fields(i.Fields, 0))
	}
	if i.Packed != "" {
		w.put("<p class=\"soft\">Its objects are packed: %s</p>\n", i.Packed)
	}
	if i.Division != "" {
		w.put("<p class=\"soft\">Holds %s, selected by %s; %s of others dropped, %s as sent</p>\n", i.Division, formText(i.Form), count(i.Dropped), size(int64(i.DroppedBytes)))
	}
	w.table("Lists and watches of "+i.Kind, []string{"List and watch", "State", "#Since", "#Version", "#Last contact", "#Relists"}, func() {
		for _, s := range i.Scopes {
			w.put(`<tr><th scope="row">%s</th><td class="%s">%s`, s.Scope, stateClass(s.State), s.State)
			if s.Reason != "" {
				w.put(`<br><span class="reason">%s</span>`, s.Reason)
			}
			if s.Hint != "" {
				w.put(`<br><span class="soft">%s</span>`, s.Hint)
			}
			contact := ""
			if !s.LastContact.IsZero() {
				contact = since(s.LastContact) + " ago"
			}
			w.put("</td><td class=\"n\">%s</td><td class=\"n\">%d</td><td class=\"n\">%s</td><td class=\"n\">%d</td></tr>\n", since(s.Since), s.Version, contact, s.Relists)
		}
	})
	if len(i.Handlers) == 0 {
		return
	}
	w.table("Handlers of "+i.Kind, []string{"Handler", "#Delivered", "#Waiting", "#Oldest", "#Panics"}, func() {
		for _, h := range i.Handlers {
			oldest := ""
			if h.Backlog > 0 {
				oldest = duration(h.OldestSeconds)
			}
			w.put("<tr><th scope=\"row\">%s</th><td class=\"n\">%s</td><td class=\"n\">%d</td><td class=\"n\">%s</td><td class=\"n\">%d</td></tr>\n",
				h.Name, count(h.Delivered), h.Backlog, oldest, h.Panics)
		}
	})
}

func (p keysPage) write(w *writer) {
	if p.all {
		w.put("<h1>Keys with “%s”</h1>\n", p.Filter)
		writeOthers(w, p.sharing, "search?"+url.Values{"q": {p.Filter}}.Encode())
		p.writeKeys(w)
		return
	}
	w.put("<h1>%s</h1>\n", p.Controller)
	p.controls.write(w, p.Controller, "", p.paused, p.paused != nil, waitingText(p.woken))
	w.put("<form class=\"filter\" action=\"%s\">\n<label>Filter <input name=\"filter\" value=\"%s\" placeholder=\"regular expression\"></label>\n", keysOf(p.Controller), p.Filter)
	writeSelect(w, "State", append([]string{""}, inspect.States...), p.State)
	writeSelect(w, "Sort", inspect.Sorts, p.Sort)
	w.put("<button>Show</button>\n</form>\n")
	if p.Wrong != "" {
		w.put("<p class=\"bad\" role=\"alert\">%s</p>\n", p.Wrong)
		writePlace(w, p.place, p.Controller, p.key)
		return
	}
	w.put("<p class=\"soft\">%d of %d keys</p>\n", p.Matched, p.Known)
	writeOthers(w, p.sharing, strings.TrimPrefix(keysOf(p.Controller), Path))
	p.writeKeys(w)
	w.put(`<p class="pages">`)
	if p.Before != "" {
		w.put(`<a href="%s" rel="prev">Previous</a>`, p.Before)
	}
	if p.After != "" {
		w.put(`<a href="%s" rel="next">Next</a>`, p.After)
	}
	w.put("</p>\n")
}

func writeSelect(w *writer, label string, options []string, chosen string) {
	w.put(`<label>%s <select name="%s">`, label, strings.ToLower(label))
	for _, o := range options {
		selected := markup("")
		if o == chosen {
			selected = " selected"
		}
		w.put("<option value=\"%s\"%s>%s</option>", o, selected, cmp.Or(o, "any"))
	}
	w.put("</select></label>\n")
}

func (p keysPage) writeKeys(w *writer) {
	head := []string{"Key", "State", "#Runs", "Last", "#Ended", "#Failures", "Error"}
	if p.all {
		head = append([]string{"Controller"}, head...)
	}
	w.table("Keys", head, func() {
		for _, k := range p.Keys {
			w.put("<tr>")
			if p.all {
				w.put("<td>%s</td>", k.Controller)
			}
			w.put(`<th scope="row"><a href="%s">%s</a></th><td>%s`, keyOf(k.Controller, k.Key), k.Key, stateText(k.State))
			if !k.Due.IsZero() {
				w.put(` <span class="soft">%s</span>`, until(k.Due))
			}
			if k.Paused != nil {
				w.put(` <em class="warn">paused</em>`)
			}
			ended := ""
			if !k.Ended.IsZero() {
				ended = since(k.Ended) + " ago"
			}
			w.put("</td><td class=\"n\">%d</td><td class=\"%s\">%s</td><td class=\"n\">%s</td><td class=\"n\">%d</td><td class=\"reason\">%s</td></tr>\n",
				k.Runs, outcomeClass(k.Outcome), k.Outcome, ended, k.Attempts, k.Error)
		}
		if len(p.Keys) == 0 {
			w.put(`<tr><td colspan="8" class="soft">There is no such key.</td></tr>`)
		}
	})
}

func (p keyPage) write(w *writer) {
	w.put("<p class=\"soft\"><a href=\"%s\">%s</a></p>\n<h1>%s</h1>\n<p class=\"facts\">%s", keysOf(p.Controller), p.Controller, p.KeyRow.Key, stateText(p.State))
	if p.AgeSeconds > 0 {
		w.put(" for %s", duration(p.AgeSeconds))
	}
	if !p.Due.IsZero() {
		w.put(", runs %s", until(p.Due))
	}
	if p.Attempts > 0 {
		w.put(` · <span class="bad">%d %s in a row</span>`, p.Attempts, plural(p.Attempts, "failure"))
	}
	if !p.FailingSince.IsZero() {
		w.put(" · fails for %s", since(p.FailingSince))
	}
	w.put("</p>\n")
	writePlace(w, p.Place, p.Controller, p.KeyRow.Key)
	p.controls.write(w, p.Controller, p.KeyRow.Key, p.Paused, p.PausedItself, wokenText(p.State))
	if p.Error != "" {
		w.put("<p class=\"reason bad\">%s</p>\n", p.Error)
	}
	for _, f := range p.Findings {
		w.put("<p class=\"finding\"><b>%s</b>: %s <span class=\"soft\">for %s</span></p>\n", f.Kind, f.Text, since(f.Since))
	}
	w.section("runs", "Reconciles, the newest first", func() {
		w.put("%s\n<ol class=\"runs\">\n", timeline(p.Timeline, time.Now()))
		for _, r := range p.Timeline {
			writeRun(w, r)
		}
		if len(p.Timeline) == 0 {
			w.put(`<li class="soft">No reconcile of this key is recorded.</li>`)
		}
		w.put("</ol>\n")
	})
	if p.Object == nil {
		return
	}
	w.section("object", p.Object.Kind+" as cached", func() {
		if len(p.Object.Owners) > 0 {
			w.put("<p>Owned by %s</p>\n", strings.Join(p.Object.Owners, ", "))
		}
		w.put("<pre tabindex=\"0\">%s</pre>\n", p.Object.YAML)
	})
}

func writeRun(w *writer, r inspect.Run) {
	w.put("<li class=\"run %s\" id=\"run-%s\">\n<div class=\"when\"><time datetime=\"%s\" title=\"%s\">%s ago</time><br><span class=\"soft\">%s</span></div>\n",
		outcomeClass(r.Outcome), r.ID, stamp(r.Began), stamp(r.Began), since(r.Began), r.ID)
	w.put("<div class=\"story\">\n<p>%s</p>\n<p><span class=\"outcome\">%s</span> after %s", why(r), r.Outcome, duration(r.TookSeconds))
	if r.WaitSeconds > 0 {
		w.put(", waited %s", duration(r.WaitSeconds))
	}
	if r.AfterSeconds > 0 {
		w.put(", again after %s", duration(r.AfterSeconds))
	}
	if r.Reason != "" {
		w.put(": %s", r.Reason)
	}
	w.put("</p>\n")
	if r.Error != "" {
		w.put("<p class=\"reason bad\">%s</p>\n", r.Error)
	}
	if len(r.Requests) == 0 {
		w.put("<p class=\"soft\">no requests</p>\n</div>\n</li>\n")
		return
	}
	w.put("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Requests of %s\"><table class=\"requests\">\n<thead class=\"hidden\"><tr><th>Request</th><th>Code</th><th>Time</th><th>Share of the run</th><th>Effect</th></tr></thead>\n<tbody>\n", r.ID)
	for _, q := range r.Requests {
		writeRequest(w, q, r.TookSeconds)
	}
	w.put("</tbody></table></div>\n")
	if r.MoreRequests > 0 {
		w.put("<p class=\"soft\">and %d more</p>\n", r.MoreRequests)
	}
	w.put("</div>\n</li>\n")
}

func writeRequest(w *writer, q inspect.Request, whole float64) {
	what := q.Kind
	if what == "" {
		what = q.Resource
	}
	w.put("<tr><td>%s %s <b>%s</b></td>", q.Verb, what, q.Object)
	switch {
	case q.Code == 0:
		w.put(`<td class="n bad">no answer</td>`)
	case q.Code >= 400 && (q.Code != 404 || q.Verb != "get"):
		w.put(`<td class="n bad">%d</td>`, q.Code)
	default:
		w.put(`<td class="n">%d</td>`, q.Code)
	}
	w.put(`<td class="n">%s</td><td>%s</td><td>`, duration(q.TookSeconds), bar(q.TookSeconds, whole))
	switch q.Effect {
	case "":
	case "nothing":
		w.put(`<span class="soft">changed nothing</span>`)
	default:
		w.put("%s %s", q.Effect, fields(q.Fields, q.MoreFields))
	}
	w.put("</td></tr>\n")
}
