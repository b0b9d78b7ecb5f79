// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package stacks

import (
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

func waitsHere(id chan<- ID, release <-chan struct{}) {
	id <- Self()
	<-release
}

func TestDump_FindsTheStackOfOneGoroutine(t *testing.T) {
	ids, release := make(chan ID), make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		waitsHere(ids, release)
	}()
	id := <-ids
	var d Dump
	if got := d.Of(id); !strings.Contains(got, "stacks.waitsHere(") || strings.Contains(got, "TestDump_") && !strings.Contains(got, "created by") {
		t.Errorf("its stack is %q, want that of waitsHere", got)
	}
	if got := d.Of(Self()); !strings.Contains(got, "stacks.TestDump_FindsTheStackOfOneGoroutine(") || strings.Contains(got, "waitsHere(") {
		t.Errorf("the stack of the test is %q, want its own alone", got)
	}
	close(release)
	<-done
	var after Dump
	for _, none := range []ID{0, id} {
		if got := after.Of(none); !strings.Contains(got, "not found") {
			t.Errorf("the stack of goroutine %d is %q, want none: there is no such goroutine", none, got)
		}
	}
}

func TestFind_TakesTheWholeNumber(t *testing.T) {
	text := []byte("goroutine 12 [running]:\na\n\ngoroutine 1 [select]:\nb\n")
	if got, want := find(text, 1), "goroutine 1 [select]:\nb\n"; got != want {
		t.Errorf("the stack of 1 is %q, want %q", got, want)
	}
}

func TestBubble_IsThatOfTheCaller(t *testing.T) {
	if got := Bubble(); got != "" {
		t.Errorf("outside of a bubble it is %q", got)
	}
	synctest.Test(t, func(t *testing.T) {
		one, other := Bubble(), ""
		var work sync.WaitGroup
		work.Go(func() { other = Bubble() })
		work.Wait()
		if one != other || !regexp.MustCompile(`^synctest bubble \d+$`).MatchString(one) {
			t.Errorf("two goroutines of a bubble are in %q and %q", one, other)
		}
	})
}
