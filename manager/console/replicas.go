// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/manager/internal/inspect"
)

// replicasPage shows how the replicas share the objects.
type replicasPage struct {
	inspect.Overview
	number map[string]int // of each replica in the map, from 1
}

func (c *console) replicas(*http.Request, content) (title string, now content, status int) {
	p := replicasPage{c.program.Parts().Of(), map[string]int{}}
	if p.Sharing == nil {
		return "Replicas", p, http.StatusNotFound
	}
	for i, r := range p.Sharing.Replicas {
		p.number[r.Name] = i + 1
	}
	return "Replicas", p, http.StatusOK
}

func (p replicasPage) write(w *writer) {
	s := p.Sharing
	if s == nil {
		w.put("<h1>Replicas</h1>\n<p class=\"soft\">The replicas of this program do not share its objects; Sharing.Shards makes them.</p>\n")
		return
	}
	w.put("<h1>Replicas</h1>\n<p class=\"facts\">%s share %s · the Lease is %s</p>\n", counted(len(s.Replicas), "replica"), planText(s.Plan), s.Lease)
	if s.Waits != "" {
		w.put("<p class=\"bad\" role=\"alert\">This replica takes no shards: %s</p>\n", s.Waits)
	}
	if s.Refused > 0 {
		w.put("<p class=\"soft\">%s of this replica refused, because it could not trust that it holds the shard.</p>\n", counted(int(s.Refused), "write"))
	}
	p.writeReplicas(w)
	w.section("shards", "Shards", func() { p.writeShards(w) })
	w.section("moves", "Shards that this replica has taken", func() { p.writeMoves(w) })
	w.section("divisions", "Objects on this replica", func() { p.writeDivisions(w) })
	w.section("keys", "Keys on this replica", func() { p.writeControllers(w) })
}

func (p replicasPage) writeReplicas(w *writer) {
	held := map[string][]int{}
	for _, one := range p.Sharing.Shards {
		held[one.Holder] = append(held[one.Holder], one.Shard)
	}
	w.table("Replicas", []string{"#No.", "Replica", "State", "#Weight", "#Shards", "Which"}, func() {
		for i, r := range p.Sharing.Replicas {
			w.put(`<tr><td class="n">%d</td><th scope="row">%s`, i+1, replicaLink(r.Name, r.Address, ""))
			if r.Me {
				w.put(` <em class="good">this one</em>`)
			}
			w.put("</th><td>%s</td><td class=\"n\">%d</td><td class=\"n\">%d</td><td>%s</td></tr>\n", p.state(r), r.Weight, len(held[r.Name]), shards.SetOf(held[r.Name]...).String())
		}
		if none := held[""]; len(none) > 0 {
			w.put("<tr><td class=\"n\">–</td><th scope=\"row\" class=\"bad\">nobody</th><td></td><td></td><td class=\"n\">%d</td><td>%s</td></tr>\n", len(none), shards.SetOf(none...).String())
		}
	})
}

func (p replicasPage) state(r inspect.Replica) markup {
	switch {
	case r.Leaving:
		return `<span class="warn">leaving</span>`
	case r.Plan != p.Sharing.Plan:
		return escaped(`<span class="warn">divides into %s</span>`, r.Plan)
	}
	return "active"
}

// marks of the shards in the map. A shape says what a colour says, too.
const (
	markClaimed  = "↓"
	markDraining = "↑"
	markMoving   = "→"
)

// writeShards writes a map. The table of replicas has the same as text.
func (p replicasPage) writeShards(w *writer) {
	w.put("<p class=\"soft\">Each box is a shard with the number of the replica that holds it: – nobody, ? one that has ended, " +
		markClaimed + " this replica takes it and its informers catch up, " + markDraining + " this replica gives it away when its reconciles have ended, " +
		markMoving + " it is to move.</p>\n<ol class=\"shards\" start=\"0\">\n")
	for _, one := range p.Sharing.Shards {
		class, mark := p.mark(one)
		w.put(`<li%s><small>%d</small> %s</li>`, class, one.Shard, mark)
	}
	w.put("</ol>\n")
	for _, one := range p.Sharing.Shards {
		if len(one.Keys) > 0 {
			w.put("<p class=\"finding\">Shard %d moves when these reconciles have ended: %s</p>\n", one.Shard, strings.Join(one.Keys, ", "))
		}
	}
}

func (p replicasPage) mark(s inspect.Shard) (class markup, mark string) {
	mark = "?" // its holder has ended
	if n := p.number[s.Holder]; n > 0 {
		mark = strconv.Itoa(n)
	}
	switch {
	case s.Holder == "":
		return ` class="bad"`, "–"
	case s.Stage == "claimed":
		return ` class="moves"`, mark + markClaimed
	case s.Stage == "draining":
		return ` class="moves"`, mark + markDraining
	case s.Next != "":
		return ` class="moves"`, mark + markMoving
	case s.Holder == p.Sharing.Identity:
		return ` class="mine"`, mark
	}
	return "", mark
}

