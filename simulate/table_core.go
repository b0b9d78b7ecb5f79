// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// builtinColumns are the columns of built-in kinds that have more than name and
// age.
var builtinColumns = sync.OnceValue(func() map[schema.GroupVersionKind]columns {
	return map[schema.GroupVersionKind]columns{}
})

// conditionsOf mark a row that is done.
func conditionsOf(*Kind, *object) []metav1.TableRowCondition { return nil }
