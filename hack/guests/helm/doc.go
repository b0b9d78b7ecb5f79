// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package helm runs Helm, built from the module proxy as it is, with a chart of
// our own on the simulated and on a real API server, and compares what it says. It
// is a module of its own and has tests alone.
package helm
