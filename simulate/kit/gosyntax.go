// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// GoString returns the plan in Go syntax.
func (p Plan) GoString() string {
	if len(p) == 0 {
		return "kit.Plan{}"
	}
	var text strings.Builder
	text.WriteString("kit.Plan{\n")
	for _, op := range p {
		text.WriteString("\t" + op.GoString() + ",\n")
	}
	text.WriteString("}")
	return text.String()
}

var constructors = map[Verb]func(Op) string{
	cut: call("Cut"), blackHole: call("BlackHole"), refuse: lasting("Refuse"), partition: lasting("Partition"),
	delay:        slowly("Delay"),
	loseResponse: call("LoseResponse"),
	lag:          lasting("Lag"), slow: slowly("Slow"), dropEvent: call("DropEvent"), duplicate: call("Duplicate"), reorder: call("Reorder"), noEndBookmark: lasting("NoEndBookmark"),
	mute: call("Mute"), closeWatches: call("CloseWatches"), compact: call("Compact"), restartCache: call("RestartCache"), coalesce: call("Coalesce"),
	rewind:   func(o Op) string { return fmt.Sprintf("Rewind(%d)", o.Amount) },
	overload: func(o Op) string { return fmt.Sprintf("Overload(%d, %d)", o.Amount, o.Code) },
	reject:   func(o Op) string { return fmt.Sprintf("Reject(%d, %d)", o.Amount, o.Code) },
	deny:     lasting("Deny"), expireTokens: lasting("ExpireTokens"), spoilList: call("SpoilList"), spoilEvent: call("SpoilEvent"), expireContinue: call("ExpireContinue"),
	failConversion: lasting("FailConversion"), changeSchema: call("ChangeSchema"),
	crash: lasting("Crash"), stop: lasting("Stop"), pause: lasting("Pause"), panics: call("Panic"), hang: lasting("Hang"), stall: lasting("Stall"),
	timeTravel: func(o Op) string { return fmt.Sprintf("TimeTravel(%d, %s)", o.Amount, goDuration(o.For)) },
	jump:       lasting("Jump"),
	clockStep:  func(o Op) string { return "ClockStep(" + goDuration(time.Duration(o.Amount)) + ")" },
	corrupt:    call("Corrupt"), huge: call("Huge"), nasty: call("Nasty"), foreignWrite: call("ForeignWrite"), repeat: call("Repeat"),
}

func call(name string) func(Op) string { return func(Op) string { return name + "()" } }

func lasting(name string) func(Op) string {
	return func(o Op) string { return name + "(" + goDuration(o.For) + ")" }
}

func slowly(name string) func(Op) string {
	return func(o Op) string {
		return name + "(" + goDuration(time.Duration(o.Amount)) + ", " + goDuration(o.For) + ")"
	}
}

// GoString returns the operation in Go syntax.
func (o Op) GoString() string {
	construct, ok := constructors[o.Verb]
	if !ok {
		return fmt.Sprintf("kit.Op{Verb: %q}", o.Verb)
	}
	text := "kit." + construct(o)
	if o.Kind != "" {
		text += fmt.Sprintf(".Of(%q)", o.Kind)
	}
	if o.Process != "" {
		text += fmt.Sprintf(".In(%q)", o.Process)
	}
	w := o.When
	switch {
	case w.Write != "":
		text += fmt.Sprintf(".OnWrite(%q, %d)", w.Write, w.Nth)
	case w.Event != "":
		text += fmt.Sprintf(".OnEvent(%q, %d)", w.Event, w.Nth)
	case w.Before != "":
		text += fmt.Sprintf(".BeforeWrite(%q, %d)", w.Before, w.Nth)
	case w.After != "":
		text += fmt.Sprintf(".AfterWrite(%q, %d)", w.After, w.Nth)
	case w.Rate > 0:
		text += ".Rate(" + strconv.FormatFloat(w.Rate, 'g', -1, 64) + ")"
	case w.At > 0:
		text += ".At(" + goDuration(w.At) + ")"
	}
	if w.User {
		text += ".ByUser()"
	}
	return text
}

// goDuration returns a duration in Go syntax, in the largest unit of which it is a
// multiple.
func goDuration(d time.Duration) string {
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{time.Hour, "time.Hour"}, {time.Minute, "time.Minute"}, {time.Second, "time.Second"}, {time.Millisecond, "time.Millisecond"}, {time.Microsecond, "time.Microsecond"}} {
		switch n := d / unit.of; {
		case d == 0 || d%unit.of != 0:
		case n == 1:
			return unit.name
		default:
			return fmt.Sprintf("%d*%s", n, unit.name)
		}
	}
	return cmp.Or(strconv.FormatInt(int64(d), 10), "0")
}
