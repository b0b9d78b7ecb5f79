// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package schemas notices that the schema of a kind has changed, though no object
// has: watches that end early make it compare the hashes of /openapi/v3, and the
// scopes whose lists are older than the change are listed anew. Looks are few,
// for all kinds of a server together.
package schemas
