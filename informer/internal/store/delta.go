// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/kube"
)

// DeltaType is the origin of a Delta.
type DeltaType string

const (
	// Added, Updated and Deleted come from a watch.
	Added   DeltaType = "Added"
	Updated DeltaType = "Updated"
	Deleted DeltaType = "Deleted"
	// Replaced comes from a list.
	Replaced DeltaType = "Replaced"
	// Sync is an unchanged object, delivered again.
	Sync DeltaType = "Sync"
)

// Delta is one change of one object on its way to the Indexer.
type Delta struct {
	Type  DeltaType
	Key   kube.Key
	Scope base.ScopeID
	// Object is the state after the change; for Deleted the last known state,
	// or nil if there is none. Nil if Err is set.
	Object kube.Object
	UID    types.UID
	// Version is the resourceVersion of the change: the object's, for Deleted
	// that of the deletion, and for an object missing from a list the list's.
	Version kube.Version
	// FinalStateUnknown: a Deleted found by a list; the watch did not report
	// it.
	FinalStateUnknown bool
	// Recompared: a Replaced from a list compared by content. The object
	// differs from the known one, possibly at the same version.
	Recompared bool
	// Bytes and Heap are as in Item; Heap of an unknown size is estimated.
	Bytes, Heap uint32
	// Handler receives a Sync.
	Handler int
	// Err is why the object could not be decoded. Key, UID and Version are
	// still known.
	Err error
	// Metadata is set with Err if it could be decoded in full.
	Metadata *metav1.PartialObjectMetadata
	// Refused is as Original in Item.
	Refused kube.Object
}

// weight is the memory of a waiting delta, counted as in an eventStream.
func (d *Delta) weight() int64 {
	return EventBytes + int64(cmp.Or(d.Bytes, UnknownBytes))
}

// EventBytes is the least that an event counts.
const EventBytes = 128

// UnknownBytes is assumed for an object of unknown size.
const UnknownBytes = 4 << 10
