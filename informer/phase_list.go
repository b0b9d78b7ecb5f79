// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// listPhase is the kind of list to ask for.
func (p progress) listPhase(now time.Time) phase {
	// Whether the server's revisions went back shows on the first page of a
	// paged list, but only at the end of a streaming list. And a server whose
	// cache lags reads a consistent list from its store, but refuses a stream.
	if p.paged || now.Before(p.noStreamBefore) || p.consistent {
		return phaseList
	}
	return phaseStream
}

// demanded is p with a list that is wanted: of the newest state, since objects
// may have changed at any version.
func (p progress) demanded(d demand, now time.Time) progress {
	p.consistent, p.content, p.repair = true, p.content || d.content, p.repair || d.repair
	p.epoch, p.instead = p.epoch || d.epoch, false
	p.elsewhere = p.elsewhere || d.elsewhere
	p.phase = p.listPhase(now)
	return p
}

// byContent says whether the next list is compared by content.
func (p progress) byContent() bool { return p.content || p.doubt }

// listVersion is the resourceVersion of the next list, with its match. The
// first is consistent, unless fromCache allows any state; a later one is never
// older than what was seen.
func (p progress) listVersion(fromCache bool) (version, match string) {
	switch {
	case p.consistent, p.last == "" && !fromCache:
		return "", ""
	case p.last == "":
		return "0", ""
	}
	return p.last, string(metav1.ResourceVersionMatchNotOlderThan)
}

func afterList(p progress, o outcome) decision {
	switch o.result {
	case resultExpired:
		if !o.continued {
			return relist(p, o, relistExpired, true)
		}
		d := relist(p, o, relistContinue, false)
		if d.next.restarts++; d.next.restarts == 1 {
			d.pace = paceNone
		} else {
			// The pages take longer than the server keeps the version.
			d.next.whole = true
		}
		d.next.phase = phaseList
		return d
	case resultTooLarge:
		return relist(p, o, relistTooLarge, true)
	case resultRejected:
		if p.last != "" && !p.consistent {
			d := relist(p, o, relistRejected, true)
			d.pace = paceNone
			return d
		}
		p.refusals++
		return decision{next: p, pace: paceSlow, state: StateStale}
	case resultOlder:
		return older(p, o)
	case resultStuck:
		p.whole = true
		d := retry(p, o)
		d.relist = relistStuck
		return d
	case resultSlow:
		p.slows, p.whole = min(p.slows+1, mostHalvings), false
		return retry(p, o)
	}
	return retry(p, o)
}

// older refuses a list that is older than what was seen before. What was asked
// to be not older than a version proves nothing but a fault of who answered. A
// list of the newest state proves that the versions went back, when it is read
// again and again by other ways.
func older(p progress, o outcome) decision {
	if p.consistent {
		p.behind++
	}
	p.phase, p.consistent, p.elsewhere = phaseList, true, true
	d := retry(p, o)
	d.relist = relistOlder
	return d
}

// rewindProof is how many consistent lists in a row must be older than what was
// seen for the server's versions to have gone back.
const rewindProof = 3

// rewound says whether a list of version is the last proof that is needed.
func (p progress) rewound(version string) bool {
	return p.consistent && p.behind+1 >= rewindProof && below(version, p.last)
}

// below reports whether version is before last, where last can be compared. A
// version that cannot be compared is below each one that can.
func below(version, last string) bool { return ParseVersion(version) < ParseVersion(last) }

func afterStream(p progress, o outcome) decision {
	switch o.result {
	case resultExpired:
		return relist(p, o, relistExpired, true)
	case resultTooLarge:
		return relist(p, o, relistTooLarge, true)
	case resultOlder:
		return older(p, o)
	case resultEndless:
		return fallBack(p, o)
	case resultSilent:
		if p.foreign {
			return fallBack(p, o)
		}
	case resultEnded:
		if !o.spoke {
			return probe(p, o)
		}
	}
	if o.result.leadsToPages() {
		return probe(p, o)
	}
	if p.tries++; p.tries < streamTries {
		return retry(p, o)
	}
	return fallBack(p, o)
}

// leadsToPages: a streaming list that is answered so may not be known to the
// source. That is no error.
func (r result) leadsToPages() bool { return r == resultRejected || r == resultGarbled }

// fallBack goes on by pages, and remembers that.
func fallBack(p progress, o outcome) decision {
	p.phase, p.noStreamBefore, p.tries = phaseList, o.now.Add(streamRetry), 0
	return decision{next: p, fellBack: true}
}

// probe tries pages. That the streaming list was to blame is known when they
// come.
func probe(p progress, o outcome) decision {
	p.phase, p.probing, p.tries = phaseList, text(o.err), 0
	return decision{next: p}
}

// orPages is d, by which a streaming list is tried again after an answer that
// says nothing of streaming lists, or pages instead from the second time on.
func (d decision) orPages(o outcome) decision {
	switch o.result {
	case resultFailing, resultBusy, resultForbidden:
		if d.next.tries++; d.next.tries >= streamTries {
			d.next.phase, d.next.probing, d.next.tries = phaseList, text(o.err), 0
		}
	}
	return d
}
