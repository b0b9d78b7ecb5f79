// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/source"
)

// A key that is to be added several times later is added once, at the earliest of the times; and again when it is asked for
// again.
func TestOut_AddsAKeyLaterOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		times := make(chan time.Duration, 10)
		began := time.Now()
		o := newOut(func(reconcile.Key, source.Cause) { times <- time.Since(began) })
		key := reconcile.Key{Name: "a"}
		for _, minutes := range []time.Duration{3, 1, 2} {
			o.after(minutes*time.Minute, key, source.Cause{})
		}
		time.Sleep(10 * time.Minute)
		o.after(time.Minute, key, source.Cause{})
		time.Sleep(10 * time.Minute)
		o.after(time.Minute, key, source.Cause{})
		o.close()
		time.Sleep(10 * time.Minute)
		close(times)
		var added []time.Duration
		for at := range times {
			added = append(added, at)
		}
		if want := []time.Duration{time.Minute, 11 * time.Minute}; !slices.Equal(added, want) {
			t.Errorf("the key is added after %v, want %v", added, want)
		}
	})
}
