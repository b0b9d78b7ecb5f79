// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// found returns the result of a probe, up to the end of the fault phase.
func (h *History) found(phase time.Duration) (out probed) {
	for _, e := range h.Events {
		if e.What == Asked && e.Name == "watch" && !slices.Contains(out.watched, e.Kind) {
			out.watched = append(out.watched, e.Kind)
		}
	}
	slices.Sort(out.watched)
	out.moments = momentsOf(h, phase)
	return out
}

// momentsOf returns the classes of a probe's writes in the fault phase, in the order of
// their first write.
func momentsOf(h *History, phase time.Duration) (out []moment) {
	var user []time.Duration
	for _, e := range h.Events {
		if e.What == Asked && e.Who == "user" {
			user = append(user, e.At)
		}
	}
	known := map[string]bool{} // classes and objects
	for _, e := range h.Events {
		if e.What != Asked || !writes(e.Name) && !calls(e.Name) || e.At >= phase || h.renews(e) || strings.HasPrefix(e.Kind, "Event") {
			continue
		}
		write, byUser := e.Name+" "+e.Kind+e.Subresource(), e.Who == "user"
		i := slices.IndexFunc(out, func(m moment) bool { return m.write == write && m.user == byUser })
		if i < 0 {
			i = len(out)
			out = append(out, moment{write: write, user: byUser})
		}
		hold := time.Duration(0)
		if next := slices.IndexFunc(user, func(at time.Duration) bool { return at > e.At }); next >= 0 {
			hold = (user[next] - e.At + margin).Round(100 * time.Millisecond)
		}
		if of := fmt.Sprint(i, " ", e.Key); !known[of] || calls(e.Name) {
			known[of] = true
			out[i].first = append(out[i].first, len(out[i].at))
		}
		out[i].at, out[i].holds = append(out[i].at, e.At), append(out[i].holds, hold)
	}
	return out
}

// margin is how long a hold lasts beyond the user's next write.
const margin = 300 * time.Millisecond

// Subresource returns that of a request, with a slash, such as "/status". Empty: there is none.
func (e Event) Subresource() string {
	path, _, _ := strings.Cut(e.Text, "?")
	_, name, _ := strings.Cut(e.Key, "/")
	name = cmp.Or(name, e.Key)
	if _, sub, ok := strings.Cut(path, "/"+name+"/"); ok && name != "" && !strings.Contains(sub, "/") {
		return "/" + sub
	}
	return ""
}

// probes caches the probes of a sweep by seed: variations share them.
type probes struct {
	mu struct {
		sync.Mutex
		found map[uint64]probed
	}
}

func newProbes() *probes {
	p := &probes{}
	p.mu.found = map[uint64]probed{}
	return p
}

func (p *probes) get(seed uint64) (found probed, known bool) {
	if p == nil {
		return probed{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	found, known = p.mu.found[seed]
	return found, known
}

func (p *probes) put(seed uint64, found probed) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.found[seed] = found
}
