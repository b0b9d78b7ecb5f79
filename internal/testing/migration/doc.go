// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package migration has the examples of docs/migration.md. The page shows each of
// them beside the same code for controller-runtime or client-go, which is in
// hack/tools/bench/migration.
package migration
