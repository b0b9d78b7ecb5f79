// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import "fmt"

// madeOnce (V25): a Service makes something for an object once.
func madeOnce(h *History) (out []Violation) {
	type thing struct{ service, object string }
	first := map[thing]int{}
	for i, e := range h.Events {
		if e.What != Made {
			continue
		}
		t := thing{e.Kind, e.Key}
		at, again := first[t]
		if !again {
			first[t] = i
			continue
		}
		was := h.Events[at]
		out = append(out, violated(i, "%s makes something for %s twice: at %s for %s%s, and again for %s. "+
			"Look for it before you make it, or send a key by which the service recognizes the repetition",
			e.Kind, e.Key, was.At, was.by(), h.whyUnrecorded(was, at), e.by()))
	}
	return out
}

// by names the process, and the reconcile, of a request.
func (e Event) by() string {
	if e.Run == "" {
		return e.Who
	}
	return e.Who + "'s " + e.Run
}

// whyUnrecorded says what kept a process from recording the answer to a call.
func (h *History) whyUnrecorded(made Event, at int) string {
	for _, e := range h.Events[at:] {
		switch {
		case e.What == Answered && e.Request == made.Request && e.Code == 0:
			return ", whose answer was lost"
		case e.What == Fault && e.Key == made.Who:
			return fmt.Sprintf(", which met the fault %q after that", e.Name)
		case e.What == Ended && e.Who == made.Who && e.Kind+" "+e.Key == made.Run && retried(e.Name):
			return fmt.Sprintf(", which then ended with %s: %s", e.Name, e.Text)
		case e.What == Ended && e.Who == made.Who && e.Kind+" "+e.Key == made.Run:
			return ""
		}
	}
	return ""
}
