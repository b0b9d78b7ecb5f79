// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"reflect"
	"slices"
)

// Shares reports whether obj is the very object that one of the factory's
// informers holds. All readers share it, so it must not be changed. It compares
// pointers, and does not block.
func (f *SharedInformerFactory) Shares(obj Object) bool {
	t := reflect.TypeOf(obj)
	return slices.ContainsFunc(f.cores(), func(c *core) bool { return c.object == t && c.indexer.Holds(obj) })
}
