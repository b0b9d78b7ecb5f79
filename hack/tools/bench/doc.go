// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

// Package bench measures Flyball and its peers side by side, in one run, through the interfaces their users use.
// README.md has the commands.
package bench
