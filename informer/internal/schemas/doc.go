// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package schemas detects that the schema of a kind has changed without a
// change of its objects: when watches end early it compares the hashes in
// /openapi/v3, and relists the scopes whose lists are older than the change.
// Checks are rare and cover all kinds of a server at once.
package schemas
