// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package textlog_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/flyball-dev/flyball/internal/textlog"
)

// hostile are texts that a terminal would interpret.
var hostile = []string{
	"\x1b[2J\x1b[1;1H", "\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\", "over\rwritten", "back\b\b\b", "\u009b2J", "\u0085", "\x9b2J", "\x00", "\x7f",
	"a\nERROR forged", "a\n\t\tforged", "\u202egnp.exe", "\u2066a\u2069", "\u200f", "\u2028ERROR", "\ufeff", "\U000e0041", "\ufffd\xff",
}

// dangerous reports characters that must not reach a terminal. Line feeds and
// tabs are up to the caller.
func dangerous(text string) bool {
	return !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool {
		return r != '\n' && r != '\t' && !unicode.IsPrint(r)
	})
}

func TestForm_NothingReachesTheTerminalRaw(t *testing.T) {
	for _, text := range hostile {
		for _, asJSON := range []bool{false, true} {
			var out bytes.Buffer
			log := textlog.Form{JSON: asJSON}.Logger(&out).WithName(text).WithValues("with", text, text, "value")
			log.Info(text, "k", text, text, 1, "bytes", []byte(text), "list", []string{text}, "stack", text)
			log.Error(errors.New(text), text, "keys", map[string]string{text: text})
			if got := out.String(); dangerous(got) {
				t.Errorf("%q (JSON: %v) prints %q", text, asJSON, got)
			}
			for line := range strings.Lines(out.String()) {
				switch {
				case asJSON && !json.Valid([]byte(line)):
					t.Errorf("%q prints %q, which is not JSON", text, line)
				case !asJSON && !strings.HasPrefix(line, "\t") && !strings.HasPrefix(line, "20"):
					t.Errorf("%q prints %q, which passes for a line of its own", text, line)
				}
			}
		}
	}
}

func TestForm_JSONHoldsWhatWasGiven(t *testing.T) {
	for _, text := range hostile {
		var out bytes.Buffer
		textlog.Form{JSON: true}.Logger(&out).Info("x", "k", text)
		var got struct{ K string }
		if err := json.Unmarshal(out.Bytes(), &got); err != nil || got.K != strings.ToValidUTF8(text, "\ufffd") {
			t.Errorf("%q is read back as %q (%v)", text, got.K, err)
		}
	}
}

func TestForm_OnlyAStackHasSeveralLines(t *testing.T) {
	var out bytes.Buffer
	textlog.New(&out, 0).Error(errors.New("one\ntwo"), "x", "stack", "goroutine 1:\n\tmain.go:1", "spec", "a\nb")
	if got, want := out.String(), " x spec=\"a\\nb\" err=\"one\\ntwo\"\n\tstack:\n\t\tgoroutine 1:\n\t\t\tmain.go:1\n"; !strings.HasSuffix(got, want) {
		t.Errorf("got  %q\nwant %q at its end", got, want)
	}
}

func FuzzVisible(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := textlog.Visible(text)
		if dangerous(got) || strings.ContainsAny(got, "\n\t") {
			t.Errorf("%q becomes %q", text, got)
		}
		if lines := textlog.VisibleLines(text); dangerous(lines) || strings.Count(lines, "\n") != strings.Count(text, "\n") {
			t.Errorf("%q becomes %q", text, lines)
		}
		if textlog.Visible(got) != got {
			t.Errorf("%q is escaped once more", got)
		}
	})
}
