// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// unusedWatches are outcomes of watches that bring nothing.
var unusedWatches = []outcome{
	{result: resultEnded, early: true},
	{result: resultEnded, early: true, lived: 2 * time.Second},
	{result: resultEnded, early: true, lived: lively},
	{result: resultEnded, early: true, lived: 5 * time.Second},
	{result: resultEnded, early: true, spoke: true},
	{result: resultEnded, early: true, lived: time.Minute},
	{result: resultEnded, lived: longestWatch},
	{result: resultEnded, lived: longestWatch + overdue},
	{result: resultCut},
	{result: resultCut, early: true, lived: 7 * time.Second, spoke: true},
	{result: resultCut, early: true, lived: 4 * time.Minute},
	{result: resultSilent},
	{result: resultSilent, lived: silentAfter},
	{result: resultUnreachable},
	{result: resultGarbled},
	{result: resultGarbled, lived: 3 * time.Minute},
	{result: resultBusy},
	{result: resultFailing},
	{result: resultExpired},
	{result: resultTooLarge},
	{result: resultRejected},
	{result: resultForbidden},
	{result: resultUnauthorized},
	{result: resultNotServed},
	{result: resultOversized},
	{result: resultOversized, lived: 3 * time.Minute},
}

// listOutcomes are what may come of lists and streaming lists.
var listOutcomes = []outcome{
	{result: resultCompleted}, {result: resultEnded}, {result: resultEnded, spoke: true}, {result: resultCut, continued: true},
	{result: resultSilent}, {result: resultUnreachable}, {result: resultGarbled}, {result: resultBusy}, {result: resultFailing},
	{result: resultExpired}, {result: resultExpired, continued: true}, {result: resultTooLarge}, {result: resultRejected},
	{result: resultForbidden}, {result: resultUnauthorized}, {result: resultNotServed}, {result: resultOversized},
	{result: resultSlow}, {result: resultEndless}, {result: resultStuck, continued: true}, {result: resultOlder},
}

// listsCome plays script: what watches come to, in a row, where none is of use,
// and lists between them. It fails the test when the time between two lists, or a
// pause, has no bound.
func listsCome(t *testing.T, script []byte) {
	now := time.Unix(1e9, 0)
	p, asked := progress{phase: phaseWatch, last: "1"}, now
	hasty := 0
	for i, b := range script {
		o := unusedWatches[int(b)%len(unusedWatches)]
		if p.phase == phaseWatch {
			o.err = fmt.Errorf("watch %d", i)
		} else {
			if since := now.Sub(asked); since > listsWithin {
				t.Fatalf("step %d: %v without a list, want one within %v whatever the watches do: %+v", i, since, listsWithin, p)
			}
			asked, o = now, listOutcomes[int(b)%len(listOutcomes)]
			o.version = fmt.Sprint(i + 2)
		}
		now = now.Add(o.lived)
		o.now = now
		d := next(p, o)
		wait := d.pause(1)
		if wait < 0 || wait > slowBackoff.most {
			t.Fatalf("step %d: a pause of %v after %+v, want %v at most", i, wait, o, slowBackoff.most)
		}
		if hasty++; wait > 0 || o.lived > 0 || o.result == resultCompleted {
			hasty = 0
		}
		if hasty > 5 {
			t.Fatalf("step %d: %d failures without a pause", i, hasty)
		}
		now, p = now.Add(wait), d.next
	}
	if since := now.Sub(asked); since > listsWithin {
		t.Fatalf("%v without a list at the end, want one within %v: %+v", since, listsWithin, p)
	}
}

func TestPhase_ListsComeWhereNoWatchIsOfUse_A17(t *testing.T) {
	for n := range unusedWatches {
		script := make([]byte, 2000)
		for i := range script {
			script[i] = byte(n)
		}
		listsCome(t, script)
	}
	random := rand.New(rand.NewPCG(17, 17))
	for range 300 {
		script := make([]byte, 1000)
		few := 1 + random.IntN(len(unusedWatches)) // all, or the same again and again
		for i := range script {
			script[i] = byte(random.IntN(few))
		}
		listsCome(t, script)
	}
}

// However fast watches fail, a list is asked for before long.
func TestPhase_FailuresAtOneInstantLeadToLists_A17(t *testing.T) {
	for _, r := range []result{resultEnded, resultCut, resultGarbled, resultFailing} {
		p, lists := progress{phase: phaseWatch, last: "1"}, 0
		for range 100 * mostVain {
			o := outcome{result: r, now: time.Unix(1e9, 0)}
			if p.phase != phaseWatch {
				lists++
				o.result, o.version = resultCompleted, "1"
			}
			p = next(p, o).next
		}
		if lists < 80 {
			t.Errorf("result %d: %d lists for %d watches of no use, want one after %d at most", r, lists, 100*mostVain, mostVain)
		}
	}
}

// FuzzPhase_ListsComeWhereNoWatchIsOfUse is the same for any order of outcomes.
func FuzzPhase_ListsComeWhereNoWatchIsOfUse(f *testing.F) {
	f.Add([]byte{3, 3, 4, 2, 0, 12, 8, 21, 22})
	f.Fuzz(listsCome)
}
