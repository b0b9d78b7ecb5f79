// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"fmt"
	"time"
)

// FindingKind is what is wrong with the use of an informer.
type FindingKind string

const (
	// UnreadWatch: for an hour no handler has received its events, and nobody has read it.
	UnreadWatch FindingKind = "unread watch"
	// ExpensiveRead: within the last hour a reconcile has walked over more than 1,000 objects.
	ExpensiveRead FindingKind = "expensive read"
)

// FindingKinds are all kinds.
var FindingKinds = [...]FindingKind{UnreadWatch, ExpensiveRead}

// findingFor is how long an informer is unread before it is found, and how long an expensive read is
// found after it.
const findingFor = time.Hour

// Finding is what is wrong with the use of an informer.
type Finding struct {
	Kind FindingKind
	// Since is when the informer was last used, or the read was first seen.
	Since time.Time
	// Objects that the informer holds, or that the read walks over.
	Objects int
	// Bytes of memory of an unread informer.
	Bytes int64
	// Caller is the line of code that reads, such as
	// "example.com/shop/controllers.(*Website).reconcile (website.go:87)".
	Caller string
}

// String returns the finding in one sentence.
func (f Finding) String() string {
	if f.Kind == UnreadWatch {
		return fmt.Sprintf("nothing uses the informer: no handler, and no read; its %d objects take %d kB", f.Objects, (f.Bytes+999)/1000)
	}
	return fmt.Sprintf("a reconcile reads %d objects without an index: %s", f.Objects, f.Caller)
}

// Scan is reads of all objects by one line of code.
type Scan struct {
	// Caller is the line, as in Finding.
	Caller string
	// Objects that the largest of the reads has walked over.
	Objects int
	// Count of the reads, of which one a second is counted.
	Count uint64
	// First and Last are when the first and the last of them ended.
	First, Last time.Time
}

// Findings returns what is wrong with the use of the informer.
func (s Informer) Findings(now time.Time) (found []Finding) {
	if !s.UnusedSince.IsZero() && now.Sub(s.UnusedSince) >= findingFor {
		found = append(found, Finding{Kind: UnreadWatch, Since: s.UnusedSince, Objects: s.Objects, Bytes: s.Heap})
	}
	for _, scan := range s.Scans {
		if now.Sub(scan.Last) < findingFor {
			found = append(found, Finding{Kind: ExpensiveRead, Since: scan.First, Objects: scan.Objects, Caller: scan.Caller})
		}
	}
	return found
}
