// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
)

var semantic = regexp.MustCompile(`^v(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$`)

// compare orders semantic versions, pseudo-versions among them. What is none is before all.
func compare(a, b string) int {
	x, y := semantic.FindStringSubmatch(a), semantic.FindStringSubmatch(b)
	if x == nil || y == nil {
		return cmp.Compare(len(x), len(y))
	}
	for i := 1; i <= 3; i++ {
		if c := compareNumbers(x[i], y[i]); c != 0 {
			return c
		}
	}
	return comparePrereleases(x[4], y[4])
}

// comparePrereleases orders what follows the hyphen. Nothing is a release, after all others.
func comparePrereleases(a, b string) int {
	if a == "" || b == "" {
		return cmp.Compare(len(b), len(a))
	}
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(x), len(y)) {
		_, xErr := strconv.ParseUint(x[i], 10, 64)
		_, yErr := strconv.ParseUint(y[i], 10, 64)
		c := strings.Compare(x[i], y[i])
		switch {
		case xErr == nil && yErr == nil:
			c = compareNumbers(x[i], y[i])
		case xErr == nil:
			c = -1 // numbers are before words
		case yErr == nil:
			c = 1
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Compare(len(x), len(y))
}

// compareNumbers orders numbers without leading zeros.
func compareNumbers(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}
