// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

const (
	mostText   = 4 << 10 // bytes of a body that are shown
	mostFields = 10
)

// Difference is where a replay differs from its recording.
type Difference struct {
	// Of is the reconcile, Causes why the recorded one ran, At when, since the recording began.
	Of, Causes string
	At         time.Duration
	// Before are the requests that both have sent.
	Before []string
	// Recorded and Replayed are what each did then.
	Recorded, Replayed string
}

// Error implements error.
func (d *Difference) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, which began %v after the recording, for: %s\n", d.Of, d.At.Round(time.Millisecond), d.Causes)
	for _, request := range d.Before {
		fmt.Fprintf(&b, "  both have sent %s\n", request)
	}
	fmt.Fprintf(&b, "the recorded program %s\nthe replayed program %s", d.Recorded, d.Replayed)
	return b.String()
}

func (p *player) differs(r *run, was, is string) error {
	d := &Difference{Of: r.name.String(), Causes: r.causes, At: r.began, Recorded: was, Replayed: is}
	for _, e := range r.requests[:min(r.sent, len(r.requests))] {
		d.Before = append(d.Before, e.Method+" "+e.Path)
	}
	return d
}

func outcomeText(outcome, err string) string {
	if err == "" {
		return outcome
	}
	return outcome + ": " + err
}

// requestText returns a request for people.
func requestText(method, path string, body []byte, missing string) string {
	text := "    " + method + " " + path
	var shown bytes.Buffer
	switch {
	case missing != "":
		text += "\n    (" + missing + ")"
	case len(body) > 0 && json.Indent(&shown, body, "    ", "  ") == nil:
		text += "\n    " + shown.String()[:min(shown.Len(), mostText)]
	}
	return text
}

// differences returns the fields in which two bodies differ, one a line. Empty: they do not.
func differences(was, is []byte) string {
	a, errA := valueOf(was)
	b, errB := valueOf(is)
	if errA != nil || errB != nil {
		return "    the whole body"
	}
	var out []string
	compare("", a, b, &out)
	if more := len(out) - mostFields; more > 0 {
		out = append(out[:mostFields], fmt.Sprintf("    and %d more", more))
	}
	return strings.Join(out, "\n")
}

// missing stands for a field that is not there; null is a value.
type missing struct{}

func valueOf(text []byte) (v any, err error) {
	if len(text) == 0 {
		return missing{}, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // large ones keep their digits
	err = d.Decode(&v)
	return v, err
}

func field(of map[string]any, name string) any {
	if value, has := of[name]; has {
		return value
	}
	return missing{}
}

func compare(path string, was, is any, out *[]string) {
	a, isMap := was.(map[string]any)
	b, areMaps := is.(map[string]any)
	if isMap && areMaps {
		for _, name := range slices.Sorted(maps.Keys(union(a, b))) {
			compare(strings.TrimPrefix(path+"."+name, "."), field(a, name), field(b, name), out)
		}
		return
	}
	x, isList := was.([]any)
	y, areLists := is.([]any)
	if isList && areLists && len(x) == len(y) {
		for i := range x {
			compare(fmt.Sprintf("%s[%d]", path, i), x[i], y[i], out)
		}
		return
	}
	if reflect.DeepEqual(was, is) {
		return
	}
	line := fmt.Sprintf("    %s: %s recorded, %s replayed", path, valueText(was), valueText(is))
	if isTime(was) && isTime(is) {
		line += " (take the time from reconcile.Now, so that a replay has the recorded one)"
	}
	*out = append(*out, line)
}

func union(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

func valueText(v any) string {
	if v == (missing{}) {
		return "nothing"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text[:min(len(text), 200)])
}

func isTime(v any) bool {
	text, is := v.(string)
	if !is {
		return false
	}
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}
