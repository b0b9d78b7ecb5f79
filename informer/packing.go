// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/flyball-dev/flyball/informer/internal/compact"
	"github.com/flyball-dev/flyball/informer/internal/store"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/kube"
)

// packing packs the objects of an informer, once that is started: with its first scope, or when
// the memory budget is full.
type packing struct {
	atomic.Pointer[compact.Packer]
	reads atomic.Int64 // about, since the budget was last full, until the objects are packed
	full  struct {
		sync.Mutex
		start func() (*compact.Packer, error) // nil: packing is not wanted, or has begun
		why   string
	}
}

// items returns what packs the items of lists and watches. In a list, an
// entry of the store that has the same bytes stays.
func (p *packing) items(store *store.Indexer) func(listwatch.Item[kube.Object]) listwatch.Item[kube.Object] {
	return func(item listwatch.Item[kube.Object]) listwatch.Item[kube.Object] {
		packer := p.Load()
		if packer == nil || item.Err != nil || item.Object == nil {
			return item
		}
		known, _, _ := store.Get(item.Key)
		item.Object = packer.Pack(item.Object, item.Raw, known)
		if compact.IsPacked(item.Object) {
			item.Heap = compact.HeapOf(item.Object)
		}
		return item
	}
}

// setReady makes begin call start.
func (p *packing) setReady(start func() (*compact.Packer, error)) {
	p.full.Lock()
	defer p.full.Unlock()
	p.full.start = start
}

// isReady reports whether begin would pack.
func (p *packing) isReady() bool {
	p.full.Lock()
	defer p.full.Unlock()
	return p.full.start != nil
}

// begin packs what arrives from now on. It returns nil if there is nothing to begin.
func (p *packing) begin(why string) (*compact.Packer, error) {
	p.full.Lock()
	defer p.full.Unlock()
	if p.full.start == nil {
		return nil, nil
	}
	packer, err := p.full.start()
	p.full.start = nil
	if err == nil {
		p.full.why = why
		p.Store(packer)
	}
	return packer, err
}

// reason returns why the objects are packed; empty: they are not, or always were.
func (p *packing) reason() string {
	p.full.Lock()
	defer p.full.Unlock()
	return p.full.why
}

// countedReads is how many reads one that is counted stands for.
const countedReads = 64

// recordRead counts a read of an object that is not packed.
func (p *packing) recordRead() {
	if rand.Uint32()%countedReads == 0 {
		p.reads.Add(countedReads)
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
