// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flyball-dev/flyball/internal/fielddiff"
	"github.com/flyball-dev/flyball/kube"
)

// Sources of keys that a controller adds itself.
const (
	// Timer is the end of a RequeueAfter.
	Timer = "timer"
	// Retry is the end of a backoff.
	Retry = "retry"
	// Cache is a cache that has the version that a conflict waited for.
	Cache = "cache"
)

// Cause is why a key was added.
type Cause struct {
	// Source is the name of the source, or Timer, Retry or Cache.
	Source string
	// Type of the event. Zero without an object.
	Type kube.EventType
	// Kind of the object. Empty if the source does not know it.
	Kind schema.GroupKind
	// Object of the event. It may be of another kind than the key's.
	Object Key
	// OldVersion and Version are the resourceVersions of the object before and after; 0 if the
	// source does not know them.
	OldVersion, Version kube.Version
	// OldGeneration and Generation of the object before and after; 0 if it has
	// none.
	OldGeneration, Generation int64
	// Deleting: the object's deletionTimestamp has appeared.
	Deleting bool
	// Initial: the object existed when the source started.
	Initial bool
	// Resync: nothing changed; the resync period has passed.
	Resync bool
	// Own: the event follows only writes of this process; see kube.Event.
	Own bool
	// changed are the fields of an Updated that the handler saw; nil: not computed.
	changed *fielddiff.Fields
	// TraceContext is the object's kube.TraceContextAnnotation. Empty: it has none.
	TraceContext string
	// Reason is the error or the Reason of the Result before a Retry or Timer, at most 256 bytes
	// of it.
	Reason string
}

// Renewed reports whether the desired state of the object has changed: it is
// new, gone or being deleted, or has another generation. A change of its
// status, an initial object and a resync do not count.
func (c Cause) Renewed() bool {
	switch c.Type {
	case kube.Added:
		return !c.Initial
	case kube.Deleted:
		return true
	case kube.Updated:
		return c.Deleting || c.OldGeneration != 0 && c.Generation != c.OldGeneration
	}
	return false
}

// Changed returns the paths of the fields that an Updated has changed, such as spec.replicas, the first
// 8, and how many others. It leaves out what the server changes with each write, and names no
// values. None: it is not an Updated of a KindSource, or the controller does not record its runs.
func (c Cause) Changed() (paths []string, more int) {
	if c.changed == nil {
		return nil, 0
	}
	return c.changed.Paths, c.changed.More
}

// String returns the cause in a few words, such as "updated Deployment shop/web (generation 3 to
// 4, own write)", "listed Website shop/web", "retry: connection refused" or the name of the source.
func (c Cause) String() string {
	if c.Type == 0 {
		if c.Reason == "" {
			return c.Source
		}
		return c.Source + ": " + c.Reason
	}
	said := []string{c.what()}
	if c.Kind.Kind != "" {
		said = append(said, c.Kind.Kind)
	}
	said = append(said, strings.TrimPrefix(c.Object.String(), "/"))
	var how []string
	switch {
	case c.Deleting:
		how = append(how, "being deleted")
	case c.OldGeneration != 0 && c.Generation != c.OldGeneration && c.Generation != 0:
		how = append(how, fmt.Sprintf("generation %d to %d", c.OldGeneration, c.Generation))
	}
	if c.Own {
		how = append(how, "own write")
	}
	if len(how) > 0 {
		said = append(said, "("+strings.Join(how, ", ")+")")
	}
	return strings.Join(said, " ")
}

// what returns a verb for the event.
func (c Cause) what() string {
	switch {
	case c.Initial:
		return "listed"
	case c.Resync:
		return "resync of"
	}
	return c.Type.String()
}