// moveClasses are those of the reasons of moves.
var moveClasses = map[string]string{inspect.MovedPlanned: "good", inspect.MovedEnded: "warn"}

// writeMoves writes a row for shards that came together.
func (p replicasPage) writeMoves(w *writer) {
	moves := slices.Clone(p.Sharing.Moves)
	slices.Reverse(moves)
	w.table("Moves", []string{"#Ago", "Shards", "From", "Why", "#Informers took"}, func() {
		for len(moves) > 0 {
			m, some := moves[0], []int{}
			for len(moves) > 0 && moves[0].From == m.From && moves[0].Reason == m.Reason && moves[0].TookSeconds == m.TookSeconds {
				some, moves = append(some, moves[0].Shard), moves[1:]
			}
			w.put("<tr><td class=\"n\"><time datetime=\"%s\">%s</time></td><td>%s</td><td>%s</td><td class=\"%s\">%s</td><td class=\"n\">%s</td></tr>\n",
				stamp(m.At), since(m.At), shards.SetOf(some...).String(), m.From, moveClasses[m.Reason], m.Reason, duration(m.TookSeconds))
		}
		if len(p.Sharing.Moves) == 0 {
			w.put(`<tr><td colspan="5" class="soft">It has taken none.</td></tr>`)
		}
	})
}

// forms say who selects the objects of a kind.
var forms = map[string]string{
	"server": "the API server", "wire": "this replica, before it decodes", "whole": "nobody: each replica has all",
}

func formText(form string) string {
	if text := forms[form]; text != "" {
		return text
	}
	return form
}

func (p replicasPage) writeDivisions(w *writer) {
	w.table("Informers", []string{"Kind", "Which", "Selected by", "#Objects", "#Dropped", "#Dropped bytes"}, func() {
		for _, i := range p.Informers {
			w.put("<tr><th scope=\"row\"><a href=\"%sinformers#%s\">%[2]s</a></th><td>%s</td><td>%s</td><td class=\"n\">%d</td><td class=\"n\">%s</td><td class=\"n\">%s</td></tr>\n",
				Path, i.Kind, i.Division, formText(i.Form), i.Objects, count(i.Dropped), size(int64(i.DroppedBytes)))
		}
	})
}

func (p replicasPage) writeControllers(w *writer) {
	w.table("Controllers", []string{"Controller", "Its keys are those", "#Keys of other replicas dropped"}, func() {
		for _, c := range p.Controllers {
			of := "of the shards of this replica"
			switch {
			case c.Singleton:
				of = "of shard 0: one replica has all"
			case c.OwnShards:
				of = "of the shards of this replica, by its own Options.ShardBy"
			}
			w.put("<tr><th scope=\"row\"><a href=\"%s\">%s</a></th><td>%s</td><td class=\"n\">%s</td></tr>\n", keysOf(c.Name), c.Name, of, count(c.Foreign))
		}
	})
}

// replicaLink returns the name of a replica, as a link to a page of its console if it has an
// address. Anyone who may write its Lease chooses that.
func replicaLink(name, address, page string) markup {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return escaped("%s", name)
	}
	return escaped(`<a href="%s://%s%s%s" rel="noreferrer">%s</a>`, u.Scheme, u.Host, Path, page, name)
}

// planText returns a plan such as 32/uid for people.
func planText(plan string) string {
	number, by, ok := strings.Cut(plan, "/")
	if !ok {
		return plan
	}
	return number + " shards by " + strings.ReplaceAll(by, "uid", "UID")
}

func counted(n int, one string) string { return strconv.Itoa(n) + " " + plural(n, one) }

// writePlace says where a key belongs.
func writePlace(w *writer, place *inspect.Place, controller, key string) {
	if place == nil {
		return
	}
	page := strings.TrimPrefix(keyOf(controller, key), Path)
	w.put(`<p class="place">Shard %d, `, place.Shard)
	switch {
	case place.Holder == "":
		w.put(`<span class="bad">which no replica holds now</span>`)
	case place.Here:
		w.put("which this replica holds")
	default:
		w.put("which %s holds", replicaLink(place.Holder, place.Address, page))
	}
	w.put(" · <a href=\"%sreplicas\">all replicas</a></p>\n", Path)
}

// writeOthers links the same page of the other replicas, which have other keys.
func writeOthers(w *writer, s *inspect.Sharing, page string) {
	if s == nil || len(s.Replicas) < 2 {
		return
	}
	w.put("<p class=\"soft\">These are keys of this replica. The others have more:")
	for _, r := range s.Replicas {
		if !r.Me {
			w.put(" %s", replicaLink(r.Name, r.Address, page))
		}
	}
	w.put("</p>\n")
}
