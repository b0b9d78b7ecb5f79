// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/informer/internal/encoding"
	"github.com/flyball-dev/flyball/kube"
)

const (
	ownersFor     = 10 * time.Minute // after the last question
	mostOwned     = 4                // objects
	mostStates    = 4                // of an object
	largestOwners = 64 << 10         // bytes of fields
)

// Owners keeps the managedFields of the few objects that someone asks about, as the server sends
// them: informers drop them otherwise. The zero Owners is ready to use. Safe for concurrent use.
type Owners struct {
	active atomic.Bool
	mu     struct {
		sync.Mutex
		objects []ownedObject // the one that was asked about last is the last
	}
}

// ownedObject is an object whose managedFields are kept.
type ownedObject struct {
	key    kube.Key
	until  time.Time
	states []ownedState // the newest last
}

type ownedState struct {
	version kube.Version
	entries []metav1.ManagedFieldsEntry
}

// Of returns the managedFields of an object at a version; nil: they are not known. They are kept from
// the first call on, for ten minutes after the last.
func (o *Owners) Of(key kube.Key, version kube.Version) []metav1.ManagedFieldsEntry {
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	one := ownedObject{key: key}
	if i := slices.IndexFunc(o.mu.objects, func(other ownedObject) bool { return other.key == key }); i >= 0 {
		one = o.mu.objects[i]
		o.mu.objects = slices.Delete(o.mu.objects, i, i+1)
	}
	one.until = now.Add(ownersFor)
	if len(o.mu.objects) == mostOwned {
		o.mu.objects = slices.Delete(o.mu.objects, 0, 1)
	}
	o.mu.objects = append(o.mu.objects, one)
	o.active.Store(true)
	for _, s := range one.states {
		if s.version == version {
			return s.entries
		}
	}
	return nil
}

// see regards the bytes of an object. A nil Owners, and one that nobody asks, regards none.
func (o *Owners) see(raw []byte) {
	if o == nil || !o.active.Load() || len(raw) == 0 || !o.concerns(raw) {
		return
	}
	meta, ok := metadataIn(raw)
	if !ok {
		return
	}
	size := 0
	for i := range meta.ManagedFields {
		if of := meta.ManagedFields[i].FieldsV1; of != nil {
			size += len(of.GetRawBytes())
		}
	}
	if size == 0 || size > largestOwners {
		return
	}
	state := ownedState{kube.ParseVersion(meta.ResourceVersion), meta.ManagedFields}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.mu.objects {
		if one := &o.mu.objects[i]; one.key == (kube.Key{Namespace: meta.Namespace, Name: meta.Name}) {
			if len(one.states) == mostStates {
				one.states = slices.Delete(one.states, 0, 1)
			}
			one.states = append(one.states, state)
		}
	}
}

// concerns reports whether the bytes may be of an object that is asked about. It forgets those about
// which nobody has asked for long.
func (o *Owners) concerns(raw []byte) bool {
	now := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.objects = slices.DeleteFunc(o.mu.objects, func(one ownedObject) bool { return now.After(one.until) })
	o.active.Store(len(o.mu.objects) > 0)
	return slices.ContainsFunc(o.mu.objects, func(one ownedObject) bool { return bytes.Contains(raw, []byte(one.key.Name)) })
}

// metadataIn decodes the metadata of an object. It does not modify raw.
func metadataIn(raw []byte) (meta metav1.ObjectMeta, ok bool) {
	protobuf := raw[0] != '{'
	if encoding.MetadataFits(protobuf, raw) != nil {
		return meta, false
	}
	err := encoding.Guard(func() error {
		if !protobuf {
			into := struct {
				Metadata *metav1.ObjectMeta `json:"metadata"`
			}{&meta}
			return kjson.UnmarshalCaseSensitivePreserveInts(raw, &into)
		}
		_, metadata, _, err := encoding.CutField(raw, encoding.ObjectMetadata)
		if err != nil {
			return err
		}
		return meta.Unmarshal(metadata)
	})
	return meta, err == nil && meta.Name != ""
}
