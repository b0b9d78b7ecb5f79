// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package sourcetest checks that a source.Source satisfies the contract that
// controllers rely on.
//
//	func TestMySource(t *testing.T) {
//		sourcetest.Run(t, func() source.Source[string] { return newMySource() })
//	}
//
// Each check makes a new source inside a [testing/synctest] bubble, where time
// costs nothing and a goroutine that outlives Run fails the test. So the source
// must not read from real connections: give it a fake.
//
// # Promises
//
//	R1  the part of a source: keys are added while it runs, and Synced is closed
//	    when those of the initial objects have been
//
// # Concurrency
//
// The checks run one after the other.
//
// # Testing
//
// The suite is tested with the sources of package source and with sources that
// violate it.
package sourcetest
