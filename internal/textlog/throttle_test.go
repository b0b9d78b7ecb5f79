// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package textlog

import (
	"hash/maphash"
	"testing"
	"time"
)

var day = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

// shown returns the seconds at which a line that arrives every step is logged.
func shown(th *throttle, s subject, step, during time.Duration) (at []int, omitted uint64) {
	for d := time.Duration(0); d < during; d += step {
		if show, n, _ := th.admit(day.Add(d), s); show {
			at = append(at, int(d.Seconds()))
			omitted += n
		}
	}
	return at, omitted
}

func TestThrottle_OneKeyIsLoggedAtAFallingRate(t *testing.T) {
	var th throttle
	at, _ := shown(&th, subject{text: 1, part: 2, key: 3, cause: 4}, time.Second, 12*time.Hour)
	want := []int{0, 10, 30, 70, 150, 310, 630, 1270, 2550, 5110, 8710, 12310}
	for i, second := range want {
		if i >= len(at) || at[i] != second {
			t.Fatalf("logged at %v seconds, want it to begin with %v", at, want)
		}
	}
	if len(at) > len(want)+9 {
		t.Errorf("%d lines in twelve hours, want one an hour at the end", len(at))
	}
}

func TestThrottle_AnotherCauseIsNews(t *testing.T) {
	var th throttle
	s := subject{text: 1, part: 2, key: 3, cause: 4}
	shown(&th, s, time.Second, time.Hour)
	s.cause = 5
	if show, omitted, _ := th.admit(day.Add(time.Hour), s); !show || omitted == 0 {
		t.Errorf("a key that fails for another reason: shown %v with %d left out before it; want it shown, and their count", show, omitted)
	}
	for i := range 5000 {
		s.cause = uint64(100 + i)
		if show, _, _ := th.admit(day.Add(time.Hour+time.Duration(i)*time.Millisecond), s); show {
			t.Fatalf("shown again after %d ms, since its text is always another", i)
		}
	}
}

func TestThrottle_AfterAPauseItIsANewBeginning(t *testing.T) {
	var th throttle
	s := subject{text: 1, part: 2, key: 3}
	shown(&th, s, time.Second, 10*time.Minute) // the next is due 630 s after the first, the gap is 320 s
	if show, _, _ := th.admit(day.Add(2*time.Hour), s); !show {
		t.Fatal("not shown after two quiet hours")
	}
	if show, _, _ := th.admit(day.Add(2*time.Hour+10*time.Second), s); !show {
		t.Error("not shown ten seconds later, as after the first time")
	}
}

// Each line is shown or counted, and few are shown.
func FuzzThrottle_EachLineIsShownOrCounted(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 1, 1, 2, 2, 2}, uint16(10))
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}, uint16(5000))
	f.Fuzz(func(t *testing.T, script []byte, keys uint16) {
		var th throttle
		now, lines, accounted := day, uint64(0), uint64(0)
		for i := 0; i+1 < len(script) && lines < 1<<16; i += 2 {
			pause := time.Duration(script[i]) * time.Duration(script[i]) * 100 * time.Millisecond
			for k := range uint64(keys)%3000 + 1 {
				part := uint64(script[i+1]) % 5
				s := subject{text: 1, part: 10 + part, key: 1000 + part<<32 + k, cause: uint64(script[i+1])}
				lines++
				if show, omitted, forgotten := th.admit(now, s); show {
					accounted += 1 + omitted + forgotten
				}
			}
			now = now.Add(pause)
		}
		pending := th.forgotten
		for _, e := range th.all {
			pending += e.omitted
		}
		if accounted+pending != lines {
			t.Errorf("%d lines: %d shown or told of, %d still to be told of", lines, accounted, pending)
		}
		if len(th.all) > mostPaced {
			t.Errorf("%d things are remembered, want at most %d", len(th.all), mostPaced)
		}
	})
}

func TestThrottle_AFloodOfKeysIsBounded(t *testing.T) {
	for name, parts := range map[string]uint64{"one controller": 1, "a thousand kinds": 1000} {
		var th throttle
		n := 0
		for i := range uint64(20_000) { // in two seconds
			part := i % parts
			s := subject{text: 1, part: 10 + part, key: 1<<40 + i, cause: i}
			if show, _, _ := th.admit(day.Add(time.Duration(i)*100*time.Microsecond), s); show {
				n++
			}
		}
		if most := map[string]int{"one controller": 11, "a thousand kinds": 105}[name]; n > most {
			t.Errorf("%s: %d lines of 20,000 keys in two seconds, want at most %d", name, n, most)
		}
	}
}

func TestFrames_SameFaultInAnotherGoroutine(t *testing.T) {
	one := "goroutine 12 [running]:\nmain.f(0xc0001, {0x1, 0x2})\n\t/src/main.go:10 +0x1b\ncreated by main.g in goroutine 1\n\t/src/main.go:2 +0x9\n"
	two := "goroutine 99 [running]:\nmain.f(0xc0777, {0x5, 0x6})\n\t/src/main.go:10 +0x1b\ncreated by main.g in goroutine 7\n\t/src/main.go:2 +0x9\n"
	other := "goroutine 99 [running]:\nmain.f(0xc0777, {0x5, 0x6})\n\t/src/main.go:11 +0x1b\n"
	if frames(one) != frames(two) || frames(one) == frames(other) {
		t.Errorf("%q, %q and %q: want the first two alike", frames(one), frames(two), frames(other))
	}
	if s := (&shared{seed: maphash.MakeSeed()}); s.hash("a", "bc") == s.hash("ab", "c") {
		t.Error("the parts of a subject run into each other")
	}
}
