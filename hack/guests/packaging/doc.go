// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package packaging installs operators, as flyball pack packs them, on the simulated and on a
// real API server: with kubectl, with Helm, built unchanged from the module proxy, and as a
// bundle of the Operator Lifecycle Manager. The image's program then runs with the rights of
// its ServiceAccount alone. It is a separate module with only tests.
package packaging
