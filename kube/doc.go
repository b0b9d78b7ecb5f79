// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package kube has the vocabulary of all packages: objects, their keys and versions, the
// effects of writes, and the errors of reads, which errors.AsType recognizes. It knows no
// server and starts nothing. All of it is safe for concurrent use.
package kube
