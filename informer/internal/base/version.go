// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package base

import "strconv"

// Version is a resourceVersion as a number. Resource versions of one kind on
// one server are comparable since Kubernetes 1.35 (KEP-5504). Zero means
// unknown: the text was empty or not a number, as some aggregated servers and
// fakes give; then the order of arrival decides.
type Version uint64

// ParseVersion reads a resourceVersion. What is not a decimal number above
// zero is 0, unknown.
func ParseVersion(resourceVersion string) Version {
	v, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return Version(v)
}

// String is the resourceVersion in the server's form, empty for unknown.
func (v Version) String() string {
	if v == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(v), 10)
}
