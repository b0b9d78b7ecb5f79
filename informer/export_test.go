// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import "github.com/flyball-dev/flyball/kube"

// PackNow makes i compact, as when the memory budget is full.
func PackNow[T kube.Object](i *SharedInformer[T]) bool { return i.core.pack("a test asks for it") }
