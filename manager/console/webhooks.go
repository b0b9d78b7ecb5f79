// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"slices"
	"strings"

	"github.com/flyball-dev/flyball/manager/internal/inspect"
)

// writeWebhooks writes the webhooks, if there are any, with the certificate that they serve.
func (p overviewPage) writeWebhooks(w *writer) {
	if p.Webhooks == nil {
		return
	}
	class := "soft"
	if slices.ContainsFunc(p.Problems, func(problem inspect.Problem) bool { return problem.Of == "webhooks" }) {
		class = "bad"
	}
	w.section("webhooks", "Webhooks", func() {
		if c := p.Webhooks.Certificate; c == nil {
			w.put("<p class=\"bad\">There is no certificate.</p>\n")
		} else {
			w.put("<p class=\"%s\">The certificate ends <time datetime=\"%s\">%s</time> · for %s · of %s</p>\n",
				class, stamp(c.NotAfter), until(c.NotAfter), strings.Join(c.Names, ", "), c.Issuer)
		}
		w.table("Webhooks", []string{"Path", "Purpose", "Kind", "#Passed", "#Denied", "#Failed", "#Mean"}, func() {
			for _, h := range p.Webhooks.Webhooks {
				w.put(`<tr><th scope="row">%s</th><td>%s</td><td>%s</td><td class="n">%d</td><td class="n">%d</td>`, h.Path, h.Purpose, h.Kind, h.Passed, h.Denied)
				failed := ""
				if h.Failed > 0 {
					failed = " bad"
				}
				w.put("<td class=\"n%s\">%d</td><td class=\"n\">%s</td></tr>\n", failed, h.Failed, duration(h.MeanSeconds))
			}
		})
	})
}
