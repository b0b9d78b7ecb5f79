// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package textlog

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible escapes everything that a terminal could interpret instead of
// showing: C0 and C1 control characters, marks that change the direction of
// writing, other characters without a glyph, and invalid UTF-8.
func Visible(text string) string { return visible(text, isHidden) }

// VisibleLines is Visible, but keeps line feeds and tabs.
func VisibleLines(text string) string {
	return visible(text, func(r rune) bool { return isHidden(r) && r != '\n' && r != '\t' })
}

// isHidden reports whether r has no glyph. The only space that is visible is
// U+0020.
func isHidden(r rune) bool { return !unicode.IsPrint(r) }

func visible(text string, hidden func(rune) bool) string {
	if utf8.ValidString(text) && !strings.ContainsFunc(text, hidden) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case hidden(r):
			quoted := strconv.QuoteRune(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// VisibleJSON is Visible for a JSON text, which stays valid: it escapes what JSON permits
// unescaped. This occurs only in strings. White space between values stays.
func VisibleJSON(text []byte) []byte {
	hidden := func(r rune) bool { return r >= 0x7f && isHidden(r) }
	if !strings.ContainsFunc(string(text), hidden) {
		return text
	}
	out := make([]byte, 0, len(text)+16)
	for _, r := range string(text) {
		switch {
		case !hidden(r):
			out = utf8.AppendRune(out, r)
		case r > 0xffff:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}
