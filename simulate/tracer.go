// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Tracer observes a Server. Its methods must be safe for concurrent use, and a request
// waits for them. Except from Stored, which must not block, they may call the methods of
// the server that cause faults.
type Tracer interface {
	// Asked is called when a request has arrived, before it is handled.
	Asked(Request)
	// Stored is called when a revision was made or, by Rewind, undone. The store is locked,
	// and calls are in the order of revisions.
	Stored(Change)
	// Answering is called when a write was carried out, before it is answered.
	Answering(Request)
	// Answered is called at the end of a request. Code 0: the connection broke instead.
	Answered(r Request, code int)
	// Panicked is called when a bug makes the server panic. The connection breaks.
	Panicked(r Request, value any, stack []byte)
	// Sending is called before an event is sent on a watch.
	Sending(Request, Event)
}

// Request is a request to a Server.
type Request struct {
	// Number of the request, from 0.
	Number int
	// Client is the name that Network.Pace gave it.
	Client string
	// User is the name of the user, after impersonation. Empty until it is known, which is
	// after Asked, and for requests that are refused before.
	User string
	// Verb as in Served.
	Verb string
	// Kind is empty if the request is not for a resource.
	Kind schema.GroupKind
	// Resource and Subresource, as in the path.
	Resource    schema.GroupResource
	Subresource string
	// Key of the object. The name is empty if the request is for no single object.
	Key types.NamespacedName
	// Path and Query as they were sent.
	Path, Query string
	// Agent is the header User-Agent.
	Agent string
}

// Writes reports whether the request can change something.
func (r Request) Writes() bool { return writes(r.Verb) }

func writes(verb string) bool {
	switch verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// Change is one revision.
type Change struct {
	Revision int64
	// Version of the object that is stored now; 0: there is none. It differs from Revision
	// only for a change that is undone.
	Version  int64
	Kind     schema.GroupKind
	Resource schema.GroupResource
	Key      types.NamespacedName
	// UID and Generation of the object; if it is gone, of its last state.
	UID        types.UID
	Generation int64
	// Holder of a Lease; empty if it is free, and for other kinds.
	Holder string
	// Created: there was no object before. Deleted: there is none after.
	Created, Deleted bool
	// Undone: a Rewind returned to this revision.
	Undone bool
}

// Event is an event of a watch.
type Event struct {
	Type            string // ADDED, MODIFIED, DELETED, BOOKMARK or ERROR
	Key             types.NamespacedName
	ResourceVersion string
}
