// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informertest

import "github.com/flyball-dev/flyball/informer"

// NoMutations returns options that check every object and call fail, such as
// t.Error, for each shared object that a handler, a reconciler or other code
// has modified. Use it as Options.DetectMutations in tests.
func NoMutations(fail func(...any)) informer.MutationDetection {
	return informer.MutationDetection{Rate: 1, OnMutation: func(m informer.Mutation) { fail(m) }}
}
