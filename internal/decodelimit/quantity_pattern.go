// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package decodelimit

// Patterns of schemas for resource.Quantity.
const (
	// AnyQuantity is that of controller-tools. It accepts exponents of any size, and
	// ones with a fraction, which nothing parses.
	AnyQuantity = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$`
	// BoundQuantity accepts exponents of two digits. Up to LongestQuantity bytes that it
	// accepts are decoded.
	BoundQuantity = `^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?0*[0-9]{1,2}))?$`
	// LongestQuantity has a sign, 19 digits before the point, 9 after it, and a suffix.
	LongestQuantity = 32
)
