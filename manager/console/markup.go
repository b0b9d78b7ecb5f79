// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"html"
	"strings"
)

// markup is HTML. Whatever else becomes a part of it is escaped.
type markup string

// writer writes HTML. It is used in place of html/template, whose use of reflection would keep every
// method of every type in the program: 6 MB more of an operator.
type writer struct{ strings.Builder }

// put writes a format whose verbs stand in text or in quoted attributes. Arguments that are not of
// type markup are escaped.
func (w *writer) put(format string, args ...any) {
	w.WriteString(string(escaped(format, args...)))
}

func escaped(format string, args ...any) markup {
	safe := make([]any, len(args))
	for i, arg := range args {
		switch arg := arg.(type) {
		case markup:
			safe[i] = string(arg)
		case string:
			safe[i] = html.EscapeString(arg)
		case int, int64, uint64, float64:
			safe[i] = arg
		default:
			safe[i] = html.EscapeString(fmt.Sprint(arg))
		}
	}
	return markup(fmt.Sprintf(format, safe...))
}

// table writes a table that scrolls by itself. Cells of the head that begin with # are of numbers.
func (w *writer) table(label string, head []string, rows func()) {
	w.put(`<div class="scroll" tabindex="0" role="region" aria-label="%s"><table><thead><tr>`, label)
	for _, cell := range head {
		if number, ok := strings.CutPrefix(cell, "#"); ok {
			w.put(`<th class="n">%s</th>`, number)
		} else {
			w.put(`<th>%s</th>`, cell)
		}
	}
	w.put("</tr></thead>\n<tbody>\n")
	rows()
	w.put("</tbody></table></div>\n")
}

// section writes a part of a page with a heading.
func (w *writer) section(id, heading string, content func()) {
	w.put("<section aria-labelledby=\"%s\">\n<h2 id=\"%[1]s\">%s</h2>\n", id, heading)
	content()
	w.put("</section>\n")
}
