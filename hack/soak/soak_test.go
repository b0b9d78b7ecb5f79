// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"
)

// A few seconds of what make soak does for minutes, to keep it working.
func TestSoak_ShortRunEndsEqual(t *testing.T) {
	report, err := Soak(t.Context(), Options{For: 5 * time.Second, Seed: 7})
	t.Log(report)
	if err != nil {
		t.Fatal(err)
	}
	if report.Writes == 0 || report.Events == 0 || len(report.Recoveries) < 2 {
		t.Errorf("%d writes, %d events, %d recoveries: want some of each, else nothing was shown", report.Writes, report.Events, len(report.Recoveries))
	}
}

func TestSoak_DifferencesAreFound(t *testing.T) {
	want := view{{Name: "a"}: "1", {Name: "b"}: "2"}
	for name, c := range map[string]struct {
		got  view
		says string
	}{
		"nothing":  {view{{Name: "a"}: "1", {Name: "b"}: "2"}, ""},
		"missing":  {view{{Name: "a"}: "1"}, "the cache lacks /b"},
		"another":  {view{{Name: "a"}: "1", {Name: "b"}: "1"}, "the cache has /b at version 1, the server at 2"},
		"too many": {view{{Name: "a"}: "1", {Name: "b"}: "2", {Name: "c"}: "1"}, "the cache still has /c"},
	} {
		err := differ("the cache", c.got, want)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: got %v, want %q", name, err, c.says)
		}
	}
}
