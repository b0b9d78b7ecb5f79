// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/flyball-dev/flyball/internal/effects"
	"github.com/flyball-dev/flyball/internal/recording"
)

// omittedLocked answers an apply that waits and changes nothing, if there is one: a client does not
// send an apply of which it knows that, and what the recorded program knew, the replay may have yet to
// learn, and the other way round.
func (p *player) omittedLocked(r *run) bool {
	for i, c := range r.pending {
		if !strings.HasPrefix(c.patch, recording.Apply) || c.missing != "" || r.sends(c) {
			continue
		}
		if object := p.informers.unchanged(c.path, c.body); object != nil {
			r.pending = slices.Delete(r.pending, i, i+1)
			c.answered <- &recording.Entry{Code: http.StatusOK, Body: recording.Body{JSON: object}}
			return true
		}
	}
	return false
}

// sends reports whether the recorded reconcile sends a request like c, with which c is compared.
func (r *run) sends(c *call) bool {
	return slices.ContainsFunc(r.requests, func(e *recording.Entry) bool {
		return !r.over[e.Number] && e.Method == c.method && e.Path == c.path
	})
}

// unchanged returns the cached object if an apply changes nothing: it has all fields of body. Nil: it
// changes something, or that is not known.
func (s *informers) unchanged(path string, body []byte) (object json.RawMessage) {
	path, _, _ = strings.Cut(path, "?")
	to, ok := effects.Parse(path, "")
	if !ok || to.Subresource != "" && to.Subresource != "status" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.ofLocked(to.Resource, false)
	if i == nil || i.metadata || i.objects[to.Key] == nil {
		return nil
	}
	text, err := json.Marshal(i.objects[to.Key].Object)
	var wanted, is map[string]any
	if err != nil || json.Unmarshal(text, &is) != nil || json.Unmarshal(body, &wanted) != nil || !within(wanted, is) {
		return nil
	}
	return text
}

// within reports whether is has every field of wanted with its value. The elements of lists with
// names, such as containers, are paired by name.
func within(wanted, is any) bool {
	switch w := wanted.(type) {
	case map[string]any:
		i, same := is.(map[string]any)
		for name, value := range w {
			if same && name != "managedFields" {
				same = within(value, i[name])
			}
		}
		return same
	case []any:
		i, same := is.([]any)
		for n, value := range w {
			same = same && (n < len(i) && within(value, i[n]) || slices.ContainsFunc(i, func(other any) bool { return named(value, other) && within(value, other) }))
		}
		return same
	}
	return wanted == is
}

// named reports whether two elements of a list have the same name.
func named(a, b any) bool {
	x, isMap := a.(map[string]any)
	y, areMaps := b.(map[string]any)
	return isMap && areMaps && x["name"] != nil && x["name"] == y["name"]
}
