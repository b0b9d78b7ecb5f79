// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package election

import (
	"encoding/json"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/kube"
)

// Annotation of the Lease that holds the record.
const Annotation = "flyball.dev/written"

// maxRecord is the largest annotation in bytes. A longer record is written without its
// kinds, and the next leader asks the server about each.
const maxRecord = 16 << 10

// record is what a leader says about its writes. It names the state of the Lease that it
// was written with: another elector may leave the annotation as it is.
type record struct {
	Holder      string `json:"holder"`
	Transitions int32  `json:"transitions"`
	Renewed     string `json:"renewed"`
	// Released: the record is complete, the leader writes no more.
	Released bool `json:"released,omitempty"`
	// Written is the newest version per kind, in the form Kind.group; 0: none was written.
	// Nothing is known about other kinds.
	Written map[string]kube.Version `json:"written,omitempty"`
}

// about returns a record without kinds for a Lease that holder is about to write.
func about(l *coordinationv1.Lease, holder string, released bool) record {
	return record{Holder: holder, Transitions: ptr.Deref(l.Spec.LeaseTransitions, 0), Renewed: renewedOf(l), Released: released}
}

func renewedOf(l *coordinationv1.Lease) string {
	if l.Spec.RenewTime == nil {
		return ""
	}
	return l.Spec.RenewTime.UTC().Format(metav1.RFC3339Micro)
}

// isOf reports whether r was written with this state of the Lease.
func (r record) isOf(l *coordinationv1.Lease) bool {
	holder := r.Holder
	if r.Released {
		holder = ""
	}
	return holder == ptr.Deref(l.Spec.HolderIdentity, "") && r.Transitions == ptr.Deref(l.Spec.LeaseTransitions, 0) && r.Renewed == renewedOf(l)
}

// encode returns the annotation of r; empty: it does not fit.
func (r record) encode() string {
	for range 2 {
		if text, err := json.Marshal(r); err == nil && len(text) <= maxRecord {
			return string(text)
		}
		r.Written = nil
	}
	return ""
}

// decode returns the record in an annotation. ok is false for anything else.
func decode(text string) (r record, ok bool) {
	if text == "" || len(text) > maxRecord || json.Unmarshal([]byte(text), &r) != nil {
		return record{}, false
	}
	return r, true
}

// plan is what a new leader knows about the writes of its predecessor.
type plan struct {
	previous string // its identity; empty: unknown
	released bool   // it has released the lease, and its record is complete
	written  map[schema.GroupKind]kube.Version
}

// planOf returns the plan from the Lease that was taken over; nil: there was none. Unless a
// record is of exactly that state of the Lease, nothing is known.
func planOf(was *coordinationv1.Lease) plan {
	if was == nil {
		return plan{}
	}
	p := plan{previous: ptr.Deref(was.Spec.HolderIdentity, "")}
	r, ok := decode(was.Annotations[Annotation])
	if !ok || !r.isOf(was) {
		return p
	}
	p.previous, p.released = r.Holder, r.Released
	p.written = make(map[schema.GroupKind]kube.Version, len(r.Written))
	for kind, v := range r.Written {
		p.written[schema.ParseGroupKind(kind)] = v
	}
	return p
}

// floor returns what the informers of kind must have seen. After a crash that is what the
// server has stored now: the predecessor may have written after its last renewal.
func (p plan) floor(kind schema.GroupKind) informer.Floor {
	v, known := p.written[kind]
	return informer.Floor{Version: v, Present: !known || !p.released}
}
