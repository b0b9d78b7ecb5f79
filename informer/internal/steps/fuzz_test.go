// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// unusedWatches are outcomes of watches without events.
var unusedWatches = []Outcome{
	{Result: ResultEnded, Early: true},
	{Result: ResultEnded, Early: true, Lived: 2 * time.Second},
	{Result: ResultEnded, Early: true, Lived: lively},
	{Result: ResultEnded, Early: true, Lived: 5 * time.Second},
	{Result: ResultEnded, Early: true, Spoke: true},
	{Result: ResultEnded, Early: true, Lived: time.Minute},
	{Result: ResultEnded, Lived: LongestWatch},
	{Result: ResultEnded, Lived: LongestWatch + Overdue},
	{Result: ResultCut},
	{Result: ResultCut, Early: true, Lived: 7 * time.Second, Spoke: true},
	{Result: ResultCut, Early: true, Lived: 4 * time.Minute},
	{Result: ResultSilent},
	{Result: ResultSilent, Lived: SilentAfter},
	{Result: ResultUnreachable},
	{Result: resultGarbled},
	{Result: resultGarbled, Lived: 3 * time.Minute},
	{Result: resultBusy},
	{Result: resultFailing},
	{Result: resultExpired},
	{Result: resultTooLarge},
	{Result: resultRejected}, {Result: resultUnselectable},
	{Result: resultForbidden},
	{Result: resultUnauthorized},
	{Result: resultNotServed},
	{Result: resultOversized},
	{Result: resultOversized, Lived: 3 * time.Minute},
}

// listOutcomes are the outcomes of lists and streaming lists.
var listOutcomes = []Outcome{
	{Result: ResultCompleted}, {Result: ResultEnded}, {Result: ResultEnded, Spoke: true}, {Result: ResultCut, Continued: true},
	{Result: ResultSilent}, {Result: ResultUnreachable}, {Result: resultGarbled}, {Result: resultBusy}, {Result: resultFailing},
	{Result: resultExpired}, {Result: resultExpired, Continued: true}, {Result: resultTooLarge}, {Result: resultRejected},
	{Result: resultForbidden}, {Result: resultUnauthorized}, {Result: resultNotServed}, {Result: resultOversized},
	{Result: resultSlow}, {Result: ResultEndless}, {Result: resultStuck, Continued: true}, {Result: resultOlder},
}

// listsCome plays script, a sequence of outcomes of watches that are of no use,
// with lists between them. It fails the test if the time between two lists, or
// a pause, is unbounded.
func listsCome(t *testing.T, script []byte) {
	now := time.Unix(1e9, 0)
	p, asked := Progress{Phase: PhaseWatch, Last: "1"}, now
	hasty := 0
	for i, b := range script {
		o := unusedWatches[int(b)%len(unusedWatches)]
		if p.Phase == PhaseWatch {
			o.Err = fmt.Errorf("watch %d", i)
		} else {
			if since := now.Sub(asked); since > listsWithin {
				t.Fatalf("step %d: %v without a list, want one within %v whatever the watches do: %+v", i, since, listsWithin, p)
			}
			asked, o = now, listOutcomes[int(b)%len(listOutcomes)]
			o.Version = fmt.Sprint(i + 2)
		}
		now = now.Add(o.Lived)
		o.Now = now
		d := Next(p, o)
		wait := d.Pause(1)
		if wait < 0 || wait > slowBackoff.most {
			t.Fatalf("step %d: a pause of %v after %+v, want %v at most", i, wait, o, slowBackoff.most)
		}
		if hasty++; wait > 0 || o.Lived > 0 || o.Result == ResultCompleted {
			hasty = 0
		}
		if hasty > 5 {
			t.Fatalf("step %d: %d failures without a pause", i, hasty)
		}
		now, p = now.Add(wait), d.Next
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
		few := 1 + random.IntN(len(unusedWatches)) // all, or the same ones repeatedly
		for i := range script {
			script[i] = byte(random.IntN(few))
		}
		listsCome(t, script)
	}
}

// However fast watches fail, a list is soon requested.
func TestPhase_FailuresAtOneInstantLeadToLists_A17(t *testing.T) {
	for _, r := range []result{ResultEnded, ResultCut, resultGarbled, resultFailing} {
		p, lists := Progress{Phase: PhaseWatch, Last: "1"}, 0
		for range 100 * mostVain {
			o := Outcome{Result: r, Now: time.Unix(1e9, 0)}
			if p.Phase != PhaseWatch {
				lists++
				o.Result, o.Version = ResultCompleted, "1"
			}
			p = Next(p, o).Next
		}
		if lists < 80 {
			t.Errorf("result %d: %d lists for %d watches of no use, want one after %d at most", r, lists, 100*mostVain, mostVain)
		}
	}
}

// FuzzPhase_ListsComeWhereNoWatchIsOfUse does the same for any order of
// outcomes.
func FuzzPhase_ListsComeWhereNoWatchIsOfUse(f *testing.F) {
	f.Add([]byte{3, 3, 4, 2, 0, 12, 8, 21, 22})
	f.Fuzz(listsCome)
}
