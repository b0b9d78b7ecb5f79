// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"math"
	"sync/atomic"

	"github.com/flyball-dev/flyball/informer/internal/compact"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

// packing packs the objects of an informer, once that is started.
type packing struct {
	atomic.Pointer[compact.Packer]
}

// items returns what packs the items of lists and watches, or nil. In a list, an
// entry of the store that has the same bytes stays.
func (p *packing) items(store *store.Indexer) func(listwatch.Item[kube.Object]) listwatch.Item[kube.Object] {
	packer := p.Load()
	if packer == nil {
		return nil
	}
	return func(item listwatch.Item[kube.Object]) listwatch.Item[kube.Object] {
		if item.Err != nil || item.Object == nil {
			return item
		}
		known, _, _ := store.Get(item.Key)
		item.Object = packer.Pack(item.Object, item.Raw, known)
		if size := compact.Size(item.Object); size > 0 {
			item.Heap = uint32(min(size, math.MaxUint32))
		}
		return item
	}
}

// pack returns obj as the Indexer of the informer holds it.
func (p *packing) pack(obj kube.Object) kube.Object {
	if packer := p.Load(); packer != nil {
		return packer.Pack(obj, nil, nil)
	}
	return obj
}

// answer packs what an own write left.
func (p *packing) answer(o store.Observed) store.Observed {
	if packer := p.Load(); packer != nil {
		o.Object = packer.Pack(o.Object, nil, nil)
		o.Key, o.UID = packer.Own(o.Key, o.UID)
	}
	return o
}
