// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import "time"

const (
	// tooOften is how many times a program may make an object again that it has itself deleted.
	tooOften = 3
	// shortLived is the age of an object whose deletion undoes its creation.
	shortLived = time.Minute
)

// keptOnceMade (V28): a program does not delete what it has just made, and make it again, and so on,
// while nothing but the program and the cluster changes anything. Two of its parts do not
// agree whether there is to be such an object.
func keptOnceMade(h *History) (out []Violation) {
	type life struct {
		made  bool // by the program, at born
		born  time.Duration
		undo  bool // and deleted by it soon after
		times int
	}
	program, lives := map[string]bool{}, map[object]*life{}
	for i, e := range h.Events {
		switch {
		case e.What == Started:
			program[e.Who] = true
			continue
		case e.What != Changed:
			continue
		case !program[e.Who] && e.Who != "cluster":
			clear(lives) // what is wanted may be another
			continue
		}
		o := object{e.Kind, e.Key}
		l := lives[o]
		if l == nil {
			l = &life{}
			lives[o] = l
		}
		switch {
		case !program[e.Who]:
			if e.Name == "deleted" {
				delete(lives, o)
			}
		case e.Name == "created":
			if l.undo {
				if l.times++; l.times == tooOften {
					out = append(out, violated(i, "%s makes %s %s for the %dth time and has deleted it itself each time, though nobody else has changed anything: "+
						"which part of the program makes it, and which deletes it?", e.Who, e.Kind, e.Key, l.times+1))
				}
			}
			l.made, l.undo, l.born = true, false, e.At
		case e.Name == "deleted":
			l.undo = l.made && e.At-l.born <= shortLived
			l.made = false
		}
	}
	return out
}
