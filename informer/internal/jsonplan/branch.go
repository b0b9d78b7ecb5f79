// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package jsonplan

import (
	"sync"
	"sync/atomic"

	"github.com/flyball-dev/flyball/informer/internal/fields"
	"github.com/flyball-dev/flyball/informer/internal/share"
)

const (
	// mostKids is how many keys of the objects in one place of a tree have
	// branches, mostBranches how many branches a plan has. Beyond, keys are
	// strings like any other, and values that follow have a branch in common.
	mostKids     = 64
	mostBranches = 2048
)

// branch is a place in the trees of a plan: the values of one key, or the
// elements of arrays. Branches are made when their values first occur. Safe for
// concurrent use.
type branch struct {
	name  string
	sel   *fields.Set // what is kept of values
	left  bool        // values are left out
	site  share.Site  // of values
	names share.Site  // of keys without a branch

	first atomic.Pointer[branch] // the key that came first last time
	next  atomic.Pointer[branch] // the key that followed last time
	kids  atomic.Pointer[kids]
	list  atomic.Pointer[branch] // of elements
	rest  atomic.Pointer[branch] // of keys without a branch
}

// kids are the branches of keys. Immutable.
type kids struct {
	all   []*branch
	slots []uint16 // a hash table: numbers in all + 1, 0 for none
}

const kidsSeed = 0x9e3779b1

func (k *kids) find(name []byte) *branch {
	if k == nil {
		return nil
	}
	for at := hash(name, kidsSeed); ; at++ {
		slot := k.slots[at&uint32(len(k.slots)-1)]
		if slot == 0 {
			return nil
		}
		if kid := k.all[slot-1]; kid.name == string(name) {
			return kid
		}
	}
}

func (k *kids) with(b *branch) *kids {
	out := &kids{}
	if k != nil {
		out.all = append(out.all, k.all...)
	}
	out.all = append(out.all, b)
	size := 8
	for size < 2*len(out.all) {
		size *= 2
	}
	out.slots = make([]uint16, size)
	for i, kid := range out.all {
		at := hash([]byte(kid.name), kidsSeed) & uint32(size-1)
		for out.slots[at] != 0 {
			at = (at + 1) & uint32(size-1)
		}
		out.slots[at] = uint16(i + 1)
	}
	return out
}

// grove makes the branches of a plan.
type grove struct {
	made  atomic.Int32
	spare branch     // of values in any place, when there are too many
	mu    sync.Mutex // held while kids are added
}

// kid returns the branch of name in b, or nil if there are too many and name is
// not one of those that b keeps.
func (g *grove) kid(b *branch, name []byte) *branch {
	if kid := b.kids.Load().find(name); kid != nil {
		return kid
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	k := b.kids.Load()
	if kid := k.find(name); kid != nil {
		return kid
	}
	sub, keep := b.sel.Child(string(name))
	chosen := keep && b.sel != nil
	if !chosen && (k != nil && len(k.all) >= mostKids || g.made.Load() >= mostBranches || len(name) > longestShared) {
		return nil
	}
	g.made.Add(1)
	kid := &branch{name: string(name), sel: sub, left: !keep}
	b.kids.Store(k.with(kid))
	return kid
}

// only returns the branch in at, which is made if it is nil. It keeps sel of its
// values. If there are too many, it returns one that keeps everything, or b, which
// keeps sel.
func (g *grove) only(b *branch, at *atomic.Pointer[branch], sel *fields.Set) *branch {
	if only := at.Load(); only != nil {
		return only
	}
	if g.made.Load() >= mostBranches {
		if sel == nil {
			return &g.spare // b may leave out managedFields
		}
		return b
	}
	if at.CompareAndSwap(nil, &branch{sel: sel}) {
		g.made.Add(1)
	}
	return at.Load()
}

// withoutManagedFields leaves out metadata.managedFields below root.
func (g *grove) withoutManagedFields(root *branch) {
	if metadata := g.kid(root, []byte("metadata")); metadata != nil {
		g.kid(metadata, []byte("managedFields")).left = true
	}
}
