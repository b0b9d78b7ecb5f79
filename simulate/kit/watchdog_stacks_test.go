// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package kit

import "testing"

func TestWatchdog_ReadsStacks_K12(t *testing.T) {
	for line, want := range map[string]goroutine{
		"goroutine 7 [IO wait, synctest bubble 3]:\n":                     {id: "7", state: "IO wait"},
		"goroutine 7 [select (durable), 2 minutes, synctest bubble 3]:\n": {id: "7", state: "select", durable: true},
		"goroutine 7 [runnable, synctest bubble 3]:\n":                    {id: "7", state: "runnable"},
		"goroutine 7 gp=0x1 m=nil [chan receive, synctest bubble 3]:\n":   {id: "7", state: "chan receive"},
		"goroutine 7 [syscall, locked to thread, synctest bubble 3]:\n":   {id: "7", state: "syscall"},
		"goroutine 7 [IO wait, synctest bubble 31]:\n":                    {},
		"goroutine 7 [IO wait]:\n":                                        {},
	} {
		got := goroutine{}
		if all := parseStacks(line+"f()\n", "synctest bubble 3"); len(all) > 0 {
			got = all[0]
			got.stack = ""
		}
		if got != want {
			t.Errorf("%q is %+v, want %+v", line, got, want)
		}
	}
}
