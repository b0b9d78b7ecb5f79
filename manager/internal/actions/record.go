// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/manager/internal/inspect"
	"github.com/flyball-dev/flyball/reconcile"
)

// Annotation of the Lease that holds the pauses. Without it nothing is paused.
const Annotation = "flyball.dev/paused"

const (
	mostKeys   = 100 // paused by themselves, of all controllers
	mostRecord = 32 << 10
	mostBy     = 128 // bytes of a user's name
)

// record is what is paused, by controller. It is not modified.
type record map[string]entry

type entry struct {
	All  *pause           `json:"all,omitempty"`
	Keys map[string]pause `json:"keys,omitempty"`
}

type pause struct {
	By string    `json:"by"`
	At time.Time `json:"at"`
}

// decode returns the record in an annotation.
func decode(text string) (record, error) {
	if text == "" {
		return nil, nil
	}
	var r record
	if len(text) > mostRecord {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(text), mostRecord)
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return nil, err
	}
	return r, nil
}

// encode returns the annotation; empty: nothing is paused.
func (r record) encode() (string, error) {
	if len(r) == 0 {
		return "", nil
	}
	text, err := json.Marshal(r)
	if err == nil && len(text) > mostRecord {
		err = inspect.Refused(http.StatusConflict, "the paused keys take %d bytes, more than %d; resume some, or pause the controller", len(text), mostRecord)
	}
	return string(text), err
}

// of returns the pauses of a controller.
func (r record) of(controller string) reconcile.Pauses {
	e := r[controller]
	out := reconcile.Pauses{}
	if e.All != nil {
		all := reconcile.Pause(*e.All)
		out.All = &all
	}
	for key, p := range e.Keys {
		if out.Keys == nil {
			out.Keys = make(map[string]reconcile.Pause, len(e.Keys))
		}
		out.Keys[key] = reconcile.Pause(p)
	}
	return out
}

// keys returns how many are paused by themselves.
func (r record) keys() (n int) {
	for _, e := range r {
		n += len(e.Keys)
	}
	return n
}

// after returns the record after a pause or resume; changed is false if that changes nothing.
func (r record) after(a inspect.Action, now time.Time) (next record, changed bool, err error) {
	e := r[a.Controller]
	e.Keys = maps.Clone(e.Keys)
	by := pause{By: shorten(a.By, mostBy), At: now.UTC().Truncate(time.Second)}
	_, keyPaused := e.Keys[a.Key]
	switch pausing := a.Name == inspect.ActionPause; {
	case a.Key == "" && pausing == (e.All != nil), a.Key != "" && pausing == keyPaused:
		return r, false, nil
	case a.Key == "" && pausing:
		e.All = &by
	case a.Key == "":
		e.All = nil
	case !pausing:
		delete(e.Keys, a.Key)
	case r.keys() >= mostKeys:
		return r, false, inspect.Refused(http.StatusConflict, "%d keys are paused, and no more can be; resume some, or pause the controller", mostKeys)
	default:
		if e.Keys == nil {
			e.Keys = map[string]pause{}
		}
		e.Keys[a.Key] = by
	}
	next = maps.Clone(r)
	if next == nil {
		next = record{}
	}
	if next[a.Controller] = e; e.All == nil && len(e.Keys) == 0 {
		delete(next, a.Controller)
	}
	return next, true, nil
}

// shorten cuts text to a number of bytes.
func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}

// difference returns what one record pauses and another does not, as values of a log line.
func difference(one, other record) (out [][]any) {
	for controller, e := range one {
		was := other[controller]
		if e.All != nil && was.All == nil {
			out = append(out, []any{"controller", controller, "by", e.All.By})
		}
		for key, p := range e.Keys {
			if _, known := was.Keys[key]; !known {
				out = append(out, []any{"controller", controller, "key", key, "by", p.By})
			}
		}
	}
	return out
}
