// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package helm runs Helm, built unchanged from the module proxy, with a chart of this
// repository on the simulated and on a real API server, and compares the output. It is a
// separate module with only tests.
package helm
