// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package listwatch defines how an informer reads objects: a ListerWatcher
// lists them in pages and watches for changes. Informers of a factory use HTTP.
// To feed an informer from another source, implement the interface, by the
// rules of the Kubernetes watch API, and pass it to informer.New.
package listwatch
