// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/internal/base"
)

// ListPhase is the kind of list to ask for.
func (p Progress) ListPhase(now time.Time) Phase {
	// Whether the server's revisions went back shows on the first page of a
	// paged list, but only at the end of a streaming list. And a server whose
	// cache lags reads a consistent list from its store, but refuses a stream.
	if p.Paged || now.Before(p.NoStreamBefore) || p.Consistent {
		return PhaseList
	}
	return PhaseStream
}

// Demanded is p with a list that is wanted: of the newest state, since objects
// may have changed at any version.
func (p Progress) Demanded(d Demand, now time.Time) Progress {
	p.Consistent, p.content, p.Repair = true, p.content || d.Content, p.Repair || d.Repair
	p.Epoch, p.Instead = p.Epoch || d.Epoch, false
	p.Elsewhere = p.Elsewhere || d.Elsewhere
	p.Phase = p.ListPhase(now)
	return p
}

// ByContent says whether the next list is compared by content.
func (p Progress) ByContent() bool { return p.content || p.doubt }

// ListVersion is the resourceVersion of the next list, with its match. The
// first is consistent, unless fromCache allows any state; a later one is never
// older than what was seen.
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
			// The pages take longer than the server keeps the version.
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
		return Decision{Next: p, pace: paceSlow, State: base.StateStale}
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

// older refuses a list that is older than what was seen before. What was asked
// to be not older than a version proves nothing but a fault of who answered. A
// list of the newest state proves that the versions went back, when it is read
// again and again by other ways.
func older(p Progress, o Outcome) Decision {
	if p.Consistent {
		p.Behind++
	}
	p.Phase, p.Consistent, p.Elsewhere = PhaseList, true, true
	d := retry(p, o)
	d.Relist = relistOlder
	return d
}

// rewindProof is how many consistent lists in a row must be older than what was
// seen for the server's versions to have gone back.
const rewindProof = 3

// Rewound says whether a list of version is the last proof that is needed.
func (p Progress) Rewound(version string) bool {
	return p.Consistent && p.Behind+1 >= rewindProof && Below(version, p.Last)
}

// Below reports whether version is before last, where last can be compared. A
// version that cannot be compared is below each one that can.
func Below(version, last string) bool { return base.ParseVersion(version) < base.ParseVersion(last) }

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

// LeadsToPages: a streaming list that is answered so may not be known to the
// source. That is no error.
func (r result) LeadsToPages() bool { return r == resultRejected || r == resultGarbled }

// fallBack goes on by pages, and remembers that.
func fallBack(p Progress, o Outcome) Decision {
	p.Phase, p.NoStreamBefore, p.Tries = PhaseList, o.Now.Add(streamRetry), 0
	return Decision{Next: p, FellBack: true}
}

// probe tries pages. That the streaming list was to blame is known when they
// come.
func probe(p Progress, o Outcome) Decision {
	p.Phase, p.Probing, p.Tries = PhaseList, base.TextOf(o.Err), 0
	return Decision{Next: p}
}

// orPages is d, by which a streaming list is tried again after an answer that
// says nothing of streaming lists, or pages instead from the second time on.
func (d Decision) orPages(o Outcome) Decision {
	switch o.Result {
	case resultFailing, resultBusy, resultForbidden:
		if d.Next.Tries++; d.Next.Tries >= streamTries {
			d.Next.Phase, d.Next.Probing, d.Next.Tries = PhaseList, base.TextOf(o.Err), 0
		}
	}
	return d
}
