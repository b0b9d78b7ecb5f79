// SPDX-FileCopyrightText: The Flyball Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var kubectl = flag.String("kubectl", "", "`program` to type the guide's kubectl commands with; empty: the guide is not followed")

// A newcomer types the commands of docs/start.md in an empty directory, with empty caches, and
// the module proxy has this version.
func TestRelease_TheGuideIsFollowedFromAProxy_Q1(t *testing.T) {
	if *kubectl == "" {
		t.Skip("it compiles everything anew; make scaffold runs it")
	}
	source, env := publish(t)
	env = append(env, "GOCACHE="+t.TempDir(), "GOFLAGS=", "KUBECONFIG=") // as Go is installed, except for the proxy
	dir, typed := t.TempDir(), map[string]int{}
	began, cloned := time.Now(), false
	for line := range strings.Lines(read(t, filepath.Join(source, "docs", "start.md"))) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case !strings.HasPrefix(line, "    "):
			cloned = false
		case cloned || words[0] == "git" && words[1] == "clone": // instead of the commands before
			cloned = true
		case words[0] == "cd":
			dir = filepath.Join(dir, words[1])
			typed["cd"]++
		case slices.Equal(words, []string{"go", "run", ".", "-simulate"}):
			useSimulated(t, dir, env)
			typed["simulate"]++
		case words[0] == "go":
			command(t, dir, env, "go", words[1:]...)
			typed[strings.Join(words[:2], " ")]++
			t.Logf("after %.0f s: %s", time.Since(began).Seconds(), strings.TrimSpace(line))
		}
	}
	if typed["cd"] != 1 || typed["simulate"] != 1 || typed["go run"] != 3 || typed["go test"] != 3 {
		t.Errorf("the guide has the commands %v, want one cd, one -simulate, three go run and three go test", typed)
	}
}

// useSimulated starts the operator on its simulated cluster, types the kubectl commands that it
// prints, and interrupts it when the sample has appeared.
func useSimulated(t *testing.T, dir string, env []string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "operator")
	command(t, dir, env, "go", "build", "-o", program, ".")
	cmd := exec.CommandContext(t.Context(), program, "-simulate")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	output, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	applied, exported := false, ""
	does := func(arguments string) { // with the quotes that a shell removes
		command(t, dir, env, "sh", "-c", exported+`exec "$0" `+arguments, *kubectl)
	}
	for lines := bufio.NewScanner(output); !applied && lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "export ") {
			exported += line + "\n"
		}
		if arguments, ok := strings.CutPrefix(line, "kubectl "); ok {
			does(arguments)
			applied = true
		}
	}
	if !applied {
		t.Error("the operator prints no kubectl command")
	}
	does("wait database --all --for=condition=Ready --timeout=60s")
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	_, _ = io.Copy(io.Discard, output)
	if err := cmd.Wait(); err != nil {
		t.Errorf("after an interrupt: %v", err)
	}
}
