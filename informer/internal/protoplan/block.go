// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package protoplan

import "unsafe"

// block collects the strings of an object or part that are not shared. They
// become one allocation when all are known. Parts within it are collected after
// it, on the same stack.
type block struct {
	bytes  []byte
	fixes  []fix
	start  uint32 // in bytes, of the innermost part
	recent [64]span
}

// fix is a string to be set.
type fix struct {
	at *string
	span
}

type span struct{ from, to uint32 }

// mark is a state of a block.
type mark struct {
	start        uint32
	bytes, fixes int
}

// add appends a string that is to be stored at p.
func (b *block) add(body []byte, p unsafe.Pointer) {
	s := span{uint32(len(b.bytes)), uint32(len(b.bytes) + len(body))}
	b.bytes = append(b.bytes, body...)
	b.fixes = append(b.fixes, fix{(*string)(p), s})
	if len(body) >= shortestRepeat {
		b.recent[slot(body)] = s
	}
}

// shortestRepeat is the length from which a string that repeats within an object
// is found.
const shortestRepeat = 6

// slot returns where a string is remembered.
func slot(body []byte) int {
	n := len(body)
	return (n ^ int(body[n-1])*7 ^ int(body[n-2])*31 ^ int(body[n-4])*57) & 63
}

// repeat stores the string at p as a repetition of one in this part, if it is
// one.
func (b *block) repeat(body []byte, p unsafe.Pointer) bool {
	if len(body) < shortestRepeat || len(b.bytes) == int(b.start) {
		return false
	}
	s := b.recent[slot(body)]
	if s.from < b.start || int(s.to) > len(b.bytes) || string(b.bytes[s.from:s.to]) != string(body) {
		return false
	}
	b.fixes = append(b.fixes, fix{(*string)(p), s})
	return true
}

// begin begins a part.
func (b *block) begin() mark {
	m := mark{b.start, len(b.bytes), len(b.fixes)}
	b.start = uint32(len(b.bytes))
	return m
}

// end sets the strings of the part that began at m. It returns the bytes
// allocated.
func (b *block) end(m mark) int64 {
	size := b.flush(m.fixes)
	b.bytes, b.start = b.bytes[:m.bytes], m.start
	return size
}

// flush sets the strings from the fix at first on.
func (b *block) flush(first int) int64 {
	fixes := b.fixes[first:]
	if len(fixes) == 0 {
		return 0
	}
	all := string(b.bytes[b.start:])
	for i := range fixes {
		*fixes[i].at = all[fixes[i].from-b.start : fixes[i].to-b.start]
	}
	clear(fixes)
	b.fixes = b.fixes[:first]
	return roundUp(int64(len(all)), false)
}

// mostKept is the largest block and number of strings kept for the next object.
const mostKept = 64 << 10

// clear makes b empty.
func (b *block) clear() {
	clear(b.fixes[:cap(b.fixes)])
	b.bytes, b.fixes, b.start = b.bytes[:0], b.fixes[:0], 0
	if cap(b.bytes) > mostKept {
		b.bytes = nil
	}
	if cap(b.fixes) > mostKept/64 {
		b.fixes = nil
	}
	b.recent = [64]span{}
}
