// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package browser opens each page of the console (docs/console.md) in headless Chromium, with light and
// dark colours, on a phone and a desktop.
//
//	make browser
//
// The pages are those of examples/website beside a simulated server with faults, those of two
// replicas of it that share objects, and those of a controller with 100,000 keys. axe-core looks for
// violations of WCAG 2 A and AA; it is downloaded by npm into the user's cache, once. Where there is
// no Chromium the tests are skipped; where there is no npm, only axe-core is. -shots DIR keeps a
// picture of each page.
package browser
