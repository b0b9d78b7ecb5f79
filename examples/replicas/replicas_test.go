// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if name := os.Getenv(replicaName); name != "" {
		exitOn(operate(name))
		return
	}
	os.Exit(m.Run())
}

// The whole story, with processes of this test's program, and without pauses.
func TestStory_EachWriteIsThatOfTheHolder(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for Leases that end")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	var out bytes.Buffer
	err := story{replicas: 3, objects: 40, out: &out}.tell(ctx, false)
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	for _, want := range []string{
		"40 objects in 32 shards, shared by 3 processes",
		"kill -9 replica-2, which holds ",
		" after the kill its ",
		" shards are held again, ",
		"Start replica-2 again.",
		" have moved, ",
		" writes was made by the process that held",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the story has no %q:\n%s", want, &out)
		}
	}
}

// A process that ends by itself ends the story, instead of leaving it to wait forever.
func TestStory_EndsWhenAProcessDoes(t *testing.T) {
	ended := &process{name: "replica-1", ended: make(chan struct{})}
	if err := ended.lost(); err != nil {
		t.Errorf("a process that runs: %v, want no error", err)
	}
	close(ended.ended)
	if err := ended.lost(); err == nil || !strings.Contains(err.Error(), "replica-1 has ended") {
		t.Errorf("a process that has ended: %v, want an error that names it", err)
	}
}

func TestNumbers_AreRanges(t *testing.T) {
	for want, some := range map[string][]int{
		"": nil, "3": {3}, "0-1": {0, 1}, "0-2 4 6-7": {0, 1, 2, 4, 6, 7},
	} {
		if got := numbers(some); got != want {
			t.Errorf("%v: %q, want %q", some, got, want)
		}
	}
}

func TestReplicaOf_AnIdentity(t *testing.T) {
	for identity, want := range map[string]string{
		"replicas-replica-1-x7f2k": "replica-1", "": "",
	} {
		if got := replicaOf(identity); got != want {
			t.Errorf("%q: %q, want %q", identity, got, want)
		}
	}
}
