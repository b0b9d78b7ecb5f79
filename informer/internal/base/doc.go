// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package base has what the parts of the informer share and users do not see: the marks of
// items of a list or watch, why a list or watch fails, and calls of a user's transform. It
// knows no server and starts nothing.
package base
