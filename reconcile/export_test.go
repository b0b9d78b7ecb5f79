// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package reconcile

// IsNotFoundOf is tested by itself, because the kinds that it is about have no Go types here.
var IsNotFoundOf = isNotFoundOf
