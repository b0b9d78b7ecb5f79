// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informertest

import "github.com/flyball-dev/flyball/informer"

// NoMutations keeps an eye on every object and calls fail, such as t.Error, with
// each that a handler, a reconciler or anybody else has changed, although all
// readers share it. It is for Options.DetectMutations of a test's informers.
func NoMutations(fail func(...any)) informer.MutationDetection {
	return informer.MutationDetection{Rate: 1, OnMutation: func(m informer.Mutation) { fail(m) }}
}
