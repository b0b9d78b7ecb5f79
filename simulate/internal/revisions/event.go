// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package revisions

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/simulate/internal/object"
)

// The types of events.
const (
	Added    = "ADDED"
	Modified = "MODIFIED"
	Deleted  = "DELETED"
	Bookmark = "BOOKMARK"
	Failed   = "ERROR"
)

// Event is one event of a watch.
type Event struct {
	Type   string
	Object *object.Object
	Status *metav1.Status // if Failed
}
