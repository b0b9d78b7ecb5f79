// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/state"
	"github.com/flyball-dev/flyball/kube"
)

// ListPhase returns the kind of list to ask for.
func (p Progress) ListPhase(now time.Time) Phase {
	// A paged list shows on its first page whether the server's revisions went
	// back, a streaming list only at its end. And a server whose cache lags
	// serves a consistent list from its store but refuses a stream.
	if p.Paged || now.Before(p.NoStreamBefore) || p.Consistent {
		return PhaseList
	}
	return PhaseStream
}

// Demanded returns p with a demanded list of the newest state, since objects
// may have changed at any version.
func (p Progress) Demanded(d Demand, now time.Time) Progress {
	p.Consistent, p.content, p.Repair = true, p.content || d.Content, p.Repair || d.Repair
	p.Epoch, p.Instead = p.Epoch || d.Epoch, false
	p.Elsewhere = p.Elsewhere || d.Elsewhere
	p.Phase = p.ListPhase(now)
	return p
}

// ByContent reports whether the next list is compared by content.
func (p Progress) ByContent() bool { return p.content || p.doubt }

// ListVersion returns the resourceVersion and match of the next list. The first
// is consistent, unless fromCache allows any state; a later one is never older
// than what was seen.
func (p Progress) ListVersion(fromCache bool) (version, match string) {
	switch {
	case p.Consistent, p.Last == "" && !fromCache:
		return "", ""
	case p.Last == "":
		return "0", ""
	}
	return p.Last, string(metav1.ResourceVersionMatchNotOlderThan)
}

func afterList(p Progress, o Outcome) Decision {
	switch o.Result {
	case resultExpired:
		if !o.Continued {
			return relist(p, o, RelistExpired, true)
		}
		d := relist(p, o, relistContinue, false)
		if d.Next.restarts++; d.Next.restarts == 1 {
			d.pace = paceNone
		} else {
			// Reading the pages takes longer than the server keeps the version.
			d.Next.Whole = true
		}
		d.Next.Phase = PhaseList
		return d
	case resultTooLarge:
		return relist(p, o, relistTooLarge, true)
	case resultRejected:
		if p.Last != "" && !p.Consistent {
			d := relist(p, o, relistRejected, true)
			d.pace = paceNone
			return d
		}
		p.Refusals++
		return Decision{Next: p, pace: paceSlow, State: state.Stale}
	case resultOlder:
		return older(p, o)
	case resultStuck:
		p.Whole = true
		d := retry(p, o)
		d.Relist = relistStuck
		return d
	case resultSlow:
		p.Slows, p.Whole = min(p.Slows+1, mostHalvings), false
		return retry(p, o)
	}
	return retry(p, o)
}

// older refuses a list that is older than what was seen. If a minimum version
// was requested, this only proves a faulty answer. Repeated lists of the newest
// state by different connections prove that the versions went back.
func older(p Progress, o Outcome) Decision {
	if p.Consistent {
		p.Behind++
	}
	p.Phase, p.Consistent, p.Elsewhere = PhaseList, true, true
	d := retry(p, o)
	d.Relist = relistOlder
	return d
}

// rewindProof is how many consecutive consistent lists must be older than what
// was seen to prove that the server's versions went back.
const rewindProof = 3

// Rewound reports whether a list of version completes the proof.
func (p Progress) Rewound(version string) bool {
	return p.Consistent && p.Behind+1 >= rewindProof && Below(version, p.Last)
}

// Below reports whether version is before last. A version that cannot be
// compared is below every one that can.
func Below(version, last string) bool { return kube.ParseVersion(version) < kube.ParseVersion(last) }

func afterStream(p Progress, o Outcome) Decision {
	switch o.Result {
	case resultExpired:
		return relist(p, o, RelistExpired, true)
	case resultTooLarge:
		return relist(p, o, relistTooLarge, true)
	case resultOlder:
		return older(p, o)
	case ResultEndless:
		return fallBack(p, o)
	case ResultSilent:
		if p.Foreign {
			return fallBack(p, o)
		}
	case ResultEnded:
		if !o.Spoke {
			return probe(p, o)
		}
	}
	if o.Result.LeadsToPages() {
		return probe(p, o)
	}
	if p.Tries++; p.Tries < streamTries {
		return retry(p, o)
	}
	return fallBack(p, o)
}

// LeadsToPages reports whether a source that answers a streaming list like this
// may not support streaming lists. That is no error.
func (r result) LeadsToPages() bool { return r == resultRejected || r == resultGarbled }

// fallBack switches to pages and remembers it.
func fallBack(p Progress, o Outcome) Decision {
	p.Phase, p.NoStreamBefore, p.Tries = PhaseList, o.Now.Add(streamRetry), 0
	return Decision{Next: p, FellBack: true}
}

// probe tries pages. If they arrive, the streaming list was to blame.
func probe(p Progress, o Outcome) Decision {
	p.Phase, p.Probing, p.Tries = PhaseList, base.TextOf(o.Err), 0
	return Decision{Next: p}
}

// orPages returns d, which retries a streaming list after an answer that says
// nothing about streaming lists, or from the second time on switches to pages.
func (d Decision) orPages(o Outcome) Decision {
	switch o.Result {
	case resultFailing, resultBusy, resultForbidden:
		if d.Next.Tries++; d.Next.Tries >= streamTries {
			d.Next.Phase, d.Next.Probing, d.Next.Tries = PhaseList, base.TextOf(o.Err), 0
		}
	}
	return d
}
