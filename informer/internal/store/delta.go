// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/base"
)

// DeltaType says how a Delta came about.
type DeltaType string

const (
	// Added, Updated and Deleted come from a watch.
	Added   DeltaType = "Added"
	Updated DeltaType = "Updated"
	Deleted DeltaType = "Deleted"
	// Replaced comes from a list.
	Replaced DeltaType = "Replaced"
	// Sync is an object given again though nothing changed.
	Sync DeltaType = "Sync"
)

// Delta is one change of one object on its way to the Indexer.
type Delta[T base.Object] struct {
	Type  DeltaType
	Key   base.Key
	Scope base.ScopeID
	// Object is the state after the change; Deleted: the last known state, nil
	// when there is none. Nil when Err is set.
	Object T
	UID    types.UID
	// Version is the resourceVersion of the change: the object's, or for
	// Deleted that of the deletion, or for what a list no longer has the list's.
	Version base.Version
	// FinalStateUnknown: Deleted, found missing by a list; the watch did not
	// see the end.
	FinalStateUnknown bool
	// Recompared: Replaced, of a list that is compared by content. The object
	// differs from what was known, though its version may be the same.
	Recompared bool
	// compared: Recompared is the result of a comparison with the Indexer.
	compared bool
	// Bytes as in Item.
	Bytes uint32
	// Handler that a Sync is for.
	Handler int
	// Err says why the object could not be decoded. Key, UID and Version are
	// known all the same.
	Err error
	// Metadata with Err, where at least that could be decoded in full; else nil.
	Metadata *metav1.PartialObjectMetadata
	// original as in Item.
	Refused T
}

// weight is what a delta takes while it waits, in the terms of an eventStream.
func (d *Delta[T]) weight() int64 {
	return EventBytes + int64(cmp.Or(d.Bytes, UnknownBytes))
}

// EventBytes are what an event takes by itself, at least.
const EventBytes = 128

// UnknownBytes are what an object of unknown size is taken to have.
const UnknownBytes = 4 << 10
