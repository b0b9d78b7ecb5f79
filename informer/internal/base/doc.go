// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package base has the types that all parts of the informer share: objects,
// keys and versions, watch scopes, the states of a list and watch, named
// errors, and undecodable objects. It knows no server and starts nothing.
// Package informer exports most of it under the same names.
package base
