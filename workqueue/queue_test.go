// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

func TestQueue_KeyAddedWhileHeldRunsAgain_W3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](workqueue.Options{})
		q.Add("a")
		key, _ := q.Get()
		q.Add(key)
		if got := q.Len(); got != 0 {
			t.Fatalf("Len() = %d while the key is held, want 0: a held key must not be ready", got)
		}
		q.Done(key)
		if got := q.Len(); got != 1 {
			t.Fatalf("Len() = %d after Done, want 1: the Add made while the key was held is lost", got)
		}
	})
}

func TestQueue_DelayedKeyIsNotEarly_W6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.New[string](workqueue.Options{})
		start := time.Now()
		q.AddAfter("a", time.Minute)
		q.AddAfter("b", time.Second)
		q.AddAfter("a", time.Hour)
		for _, want := range []struct {
			key string
			at  time.Duration
		}{{"b", time.Second}, {"a", time.Minute}} {
			key, _ := q.Get()
			if at := time.Since(start); key != want.key || at != want.at {
				t.Errorf("Get() = %q after %v, want %q after %v", key, at, want.key, want.at)
			}
			q.Done(key)
		}
	})
}
