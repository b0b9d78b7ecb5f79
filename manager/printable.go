// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import "github.com/flyball-dev/flyball/internal/textlog"

// Printable returns the text of err for a terminal. It keeps line breaks, and escapes
// control characters and bidirectional controls, which may come from a foreign object
// or webhook, as the log does. Use it to print the error of Run.
func Printable(err error) string {
	if err == nil {
		return ""
	}
	return textlog.VisibleLines(err.Error())
}
