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
