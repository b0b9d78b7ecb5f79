// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/internal/simhook"
)

const (
	// kept requests of each key.
	kept = 6
	// explained keys of each process that does not come to rest.
	explained = 3
)

// asked keeps a request that a reconcile has sent, and how it ended, for the case that
// its key never comes to rest.
func (p *process) asked(r *http.Request, answer *http.Response, err error) {
	run, ok := simhook.RunOf(r.Context())
	if !ok {
		return
	}
	how := ""
	switch {
	case err != nil:
		how = err.Error()
	default:
		how = fmt.Sprint(answer.StatusCode)
	}
	path := r.URL.Path
	if r.URL.RawQuery != "" {
		path += "?" + r.URL.RawQuery
	}
	line := fmt.Sprintf("%12s %s %s: %s", time.Since(p.w.start), r.Method, path, how)
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.mu.busy[keyed{run.Controller, run.Key}]
	if a == nil {
		return
	}
	if len(a.asked) == kept {
		a.asked = slices.Delete(a.asked, 0, 1)
	}
	a.asked = append(a.asked, line)
}

// unrest says of the keys that are not at rest why: how often they have failed, with
// what, and what their reconciles asked for last.
func (w *World) unrest() string {
	var text strings.Builder
	for _, p := range w.running() {
		p.unrest(&text)
	}
	return text.String()
}

func (p *process) unrest(text *strings.Builder) {
	standby := p.standsBy()
	p.mu.Lock()
	defer p.mu.Unlock()
	var restless []keyed
	for k, a := range p.mu.busy {
		if !a.idle() && !(standby && !p.mu.works[k.controller]) {
			restless = append(restless, k)
		}
	}
	slices.SortFunc(restless, func(a, b keyed) int {
		return cmp.Or(cmp.Compare(a.controller, b.controller), cmp.Compare(a.key, b.key))
	})
	for i, k := range restless {
		if i == explained {
			fmt.Fprintf(text, "\nand %d more keys of %s", len(restless)-i, p.name)
			break
		}
		a := p.mu.busy[k]
		fmt.Fprintf(text, "\n%s %s of %s ", k.controller, k.key, p.name)
		switch {
		case a.failed > 0:
			fmt.Fprintf(text, "has failed %d times in a row, the last time with %s", a.failed, a.last)
		case a.running:
			text.WriteString("is with a worker")
		default:
			text.WriteString("is added again and again, and fails with nothing")
		}
		if len(a.asked) > 0 {
			fmt.Fprintf(text, "\n  its last requests:\n    %s", strings.Join(a.asked, "\n    "))
		}
	}
}
