// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package textlog

import (
	"fmt"
	"strings"
)

// Level is the severity of an entry.
type Level int

// The levels. V(1) to V(4) of logr are debug, higher ones trace, as in
// log/slog.
const (
	Trace Level = iota - 2
	Debug
	Info // the zero value
	Warning
	Error
)

// debugTo is the last V that is debug.
const debugTo = 4

var words = map[Level]string{Trace: "TRACE", Debug: "DEBUG", Info: "INFO", Warning: "WARN", Error: "ERROR"}

func (l Level) String() string { return words[l] }

func levelOf(n int) Level {
	switch {
	case n <= 0:
		return Info
	case n <= debugTo:
		return Debug
	}
	return Trace
}

// ParseLevel parses the name of a level.
func ParseLevel(word string) (Level, error) {
	for level, name := range words {
		if strings.EqualFold(word, name) || level == Warning && strings.EqualFold(word, "warning") {
			return level, nil
		}
	}
	return Info, fmt.Errorf("level %q: write error, warn, info, debug or trace", word)
}
