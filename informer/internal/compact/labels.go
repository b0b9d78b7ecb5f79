// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"encoding/binary"
	"hash/maphash"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/flyball-dev/flyball/kube"
)

// LabelsOf returns the labels of an object, packed or not, for selectors. It
// opens nothing.
func LabelsOf(obj kube.Object) labels.Labels {
	if e, ok := obj.(*Entry); ok {
		return block(e.labels)
	}
	return labels.Set(obj.GetLabels())
}

// block is a set of labels: for each, sorted by key, the length of the key, the
// key, the length of the value, the value.
type block string

func appendBlock(b []byte, set map[string]string) []byte {
	for _, key := range slices.Sorted(maps.Keys(set)) {
		for _, s := range []string{key, set[key]} {
			b = append(binary.AppendUvarint(b, uint64(len(s))), s...)
		}
	}
	return b
}

// cut returns the first string of b and the rest.
func (b block) cut() (s string, rest block) {
	n, at := uint64(0), 0
	for shift := uint(0); at < len(b); shift += 7 {
		c := b[at]
		at++
		n |= uint64(c&0x7f) << shift
		if c < 0x80 {
			break
		}
	}
	end := min(at+int(n), len(b))
	return string(b[at:end]), b[end:]
}

// Lookup implements labels.Labels.
func (b block) Lookup(label string) (value string, exists bool) {
	for len(b) > 0 {
		var key string
		key, b = b.cut()
		value, b = b.cut()
		if key == label {
			return value, true
		}
	}
	return "", false
}

// Has implements labels.Labels.
func (b block) Has(label string) bool {
	_, exists := b.Lookup(label)
	return exists
}

// Get implements labels.Labels.
func (b block) Get(label string) string {
	value, _ := b.Lookup(label)
	return value
}

// set returns the labels as a map; nil without any.
func (b block) set() map[string]string {
	if b == "" {
		return nil
	}
	out := make(map[string]string)
	for len(b) > 0 {
		var key, value string
		key, b = b.cut()
		value, b = b.cut()
		out[key] = value
	}
	return out
}

// recentBlocks is how many blocks are remembered, so that neighbours in a list,
// which often have the same labels, share them.
const recentBlocks = 512

// sharedBlocks remembers recent blocks by their hash. A block is kept when it
// was seen before.
type sharedBlocks struct {
	seed maphash.Seed
	mu   struct {
		sync.Mutex
		slots []recentBlock
	}
}

type recentBlock struct {
	hash uint64
	text string // empty: seen once
}

// find returns a string with the content of b that other entries share, or
// false: b is not known to be shared.
func (s *sharedBlocks) find(b []byte) (string, bool) {
	if len(b) == 0 {
		return "", true
	}
	h := maphash.Bytes(s.seed, b)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.slots == nil {
		s.mu.slots = make([]recentBlock, recentBlocks)
	}
	slot := &s.mu.slots[h%recentBlocks]
	switch {
	case slot.hash != h:
		*slot = recentBlock{hash: h}
		return "", false
	case slot.text == "":
		slot.text = string(b)
	case slot.text != string(b):
		return "", false
	}
	return slot.text, true
}
