// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// unsettled explains the keys that are not at rest: how often they failed, with what
// error, and the last requests of their reconciles.
func (p *programs) unsettled(r *record) string {
	var text strings.Builder
	for _, life := range p.running() {
		life.unsettled(&text)
	}
	for _, p := range p.all() {
		if how := r.ended(p.name); p.isMain() && how != "" {
			fmt.Fprintf(&text, "\nthe main of %s returned, the last time %s", p.name, how)
		}
	}
	return text.String()
}

func (p *process) unsettled(text *strings.Builder) {
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
