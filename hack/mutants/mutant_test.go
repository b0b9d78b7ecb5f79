// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
		if got := verdictOf(c.text, c.failed); got.killed != c.killed {
			t.Errorf("%s: got %q, killed %v; want killed %v", name, got, got.killed, c.killed)
		}
	}
}

// Tests of a module that the workspace does not use run in its directory.
func TestCommand_ModulesOutsideOfTheWorkspace(t *testing.T) {
	repository := plant(t,
		"a/a_test.go", "package a\nfunc TestA_X1(t *testing.T) {}\n",
		"in/in_test.go", "package in\nfunc TestIn_X1(t *testing.T) {}\n",
		"out/deep/b_test.go", "package deep\nfunc TestOut_X1(t *testing.T) {}\n",
	)
	repository.root = t.TempDir()
	for name, text := range map[string]string{"go.work": "use (\n\t.\n\t./in\n)\n", "go.mod": "", "in/go.mod": "", "out/go.mod": ""} {
		path := filepath.Join(repository.root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for test, want := range map[string][]string{
		"TestA_X1":        {"test", "-count=1", "-run=^TestA_X1$", "./a"},
		"TestIn_X1":       {"test", "-count=1", "-run=^TestIn_X1$", "./in"},
		"TestOut_X1":      {"test", "-C=./out", "-count=1", "-run=^TestOut_X1$", "./deep"},
		"Test(Out|In)_X1": nil,
		"TestNothing":     nil,
	} {
		got, err := mutant{tests: regexp.MustCompile("^" + test + "$")}.command(repository)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%s: got %q, %v, want %q", test, got, err, want)
		}
	}
}
