// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package manager

import "github.com/flyball-dev/flyball/internal/textlog"

// Printable is err's text for a terminal. Its lines are kept; control characters and
// what changes the direction of writing, which an object or a webhook of somebody else
// may have brought into it, are escaped, as the log escapes them. It is for programs
// that print the error of Run.
func Printable(err error) string {
	if err == nil {
		return ""
	}
	return textlog.VisibleLines(err.Error())
}
