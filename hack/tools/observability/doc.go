// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package observability has dashboard.json, for Grafana, and alerts.yaml, for Prometheus.
// Its tests parse each expression in them with Prometheus' own parser and compare it with
// what a running manager exposes: metrics, labels, and values of labels. docs/operations.md
// says what to do about each alert.
//
// It is a separate module, so no other module links Prometheus' server.
package observability
