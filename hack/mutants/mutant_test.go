// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"
)

func TestJudge(t *testing.T) {
	failed := errors.New("exit status 1")
	for name, c := range map[string]struct {
		text   string
		failed error
		killed bool
	}{
		"assertion":          {"--- FAIL: TestX_W1 (0.00s)\nFAIL\nFAIL\texample/x\t0.1s\n", failed, true},
		"assertion inside":   {"--- FAIL: TestX (0.00s)\n    --- FAIL: TestX/row (0.00s)\nFAIL\texample/x\t0.1s\n", failed, true},
		"timeout":            {"panic: test timed out after 2m0s\nFAIL\texample/x\t120s\n", failed, true},
		"panic elsewhere":    {"panic: index out of range\n\ngoroutine 9\nFAIL\texample/x\t0.1s\n", failed, true},
		"deadlock":           {"fatal error: all goroutines are asleep - deadlock!\nFAIL\texample/x\t0.1s\n", failed, true},
		"passes":             {"ok  \texample/x\t0.1s\n", nil, false},
		"does not compile":   {"# example/x\n./x.go:3:2: undefined: y\nFAIL\texample/x [build failed]\n", failed, false},
		"does not set up":    {"FAIL\texample/x [setup failed]\n", failed, false},
		"go command missing": {"", failed, false},
	} {
		if got := judge(c.text, c.failed); got.killed != c.killed {
			t.Errorf("%s: got %q, killed %v; want killed %v", name, got, got.killed, c.killed)
		}
	}
}
