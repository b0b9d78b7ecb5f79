// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package protoplan

import (
	"encoding/binary"
	"time"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// varintAt reads the number at raw[at:]. end is negative if there is none.
func varintAt(raw []byte, at int) (v uint64, end int) {
	for shift := uint(0); shift < 64 && at < len(raw); shift += 7 {
		b := raw[at]
		at++
		v |= uint64(b&(1<<7-1)) << shift
		if b < 1<<7 {
			return v, at
		}
	}
	return 0, -1
}

// lengthAt reads a length at raw[at:] and returns that many bytes after it.
func lengthAt(raw []byte, at int) (body []byte, end int, ok bool) {
	if at < len(raw) && raw[at] < 1<<7 {
		end = at + 1 + int(raw[at])
		if end > len(raw) {
			return nil, 0, false
		}
		return raw[at+1 : end : end], end, true
	}
	n, at := varintAt(raw, at)
	if at < 0 || n > uint64(len(raw)-at) {
		return nil, 0, false
	}
	end = at + int(n)
	return raw[at:end:end], end, true
}

// numberAt reads the number of kind k at raw[at:]. end is negative if there is
// none.
func numberAt(k kind, raw []byte, at int) (v uint64, end int) {
	switch k {
	case float64s:
		if len(raw)-at < 8 {
			return 0, -1
		}
		return binary.LittleEndian.Uint64(raw[at:]), at + 8
	case float32s:
		if len(raw)-at < 4 {
			return 0, -1
		}
		return uint64(binary.LittleEndian.Uint32(raw[at:])), at + 4
	}
	v, end = varintAt(raw, at)
	return v, end
}

// skip returns where the value at raw[at:] ends, negative if it does not or is a
// group.
func skip(raw []byte, at int, wire uint8) (end int) {
	switch wire {
	case varint:
		_, end = varintAt(raw, at)
		return end
	case fixed64:
		end = at + 8
	case fixed32:
		end = at + 4
	case bytesOf:
		_, end, ok := lengthAt(raw, at)
		if !ok {
			return -1
		}
		return end
	default:
		return -1
	}
	if end > len(raw) {
		return -1
	}
	return end
}

// runOf returns where the run of fields with the tag raw[start:at] ends, and how
// many they are; a negative end if a value does not.
func runOf(raw []byte, start, at int) (end, count int) {
	tag := string(raw[start:at])
	wire := raw[start] & 7
	for {
		if at = skip(raw, at, wire); at < 0 {
			return -1, 0
		}
		count++
		if len(raw)-at < len(tag) || string(raw[at:at+len(tag)]) != tag {
			return at, count
		}
		at += len(tag)
	}
}

// entryOf returns the key and the value of a map's entry that has a key. Values
// that are nil are not written.
func entryOf(entry []byte) (key, value []byte, ok bool) {
	const keyTag, valueTag = 1<<3 | bytesOf, 2<<3 | bytesOf
	if len(entry) == 0 || entry[0] != keyTag {
		return nil, nil, false
	}
	key, at, ok := lengthAt(entry, 1)
	if !ok || at == len(entry) {
		return key, nil, ok
	}
	if entry[at] != valueTag {
		return nil, nil, false
	}
	value, at, ok = lengthAt(entry, at+1)
	return key, value, ok && at == len(entry)
}

// moment decodes a time to p.
func moment(k kind, body []byte, p unsafe.Pointer) bool {
	const secondsTag, nanosTag = 1 << 3, 2 << 3
	var seconds, nanos uint64
	at := 0
	if len(body) > 0 {
		if body[0] != secondsTag {
			return false
		}
		if seconds, at = varintAt(body, 1); at < 0 {
			return false
		}
		if at < len(body) {
			if body[at] != nanosTag {
				return false
			}
			if nanos, at = varintAt(body, at+1); at != len(body) {
				return false
			}
		}
	}
	switch {
	case len(body) == 0:
	case k == instant: // it has no parts of seconds
		*(*metav1.Time)(p) = metav1.Time{Time: time.Unix(int64(seconds), 0).Local()}
	default:
		part := time.Duration(int32(nanos)).Truncate(time.Microsecond)
		*(*metav1.MicroTime)(p) = metav1.MicroTime{Time: time.Unix(int64(seconds), int64(part)).Local()}
	}
	return true
}
