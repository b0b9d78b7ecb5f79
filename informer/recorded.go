// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/internal/compact"
	"github.com/flyball-dev/flyball/informer/internal/restclient"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/internal/recording"
	"github.com/flyball-dev/flyball/kube"
)

// recordIn writes the present state to w, and from then on what comes from the server. Nil: no
// longer.
func (c *core) recordIn(w *recording.Window) {
	c.critical.Lock()
	defer c.critical.Unlock()
	if c.critical.recorded = nil; w == nil {
		return
	}
	reached := kube.Version(0)
	for s := range c.critical.scopes.all() {
		if at := c.indexer.Reached(s.id); reached == 0 || at < reached {
			reached = at
		}
	}
	rows := c.indexer.View() // does not change
	c.critical.recorded = w.Informer(c.recordedAs(reached), func(yield func(kube.Object) bool) {
		for r := range rows.All() {
			if r.Undecodable || r.Scopes.Empty() {
				continue
			}
			if obj, err := compact.Open(r.Object); err == nil && !yield(obj) {
				return
			}
		}
	})
}

// recordedAs describes c in a recording.
func (c *core) recordedAs(reached kube.Version) recording.Source {
	s := recording.Source{Kind: c.gvk(), Metadata: restclient.OfMetadata(c.object), Version: reached.String()}
	if c.namespaced == nil || c.resource == nil {
		return s
	}
	if namespaced, known := c.namespaced(); known {
		s.Namespaced, s.Resource = namespaced, c.resource().Resource
	}
	return s
}

// recordLocked writes a batch to the recording. Objects of a list that are as the store has them are
// left out; those that cannot be decoded, too.
func (c *core) recordLocked(batch *store.Batch) {
	c.critical.recorded.Learned(c.recordedAs(0))
	for i := range batch.Deltas {
		d := &batch.Deltas[i]
		if d.Type == store.Sync || d.Err != nil {
			continue
		}
		obj := d.Object
		kind := "MODIFIED"
		switch d.Type {
		case store.Added:
			kind = "ADDED"
		case store.Deleted:
			if kind = "DELETED"; base.IsNil(obj) {
				obj = &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: d.Key.Namespace, Name: d.Key.Name, UID: d.UID}}
			}
		case store.Replaced:
			if held, _, err := c.indexer.Get(d.Key); err == nil && !base.IsNil(held) && kube.ParseVersion(held.GetResourceVersion()) == d.Version {
				continue
			}
		}
		c.critical.recorded.Event(kind, func() (kube.Object, error) { return compact.Open(obj) }, d.Version.String(), int64(d.Bytes))
	}
	if len(batch.Deltas) == 0 {
		for _, r := range batch.Reached {
			c.critical.recorded.Bookmark(r.Version.String())
		}
	}
}

// joinRecorder lets recordings have the objects of c while ctx lasts.
func (c *core) joinRecorder(ctx context.Context) (leave func()) {
	return recording.Of(ctx).Join(c.recordIn)
}
