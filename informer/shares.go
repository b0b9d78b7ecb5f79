// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"reflect"
	"slices"

	"github.com/flyball-dev/flyball/kube"
)

// Shares reports whether obj is the very object that an informer of the factory
// holds, which must not be modified. It compares pointers and does not block.
func (f *SharedInformerFactory) Shares(obj kube.Object) bool {
	t := reflect.TypeOf(obj)
	return slices.ContainsFunc(f.cores(), func(c *core) bool { return c.object == t && c.indexer.Holds(obj) })
}
