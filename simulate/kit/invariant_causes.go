// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

// mostExplained is how many keys a controller may have so that the causes of each are certain to be
// recorded: half of the bound of package reconcile.
const mostExplained = 4096

// reconcilesAreExplained (V29): each reconcile names at least one cause, and each event that it
// names is one of the server's history.
func reconcilesAreExplained(h *History) (out []Violation) {
	versions := map[object]map[uint64]bool{}
	keys, seen := map[worker]int{}, map[line]bool{}
	for i, e := range h.Events {
		switch e.What {
		case Changed:
			of := object{e.Kind, e.Key}
			if versions[of] == nil {
				versions[of] = map[uint64]bool{}
			}
			versions[of][e.Version] = true
		case Enqueued:
			if !seen[lineOf(e)] {
				seen[lineOf(e)] = true
				keys[worker{e.Who, e.Kind}]++
			}
		case Begun:
			if e.Count == 0 && keys[worker{e.Who, e.Kind}] <= mostExplained {
				out = append(out, violated(i, "%s runs and does not know why", lineOf(e)))
			}
			for _, c := range e.Causes {
				for _, version := range []uint64{c.OldVersion, c.Version} {
					if version != 0 && !versions[object{c.Kind, c.Key}][version] {
						out = append(out, violated(i, "%s runs because of %s %s at version %d, which the server never had", lineOf(e), c.Kind, c.Key, version))
					}
				}
			}
		}
	}
	return out
}
