// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"testing"
	"time"
)

func TestStandstill_CountsTheTimeInWhichTheProcessRan_M10(t *testing.T) {
	const tick = 5 * time.Second
	moving, waiting := standing{"x", 1, true}, standing{"x", 0, true}
	idle := standing{"x", 0, false}
	type look struct {
		after time.Duration // since the look before
		at    standing
		skip  bool
	}
	for _, tc := range []struct {
		name  string
		looks []look
		asked standing
		after time.Duration // since the last look
		want  time.Duration
	}{
		{"never looked at", nil, waiting, time.Hour, 0},
		{"seen once", []look{{0, waiting, false}}, waiting, 3 * time.Second, 3 * time.Second},
		{"stands", []look{{0, waiting, false}, {tick, waiting, false}, {tick, waiting, false}}, waiting, 0, 2 * tick},
		{"has moved", []look{{0, waiting, false}, {tick, moving, false}}, moving, time.Second, time.Second},
		{"moves while it is asked", []look{{0, waiting, false}, {tick, waiting, false}}, moving, 0, 0},
		{"nothing waits", []look{{0, idle, false}, {tick, idle, false}}, idle, 0, 0},
		{"work has just come", []look{{0, idle, false}, {tick, idle, false}, {tick, waiting, false}}, waiting, 0, 0},
		{"work was gone between", []look{{0, waiting, false}, {tick, idle, false}, {tick, waiting, false}}, waiting, 0, 0},
		{"frozen for an hour", []look{{0, waiting, false}, {tick, waiting, false}, {time.Hour, waiting, false}}, waiting, 0, 3 * tick},
		{"frozen until it is asked", []look{{0, waiting, false}, {tick, waiting, false}}, waiting, time.Hour, 3 * tick},
		{"frozen again and again", []look{{0, waiting, false}, {time.Hour, waiting, false}, {time.Hour, waiting, false}}, waiting, 0, 4 * tick},
		{"paused by a simulation", []look{{0, waiting, false}, {time.Hour, waiting, true}, {tick, waiting, false}}, waiting, 0, tick},
		{"another thing", []look{{0, waiting, false}, {tick, waiting, false}}, standing{"y", 0, true}, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := standstill{tick: tick}
			now := time.Now()
			for _, l := range tc.looks {
				now = now.Add(l.after)
				if l.skip {
					s.skip(now)
					continue
				}
				s.look(now, []standing{l.at})
			}
			if got := s.stands(now.Add(tc.after), tc.asked); got != tc.want {
				t.Errorf("it has stood still for %v, want %v", got, tc.want)
			}
		})
	}
}

func TestStandstill_ForgetsWhatIsGone_M10(t *testing.T) {
	s := standstill{tick: time.Second}
	s.look(time.Now(), []standing{{"x", 0, true}})
	s.look(time.Now(), nil)
	if len(s.seen) != 0 {
		t.Errorf("it knows %v, which are gone", s.seen)
	}
}
