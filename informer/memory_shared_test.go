// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
)

// What an object has in common with its earlier versions is in the table of
// shared parts, and still in memory.
func TestFactory_WhatObjectsShareCounts_D6(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 12_000
		s := newShelf(t)
		s.mu.text = strings.Repeat("t", size)
		s.put(keyA)
		f, _ := factoryOn(t, s.Server, Options{PagedLists: true, MemoryBudget: 1 << 30})
		maps := For[*corev1.ConfigMap](f)
		stop := runFactory(t, f)
		<-maps.Synced()
		for range 5 {
			s.put(keyA)
			synctest.Wait()
			if held := f.held(); held < size || held > 3*size {
				t.Errorf("one object of %d bytes in memory counts as %d", size, held)
			}
		}
		stop()
	})
}
