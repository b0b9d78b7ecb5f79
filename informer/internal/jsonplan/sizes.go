// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package jsonplan

import "slices"

// classes are the sizes of the allocator's blocks, in bytes.
var classes = [...]uint16{
	8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256, 288, 320, 352, 384, 416, 448, 480,
	512, 576, 640, 704, 768, 896, 1024, 1152, 1280, 1408, 1536, 1792, 2048, 2304, 2688, 3072, 3200, 3456, 4096, 4864,
	5376, 6144, 6528, 6784, 6912, 8192, 9472, 9728, 10240, 10880, 12288, 13568, 14336, 16384, 18432, 19072, 20480, 21760,
	24576, 27264, 28672, 32768,
}

// sized returns what a block of n bytes takes.
func sized(n int) uint32 {
	const page = 8 << 10
	switch {
	case n <= 0:
		return 0
	case n > int(classes[len(classes)-1]):
		return uint32(n+page-1) / page * page
	}
	at, _ := slices.BinarySearch(classes[:], uint16(n))
	return uint32(classes[at])
}

// sizeOfMap returns what a map of n members takes.
func sizeOfMap(n int, member uintptr) uint32 {
	const header, slots = 48, 8
	if n == 0 {
		return header
	}
	groups := 1
	if n > slots {
		for groups*slots*7/8 < n {
			groups *= 2
		}
	}
	return header + uint32(groups)*(8+slots*uint32(member))
}
