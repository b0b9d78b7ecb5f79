// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"fmt"
	"time"

	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/internal/redact"
)

// Webhooks is a webhook server.
type Webhooks struct {
	Address string `json:"address,omitempty"`
	// Certificate that it serves; absent: it has none.
	Certificate *Certificate `json:"certificate,omitempty"`
	// Problem with the certificate or its successor, and with CA bundles; absent: none.
	Problem        string   `json:"problem,omitempty"`
	BundleProblems []string `json:"bundleProblems,omitempty"`
	Webhooks       []Hook   `json:"webhooks"`
}

// Certificate is one of a server, without its key.
type Certificate struct {
	// Names of DNS and addresses for which it is.
	Names     []string  `json:"names"`
	Issuer    string    `json:"issuer"`
	NotBefore time.Time `json:"notBefore"`
	NotAfter  time.Time `json:"notAfter"`
}

// Hook is one webhook.
type Hook struct {
	Path    string `json:"path"`
	Purpose string `json:"purpose"`
	Kind    string `json:"kind,omitempty"`
	// Requests that have passed, were denied, and had no verdict; and those being answered.
	Passed      int64   `json:"passed"`
	Denied      int64   `json:"denied"`
	Failed      int64   `json:"failed"`
	InFlight    int64   `json:"inFlight"`
	MeanSeconds float64 `json:"meanSeconds"`
}

// Requests are those that the process has sent to the API server, by method and status.
type Requests struct {
	Method string `json:"method"`
	// Code of the status, or "<error>".
	Code  string `json:"code"`
	Count uint64 `json:"count"`
}

// RecordedEvents are Events that a controller has recorded for one reason, whether or not they were
// sent; those of the 100 reasons that came last.
type RecordedEvents struct {
	Controller string    `json:"controller"`
	Type       string    `json:"type"`
	Reason     string    `json:"reason"`
	Count      uint64    `json:"count"`
	Last       time.Time `json:"last"`
}

// Scan is reads of all objects of an informer by one line of a reconcile.
type Scan struct {
	Caller  string    `json:"caller"`
	Objects int       `json:"objects"`
	Count   uint64    `json:"count"`
	Last    time.Time `json:"last"`
}

// hidden returns w without what looks like a credential.
func (w *Webhooks) hidden() *Webhooks {
	if w == nil {
		return nil
	}
	out := *w
	out.Webhooks, out.Problem, out.BundleProblems = append([]Hook{}, w.Webhooks...), redact.Text(w.Problem), nil
	for _, text := range w.BundleProblems {
		out.BundleProblems = append(out.BundleProblems, redact.Text(text))
	}
	return &out
}

// soon is how long before its end a certificate is a problem: it is renewed earlier.
const soon = 7 * 24 * time.Hour

func problemsOfWebhooks(w *Webhooks, now time.Time) (out []Problem) {
	if w == nil {
		return nil
	}
	of := func(name, text, hint string) {
		out = append(out, Problem{Of: "webhooks", Name: name, Text: text, Hint: hint})
	}
	c := w.Certificate
	switch {
	case c == nil:
		of("certificate", "the webhooks have no certificate, so that no request arrives"+orNothing(": ", w.Problem), "")
	case now.After(c.NotAfter):
		of("certificate", "the certificate has expired at "+c.NotAfter.Format(time.RFC3339)+orNothing(": ", w.Problem), "renew it")
	case c.NotAfter.Sub(now) < soon:
		of("certificate", fmt.Sprintf("the certificate expires in %d hours", int(c.NotAfter.Sub(now).Hours()))+orNothing(": ", w.Problem), "renew it")
	case w.Problem != "":
		of("certificate", w.Problem, "")
	}
	for _, text := range w.BundleProblems {
		of("CA bundle", text, "")
	}
	return out
}

// hintsOfInformers are what can be done about findings of informers.
var hintsOfInformers = map[state.FindingKind]string{
	state.UnreadWatch:   "remove it, or release its handle: it costs memory and a watch",
	state.ExpensiveRead: "name the namespace, or add an index with AddIndex and list by it",
}

func findingsOfInformers(all []state.Informer, now time.Time) (out []Problem) {
	for _, i := range all {
		for _, f := range i.Findings(now) {
			out = append(out, Problem{Of: "informer", Name: i.Kind.GroupKind().String(), Finding: string(f.Kind), Since: f.Since, Text: f.String(), Hint: hintsOfInformers[f.Kind]})
		}
	}
	return out
}
