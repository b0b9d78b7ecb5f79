// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/manager/internal/inspect"
	"github.com/flyball-dev/flyball/reconcile"
)

// charted is a program whose controller was busy.
type charted struct {
	*program
	recent []reconcile.Interval
	now    time.Time
}

func (c charted) Parts() (p inspect.Parts) {
	p = c.program.Parts()
	p.Controllers[0].Recent, p.Now = c.recent, c.now
	return p
}

// The charts have a text, and show failures by their place, not by a colour alone.
func TestConsole_ChartsOfTheLastMinutes(t *testing.T) {
	now := time.Now().Truncate(10 * time.Second)
	at := func(ago time.Duration, i reconcile.Interval) reconcile.Interval {
		i.Began = now.Add(-ago)
		return i
	}
	c := charted{program: &program{name: "website", text: "shop/web"}, now: now}
	if _, body, _ := open(t, c, ""); strings.Contains(body, "figure") {
		t.Errorf("a controller that did nothing has a chart: %s", body)
	}
	c.recent = []reconcile.Interval{
		at(10*time.Hour, reconcile.Interval{Done: 1000}), // older than the charts
		at(2*time.Minute, reconcile.Interval{Done: 30, Ready: 1}),
		at(time.Minute, reconcile.Interval{Done: 6, Requeued: 4, Failed: 10, Ready: 8, Oldest: 3 * time.Second}),
	}
	_, body, _ := open(t, c, "")
	for _, want := range []string{
		`aria-label="In the last 10 minutes: 36 done, 4 requeued, 10 failed"`,
		`aria-label="In the last 10 minutes: at most 8 ready keys"`,
		`aria-label="In the last 10 minutes: waits of at most 3.0 s"`,
		`▼ 10 failed`,
		`class="axis" d="M0 30.0h300"`, // 30 of 40 are above it
		fmt.Sprintf(`class="good" d="M%d 30.0h4v-30.0h-4zM%d 30.0h4v-6.0h-4z"`, 47*5, 53*5),
		fmt.Sprintf(`class="warn" d="M%d 24.0h4v-4.0h-4z"`, 53*5),
		fmt.Sprintf(`class="bad" d="M%d 30.0h4v10.0h-4z"`, 53*5),
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the overview lacks %q", want)
		}
	}
	if t.Failed() {
		_, chart, _ := strings.Cut(body, `<div class="charts">`)
		t.Log(chart)
	}
	for i := range 60 {
		c.recent = append(c.recent, at(time.Duration(i)*10*time.Second, reconcile.Interval{Done: 1234567, Requeued: 1, Failed: 1, Ready: 99999, Oldest: time.Hour}))
	}
	_, full, _ := open(t, c, "")
	if grown := len(full) - len(body); grown > 8<<10 {
		t.Errorf("full charts take %d bytes more, want at most 8 KiB", grown)
	}
}
