// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package sourcetest holds a source.Source of your own to the contract that
// controllers rely on.
//
//	func TestMySource(t *testing.T) {
//		sourcetest.Run(t, func() source.Source[string] { return newMySource() })
//	}
//
// Each check makes a new source inside a bubble of [testing/synctest], where time
// costs nothing and a goroutine that outlives Run fails the test. So the source must
// not read from real connections: give it a fake of what it listens to.
//
// # Promises
//
//	R1  the part that a source has in it: keys are added while it runs, and Synced
//	    says when those of the start have been
//
// # Concurrency
//
// The checks run one after the other.
//
// # Testing
//
// The suite is held by the sources of package source and by sources that break it.
package sourcetest
