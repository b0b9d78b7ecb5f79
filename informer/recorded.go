// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/compact"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/internal/recording"
	"github.com/flyball-dev/flyball/kube"
)

// unknownSize is how many bytes an object of unknown size counts while it waits to be written.
const unknownSize = 4 << 10

// recorded writes what an informer has and gets to a recording. The lock of critical guards it.
type recorded struct {
	indexer *store.Indexer
	scopes  *scopeTable
	source  func() recording.Source
	log     *recording.InformerLog // nil: there is no recording
}

// beginLocked writes the present state to w, and from then on what comes from the server. Nil: no
// longer.
func (r *recorded) beginLocked(w *recording.Window) {
	if r.log = nil; w == nil {
		return
	}
	s := r.source()
	s.Version = r.scopes.reached(r.indexer).String()
	rows := r.indexer.View() // does not change
	r.log = w.Informer(s, func(yield func(kube.Object) bool) {
		for row := range rows.All() {
			if row.Undecodable || row.Scopes.Empty() {
				continue
			}
			if obj, err := compact.Open(row.Object); err == nil && !yield(obj) {
				return
			}
		}
	})
}

// batchLocked writes a batch before it is stored. Objects of a list that are as the store has them
// are left out; those that cannot be decoded, too.
func (r *recorded) batchLocked(batch *store.Batch) {
	if r.log == nil {
		return
	}
	r.log.Learned(r.source())
	for i := range batch.Deltas {
		d := &batch.Deltas[i]
		if d.Type == store.Sync || d.Err != nil {
			continue
		}
		obj, kind := d.Object, "MODIFIED"
		switch d.Type {
		case store.Added:
			kind = "ADDED"
		case store.Deleted:
			if kind = "DELETED"; base.IsNil(obj) {
				obj = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: d.Key.Namespace, Name: d.Key.Name, UID: d.UID}}
			}
		case store.Replaced:
			if held, _, err := r.indexer.Get(d.Key); err == nil && !base.IsNil(held) && kube.ParseVersion(held.GetResourceVersion()) == d.Version {
				continue
			}
		}
		open := func() (kube.Object, error) { return compact.Open(obj) }
		r.log.Event(kind, open, d.Version.String(), cmp.Or(int64(d.Bytes), unknownSize))
	}
	if len(batch.Deltas) == 0 {
		for _, reached := range batch.Reached {
			r.log.Bookmark(reached.Version.String())
		}
	}
}
