// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// chapters returns a function that runs one chapter of a story. A chapter ends when settled
// returns nil; after a failed chapter no other begins.
func chapters(t *testing.T, settled func(context.Context) error) func(name string, happens func(*testing.T)) {
	return func(name string, happens func(*testing.T)) {
		if t.Failed() {
			return
		}
		t.Run(name, func(t *testing.T) {
			happens(t)
			begun := time.Now()
			settle(t, settled)
			t.Logf("settled after %v", time.Since(begun).Round(100*time.Millisecond))
		})
	}
}

// settle waits until settled returns nil.
func settle(t *testing.T, settled func(context.Context) error) {
	t.Helper()
	NewWithT(t).Eventually(settled).WithContext(t.Context()).WithTimeout(long).WithPolling(200 * time.Millisecond).Should(Succeed())
}
