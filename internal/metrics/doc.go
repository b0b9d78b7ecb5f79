// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package metrics exposes the Prometheus metrics of a manager.
//
// Collectors read the Sources, which are snapshots, at each scrape, and store nothing.
// Only Requests counts: it is in the transport of the manager's clients.
// docs/metrics.md lists all metrics.
package metrics
