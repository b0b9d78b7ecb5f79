// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package migration holds the peers' side of docs/migration.md, so that it compiles: each function of the page that uses
// controller-runtime or client-go stands here as it stands there. TestHouse_GoBlocksStandInExamples in internal/house compares them.
package migration
