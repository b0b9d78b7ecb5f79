// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package cputime tells what a process has worked. On a machine that others use
// too it says more than the clock.
package cputime
