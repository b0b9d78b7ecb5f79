// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// mutant is one patch and the test that must notice it.
type mutant struct {
	file    string // in the directory of the mutants
	path    string
	promise string
	test    string // a go test command
}

// verdict is how a test took a mutant.
type verdict struct {
	killed bool
	how    string
}

func (v verdict) String() string {
	if v.killed {
		return "killed: " + v.how
	}
	return "NOT KILLED: " + v.how
}

// readAll reads the patches in dir whose file name matches one of globs, all
// without globs.
func readAll(dir string, globs []string) ([]mutant, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.patch"))
	if err != nil {
		return nil, err
	}
	slices.Sort(paths)
	var out []mutant
	for _, path := range paths {
		file := filepath.Base(path)
		wanted := len(globs) == 0
		for _, glob := range globs {
			match, err := filepath.Match(glob, file)
			if err != nil {
				return nil, fmt.Errorf("match %q: %w", glob, err)
			}
			wanted = wanted || match
		}
		if !wanted {
			continue
		}
		m, err := read(path)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		out = append(out, m)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("find patches in %s: none matches", dir)
	}
	return out, nil
}

func read(path string) (mutant, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return mutant{}, err
	}
	m := mutant{file: filepath.Base(path), path: path}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "# promise":
			m.promise = value
		case "# test":
			m.test = value
		}
		if !strings.HasPrefix(line, "#") {
			break
		}
	}
	if m.promise == "" || !strings.HasPrefix(m.test, "go test ") {
		return mutant{}, fmt.Errorf("the header needs \"# promise: …\" and \"# test: go test …\"")
	}
	return m, nil
}

// try applies the mutant to tree, runs its test and takes the mutant back.
func (m mutant) try(ctx context.Context, tree string, limit time.Duration) (verdict, error) {
	if out, err := command(ctx, tree, "git", "apply", m.path); err != nil {
		return verdict{how: "does not apply: " + firstLine(out)}, nil
	}
	text, failed := test(ctx, tree, limit, m.test)
	if out, err := command(context.WithoutCancel(ctx), tree, "git", "apply", "-R", m.path); err != nil {
		return verdict{}, fmt.Errorf("take it back: %w: %s", err, out)
	}
	return judge(text, failed), ctx.Err()
}

var (
	noBuild  = regexp.MustCompile(`(?m)^FAIL\t.*\[(build|setup) failed\]`)
	fellOver = regexp.MustCompile(`(?m)^panic: test timed out.*|^panic: .*|^fatal error: .*`)
	testFail = regexp.MustCompile(`(?m)^\s*--- FAIL: \S+`)
	pkgFail  = regexp.MustCompile(`(?m)^FAIL\t`)
)

// judge says what the output of a test means for the mutant.
func judge(text string, failed error) verdict {
	switch {
	case failed == nil:
		return verdict{how: "the test passes"}
	case noBuild.MatchString(text):
		return verdict{how: "does not compile: " + firstLine(noBuild.FindString(text))}
	case testFail.MatchString(text):
		return verdict{true, strings.TrimPrefix(strings.TrimSpace(testFail.FindString(text)), "--- ")}
	case pkgFail.MatchString(text) && fellOver.MatchString(text):
		return verdict{true, fellOver.FindString(text)}
	}
	return verdict{how: "the go command failed otherwise: " + failed.Error()}
}

// test runs a go test command, with a limit of its own unless it names one.
func test(ctx context.Context, tree string, limit time.Duration, line string) (string, error) {
	args := strings.Fields(line)
	for i := range args {
		args[i] = strings.Trim(args[i], `'"`)
	}
	if !strings.Contains(line, "-timeout") {
		args = append(args, "-timeout="+limit.String())
	}
	args = append(args, "-vet=off", "-ldflags=-s -w") // each mutant is linked anew
	ctx, cancel := context.WithTimeout(ctx, 5*limit)  // compiling counts, too
	defer cancel()
	return command(ctx, tree, args[0], args[1:]...)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}
