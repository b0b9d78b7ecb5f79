// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package cputime measures the CPU time of the process, which is more
// meaningful than the clock on a shared machine.
package cputime
