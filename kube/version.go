// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import "strconv"

// Version is a resourceVersion as a number. Resource versions of one kind on
// one server are comparable since Kubernetes 1.35 (KEP-5504). Zero means
// unknown: empty or not a number, as some aggregated servers and fakes return;
// the order of arrival then decides.
type Version uint64

// ParseVersion parses a resourceVersion. It returns 0 for anything but a
// positive decimal number.
func ParseVersion(resourceVersion string) Version {
	v, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return Version(v)
}

// String returns the resourceVersion as the server writes it, empty if unknown.
func (v Version) String() string {
	if v == 0 {
		return ""
	}
	return strconv.FormatUint(uint64(v), 10)
}
