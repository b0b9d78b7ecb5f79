// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package metrics shows the Prometheus metrics of a manager.
//
// Collectors read the Sources, which are snapshots, when a scrape asks for them, and
// keep no numbers. Requests alone counts: it stands in the transport of the
// manager's clients. The table of all metrics is docs/metrics.md.
package metrics
