// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package protoplan

import "slices"

// classes are the sizes of Go's allocations up to the largest class.
var classes = [...]int64{
	0, 8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 288, 320, 352, 384, 416, 448, 480, 512,
	576, 640, 704, 768, 896, 1024, 1152, 1280, 1408, 1536, 1792, 2048, 2304, 2688, 3072, 3200, 3456, 4096, 4864, 5120, 5376,
	6144, 6528, 6784, 6912, 8192, 9472, 9728, 10240, 10880, 12288, 13568, 14336, 16384, 18432, 19072, 20480, 21760, 24576,
	27264, 28672, 32768,
}

const (
	page           = 8 << 10
	headerFrom     = 512 // larger values with pointers have a header
	ofHeader       = 8
	ofMap          = 48 // without groups
	slotsOfGroup   = 8
	ofStringHeader = 16
)

// roundUp returns what an allocation of n bytes takes.
func roundUp(n int64, pointers bool) int64 {
	if pointers && n > headerFrom {
		n += ofHeader
	}
	if n > classes[len(classes)-1] {
		return (n + page - 1) / page * page
	}
	i, _ := slices.BinarySearch(classes[:], n)
	return classes[i]
}

// sizeOfMap returns about what a map of count strings to values of that size
// takes, without them.
func sizeOfMap(count int, value int64) int64 {
	group := int64(slotsOfGroup * (1 + ofStringHeader))
	group += slotsOfGroup * value
	groups := int64(1)
	for groups*slotsOfGroup*7/8 < int64(count) && count > slotsOfGroup {
		groups *= 2
	}
	return ofMap + roundUp(groups*group, true)
}
