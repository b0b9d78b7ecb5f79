// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package fields holds the set of fields that an informer keeps of its objects.
//
//	paths ──Parse──▶ Set ──Resolve──▶ checked against the Go type
//	                  ├── Child: plans of the decoders skip what is left out
//	                  └── Prune: clears what is left out of a decoded object
//
// A path names JSON fields, separated by dots: "spec.nodeName". It goes through
// lists: "spec.containers.image" is the image of every container. What a
// controller needs of any object is always kept (see Always).
//
// A Set is immutable and safe for concurrent use. Prune modifies its argument.
package fields
