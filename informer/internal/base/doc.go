// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package base has what all parts of the informer share: objects, keys and
// versions, what a watch covers, the states of a list and watch, named errors,
// and objects that cannot be decoded. It knows no server and starts nothing.
// Package informer gives users most of it under the same names.
package base
