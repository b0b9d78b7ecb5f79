// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"strings"
	"testing"
	"time"
)

// The page opens at the first step that the correct run does not have, and tells of the
// reconciles of its key: what their cache had, what the server had, and what they did.
func TestHistory_PageOpensAtTheFirstDifference_K7(t *testing.T) {
	site := func(version uint64) Event {
		return Event{What: Changed, Who: "user", Kind: "Site", Key: "default/site", Name: "updated", UID: "u", Version: version}
	}
	cached := Event{What: Stored, Who: "p-1", Kind: "Site", Key: "default/site", UID: "u", Version: 1, Whole: true}
	begun := Event{At: time.Second, What: Begun, Who: "p-1", Kind: "page", Key: "default/site"}
	asked := Event{What: Asked, Who: "p-1", Name: "update", Kind: "ConfigMap", Key: "default/page", Request: 7, Run: "page default/site"}
	changed := Event{What: Changed, Who: "p-1", Name: "updated", Kind: "ConfigMap", Key: "default/page", UID: "c", Version: 3, Request: 7, Text: "data.text"}
	refused := Event{What: Answered, Who: "p-1", Name: "update", Kind: "ConfigMap", Key: "default/page", Request: 7, Code: 503}
	ended := Event{What: Ended, Who: "p-1", Kind: "page", Key: "default/site", Name: "done"}
	check := Event{What: Check, Name: "settled 1", Text: "the page is old"}
	good := &History{Events: []Event{site(1), cached, site(2), begun, asked, changed, ended}}
	h := &History{Events: []Event{site(1), cached, site(2), begun, asked, refused, ended, check}, Violations: []Violation{{"V17", "the page is old", 7}}}
	f := h.focusOn(good)
	if f.Event != 5 || !f.Least || strings.Join(f.Keys, " ") != "default/page default/site" {
		t.Errorf("it opens at event %d with keys %v, want 5 with default/page and default/site", f.Event, f.Keys)
	}
	want := "1s p-1's page default/site reconciles and sees a stale Site default/site: version 1, the server has version 2; " +
		"its update of ConfigMap default/page is answered with 503; it returns done"
	if len(f.Story) != 1 || f.Story[0].Text != want || f.Story[0].Event != 3 {
		t.Errorf("the story is %v, want\n%s", f.Story, want)
	}
	if f := h.focusOn(nil); f.Event != 7 || f.Least {
		t.Errorf("without a correct run it opens at event %d, want the violation", f.Event)
	}
	page, err := h.page(good)
	if err != nil || !strings.Contains(page, want) || strings.Contains(page, "{{") {
		t.Errorf("the page lacks the story, or a part of its template is left: %v", err)
	}
}

// A report of a reconcile that stops too early does not blame the fault that changes when
// its key is called.
func TestShrunk_NoFaultIsBlamedForAReconcile_K7(t *testing.T) {
	plan := Plan{Jump(time.Minute).At(time.Second)}
	for invariant, says := range map[string]string{"V24": "cause: the reconcile, not a fault.", "V17": "faults: of 3 operations 1 lead to it"} {
		s := &Shrunk{Least: &History{Plan: plan, Violations: []Violation{{Invariant: invariant}}}, of: 3}
		if text := s.String(); !strings.HasPrefix(text, says) {
			t.Errorf("a report of %s says\n%s\nwant %q", invariant, text, says)
		}
	}
}

// Fields are named by their paths, without values; a list is one field.
func TestFields_NameWhatHasChanged(t *testing.T) {
	was := map[string]any{"metadata": map[string]any{"resourceVersion": "1", "labels": map[string]any{"a": "1"}}, "data": map[string]any{"password": "x"}, "items": []any{"a"}}
	is := map[string]any{"metadata": map[string]any{"resourceVersion": "2", "labels": map[string]any{}}, "data": map[string]any{"password": "y"}, "items": []any{"a", "b"}}
	if got := strings.Join(differing(was, is), " "); got != "data.password items metadata.labels.a" {
		t.Errorf("the fields that differ are %q", got)
	}
}
