// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/shards"
	"github.com/flyball-dev/flyball/manager/internal/inspect"
	"github.com/flyball-dev/flyball/reconcile"
)

// sharer is a program whose replicas share objects.
type sharer struct {
	*program
	shared *inspect.Sharing
}

func (s *sharer) Sharing() *inspect.Sharing { return s.shared }

func (s *sharer) Parts() inspect.Parts {
	p := s.program.Parts()
	p.Sharing = s.shared
	p.Informers = []state.Informer{{Division: state.Division{Form: state.FormWire, By: "namespace", Count: 4, Held: "0-1", Foreign: 70, ForeignBytes: 7000}}}
	p.Controllers = append(p.Controllers, reconcile.Snapshot{Name: "once", Singleton: true, Foreign: 5})
	return p
}

// The page has who holds each shard, what moves, and what this replica has and drops; the page of a
// key leads to the replica that has it.
func TestConsole_ReplicasAreShown_M32(t *testing.T) {
	now := time.Now()
	p := &sharer{&program{name: "website", text: "shop/web"}, &inspect.Sharing{
		Lease: "ops/website", Identity: "website-a", Plan: "4/namespace", LeaseSeconds: 15,
		Replicas: []inspect.Replica{
			{Name: "website-a", Plan: "4/namespace", Weight: 1, Me: true},
			{Name: "website-b", Plan: "4/namespace", Weight: 2, Address: "https://10.0.0.7:8443"},
			{Name: "website-c", Plan: "8/uid", Address: "javascript://x/%0aalert(1)"},
		},
		Shards: []inspect.Shard{
			{Shard: 0, Holder: "website-a", Stage: "held"}, {Shard: 1, Holder: "website-a", Stage: "draining", Next: "website-b", Since: now, Keys: []string{"website shop/slow"}},
			{Shard: 2, Holder: "website-b"}, {Shard: 3, Since: now},
		},
		Moves: []inspect.Move{
			{At: now, Shard: 1, To: "website-a", Reason: inspect.MovedUnheld},
			{At: now, Shard: 2, From: "website-x", To: "website-a", Reason: inspect.MovedEnded, TookSeconds: 1.5},
			{At: now, Shard: 0, From: "website-x", To: "website-a", Reason: inspect.MovedEnded, TookSeconds: 1.5},
		},
	}}
	has := func(page string, code int, wants ...string) string {
		t.Helper()
		got, body, _ := open(t, p, page)
		if got != code {
			t.Errorf("%q: %d, want %d", page, got, code)
		}
		for _, want := range wants {
			if !strings.Contains(body, want) {
				t.Errorf("%q lacks %q:\n%s", page, want, body)
			}
		}
		return body
	}
	body := has("replicas", http.StatusOK,
		`aria-current="page">Replicas</a>`, "3 replicas share 4 shards by namespace",
		`<a href="https://10.0.0.7:8443/debug/flyball/" rel="noreferrer">website-b</a>`, `<span class="warn">divides into 8/uid</span>`,
		`website-a <em class="good">this one</em></th><td>active</td><td class="n">1</td><td class="n">2</td><td>0-1</td>`,
		`class="bad">nobody</th><td></td><td></td><td class="n">1</td><td>3</td>`,
		`<li class="mine"><small>0</small> 1</li><li class="moves"><small>1</small> 1↑</li><li><small>2</small> 2</li><li class="bad"><small>3</small> –</li>`,
		"Shard 1 moves when these reconciles have ended: website shop/slow",
		`<td>0,2</td><td>website-x</td><td class="warn">replica ended</td><td class="n">1.5 s</td>`,
		"<td>shards 0-1 of 4 by namespace</td><td>this replica, before it decodes</td>", `<td class="n">70</td><td class="n">7.0 kB</td>`,
		`once</a></th><td>of shard 0: one replica has all</td><td class="n">5</td>`,
	)
	if strings.Contains(body, "javascript:") {
		t.Errorf("the page links to an address that is no URL of a server:\n%s", body)
	}
	has("", http.StatusOK, `holds 2 of <a href="/debug/flyball/replicas">4 shards by namespace</a>`)
	has("informers", http.StatusOK, "Holds shards 0-1 of 4 by namespace, selected by this replica, before it decodes; 70 of others dropped, 7.0 kB as sent")
	has("search?q=shop", http.StatusOK, `<a href="https://10.0.0.7:8443/debug/flyball/search?q=shop" rel="noreferrer">website-b</a> website-c`)

	namespaces := map[int]string{}
	for n := 0; len(namespaces) < 4; n++ {
		name := "n" + strings.Repeat("x", n)
		namespaces[shards.Of(name, 4)] = name
	}
	there := "controllers/website/key?key=" + namespaces[2] + "%2Fweb"
	has(there, http.StatusNotFound, "no recorded run", `Shard 2, which <a href="https://10.0.0.7:8443/debug/flyball/`+there+`" rel="noreferrer">website-b</a> holds`)
	has("controllers/website/key?key="+namespaces[3]+"%2Fweb", http.StatusNotFound, "Shard 3, <span class=\"bad\">which no replica holds now</span>")
	p.text = namespaces[0] + "/web"
	has("controllers/website/key?key="+namespaces[0]+"%2Fweb", http.StatusOK, "Shard 0, which this replica holds")

	p.shared.Waits = "the others divide into 8/uid"
	has("replicas", http.StatusOK, `role="alert">This replica takes no shards: the others divide into 8/uid`)
	p.shared = nil
	if body := has("replicas", http.StatusNotFound, "do not share its objects"); strings.Contains(body, ">Replicas</a>") {
		t.Error("a program that shares nothing has a link to its replicas")
	}
}
