// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package snippet

func newKey() []byte { return make([]byte, 32) }

var _ = ensureKey
