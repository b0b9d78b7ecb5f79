// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package filelock provides locks between processes, based on files.
package filelock
