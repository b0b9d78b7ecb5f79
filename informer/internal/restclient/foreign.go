// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package restclient

import (
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer/internal/base"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

// Foreign counts the objects of other shards that were dropped before they were decoded. The zero
// Foreign is ready to use. Safe for concurrent use.
type Foreign struct{ Objects, Bytes atomic.Uint64 }

func (f *Foreign) add(bytes int) {
	if f != nil {
		f.Objects.Add(1)
		f.Bytes.Add(uint64(bytes))
	}
}

// screened returns the item of an object of a shard that is not held, without decoding it. false:
// it must be decoded. added: it was not of a held shard before. It does not modify raw.
func (d *Decoder) screened(raw []byte, protobuf, added bool) (item listwatch.Item[kube.Object], foreign bool) {
	meta, foreign := d.screen.Foreign(raw, protobuf, d.mayBeKind)
	if !foreign {
		return item, false
	}
	d.kept.Foreign.add(len(raw))
	item.Anomaly, item.ResourceVersion = base.Foreign, string(meta.ResourceVersion)
	if d.screen.ByOwner() && !added { // it may have to leave
		item.Key = kube.Key{Namespace: string(meta.Namespace), Name: string(meta.Name)}
		item.UID = types.UID(meta.UID)
	}
	return item, true
}

// mayBeKind reports whether a JSON object of that kind can be of the list or watch.
func (d *Decoder) mayBeKind(kind []byte) bool {
	return string(kind) == d.kind.Kind || d.metadataOnly && string(kind) == metadataKind
}

// drops reports whether an item of a page is of a shard that is not held, and counts it. An item
// of a list that does not tell its kind must do so itself.
func (r *pageReader) drops(raw []byte, protobuf bool) bool {
	if r.d.screen == nil {
		return false
	}
	meta, foreign := r.d.screen.Foreign(raw, protobuf, r.d.mayBeKind)
	if !foreign || (r.named || r.unnamed) && len(meta.Kind) == 0 {
		return false
	}
	r.d.kept.Foreign.add(len(raw))
	r.page.Foreign++
	return true
}
